package management

import (
	"github.com/leveretmq/leveret/vhost"
)

// exchanges handles GET /exchanges and /exchanges/V.
func exchanges(r *request) (reply, error) {
	var all []row
	for _, v := range r.vhosts() {
		for info := range v.Exchanges() {
			if hidden(v, &info) {
				continue
			}
			all = append(all, row{v.Name(), info.X.Name, func(r *request, d details) object { return r.exchangeObject(v, &info, d) }})
		}
	}
	return r.rows(all)
}

// hidden exchanges are the broker's own affair: RabbitMQ 4.0 has one for its
// log in the default vhost at most.
func hidden(v *vhost.VHost, info *vhost.ExchangeInfo) bool {
	return info.Builtin && info.X.Name == "amq.rabbitmq.log" && v.Name() != "/"
}

func (r *request) exchangeObject(v *vhost.VHost, info *vhost.ExchangeInfo, d details) object {
	x := info.X
	o := object{
		{"name", x.Name}, {"vhost", v.Name()}, {"type", x.Type}, {"durable", x.Durable}, {"auto_delete", x.AutoDelete},
		{"internal", x.Internal}, {"arguments", x.Arguments}, {"user_who_performed_action", info.User},
	}
	if info.Policy != "" {
		o.add("policy", info.Policy)
	}
	if r.withoutStats() {
		return o
	}
	if x.Type == "x-delayed-message" {
		o.add("messages_delayed", info.Delayed)
	}
	c := exchangeCounters(info)
	if stats := r.messageStats(&c, r.s.sampler.view(part{anExchange, v.Name(), x.Name}), d); stats != nil {
		o.add("message_stats", stats)
	}
	return o
}

func oneExchange(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	info, err := r.vhost.ExchangeInfo(r.exchangeArg("exchange"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	o := r.exchangeObject(r.vhost, &info, d)
	if !r.withoutStats() {
		o.add("incoming", []any{})
		o.add("outgoing", []any{})
	}
	return ok(o)
}

func putExchange(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	d, err := readExchange(r.exchangeArg("exchange"), b)
	if err != nil {
		return reply{}, err
	}
	if !vhost.KnownExchangeType(d.Type) {
		return reply{}, badRequest("unknown exchange type '%s'", d.Type)
	}
	_, missing := r.vhost.ExchangeInfo(d.Name)
	return put(missing != nil, r.vhost.DeclareExchange(r.actor(), d))
}

// readExchange reads a declaration from a request's or a definition's body.
// Without a type it is direct (RabbitMQ 4.0).
func readExchange(name string, b body) (vhost.ExchangeDeclare, error) {
	d := vhost.ExchangeDeclare{Name: name}
	if err := checkName("exchange", name); err != nil {
		return d, err
	}
	var err error
	d.Type = "direct"
	if _, there := b["type"]; there {
		if d.Type, err = b.string("type"); err != nil {
			return d, err
		}
	}
	for _, f := range []struct {
		name string
		flag *bool
	}{{"durable", &d.Durable}, {"auto_delete", &d.AutoDelete}, {"internal", &d.Internal}} {
		if *f.flag, err = b.boolean(f.name); err != nil {
			return d, err
		}
	}
	d.Arguments, err = b.table("arguments")
	return d, err
}

func deleteExchange(r *request) (reply, error) {
	name := r.exchangeArg("exchange")
	if _, err := r.vhost.ExchangeInfo(name); err != nil {
		return reply{}, orNotFound(err)
	}
	return done(r.vhost.DeleteExchange(r.actor(), name, r.flag("if-unused")))
}
