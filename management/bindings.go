package management

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

func bindingObject(vhost string, b *vhost.BindingInfo) object {
	return object{
		{"source", b.Source}, {"vhost", vhost}, {"destination", b.Destination}, {"destination_type", destinationType(b.ToExchange)},
		{"routing_key", b.Key}, {"arguments", b.Arguments}, {"properties_key", propertiesKey(b.Key, b.Arguments)},
	}
}

func destinationType(exchange bool) string {
	if exchange {
		return "exchange"
	}
	return "queue"
}

// propertiesKey tells the bindings between two things apart, in a form that
// goes into a path (RabbitMQ 4.0: the key, and a hash of the arguments).
func propertiesKey(key string, args frames.Table) string {
	// Form encoding as RabbitMQ does it: a space is +, and ~ is escaped, which
	// separates the two parts.
	quoted := strings.ReplaceAll(url.QueryEscape(key), "~", "%7E")
	switch {
	case len(args) == 0 && key == "":
		return "~"
	case len(args) == 0:
		return quoted
	}
	h := fnv.New32a()
	h.Write(frames.AppendTable(nil, args.Sorted())) // never fails
	return quoted + "~" + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, h.Sum32()))
}

// defaultBinding is the binding of a queue that the default exchange has by
// itself.
func defaultBinding(queue string) vhost.BindingInfo {
	return vhost.BindingInfo{Destination: queue, Key: queue}
}

// bindings handles GET /bindings and /bindings/V.
func bindings(r *request) (reply, error) {
	list := []object{}
	for _, v := range r.vhosts() {
		for q := range v.Queues() {
			b := defaultBinding(q.Spec.Name)
			list = append(list, bindingObject(v.Name(), &b))
		}
		list = appendBindings(list, v, v.Bindings())
	}
	return plain(list)
}

func appendBindings(list []object, v *vhost.VHost, all iter.Seq[vhost.BindingInfo]) []object {
	for b := range all {
		list = append(list, bindingObject(v.Name(), &b))
	}
	return list
}

func bindingsFrom(r *request) (reply, error) {
	if r.vhost == nil {
		return noObjects(r)
	}
	source := r.exchangeArg("exchange")
	list := []object{}
	if source == "" {
		for q := range r.vhost.Queues() {
			b := defaultBinding(q.Spec.Name)
			list = append(list, bindingObject(r.vhost.Name(), &b))
		}
	}
	return plain(appendBindings(list, r.vhost, r.vhost.BindingsFrom(source)))
}

func bindingsToExchange(r *request) (reply, error) {
	if r.vhost == nil {
		return noObjects(r)
	}
	return plain(appendBindings([]object{}, r.vhost, r.vhost.BindingsTo(r.exchangeArg("exchange"), true)))
}

func bindingsToQueue(r *request) (reply, error) {
	if r.vhost == nil {
		return noObjects(r)
	}
	name := r.arg("queue")
	if _, err := r.vhost.QueueInfo(name); err != nil {
		return noObjects(r)
	}
	b := defaultBinding(name)
	return plain(appendBindings([]object{bindingObject(r.vhost.Name(), &b)}, r.vhost, r.vhost.BindingsTo(name, false)))
}

// segment is a name as a segment of a path. A plus is escaped, too: some take it for a
// space (RabbitMQ 4.0).
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), "+", "%2B") }

// ends are the source and the destination that a path names.
type ends struct {
	source, destination string
	toExchange          bool
}

// bindingEnds reads them; the type is q or e.
func (r *request) bindingEnds() (ends, error) {
	e := ends{source: r.exchangeArg("source")}
	switch r.arg("type") {
	case "q":
		e.destination = r.arg("destination")
	case "e":
		e.destination, e.toExchange = r.exchangeArg("destination"), true
	default:
		return e, errNotFound
	}
	return e, nil
}

// between lists the bindings between two ends.
func (r *request) between(e ends) []vhost.BindingInfo {
	if e.source == "" && !e.toExchange {
		if _, err := r.vhost.QueueInfo(e.destination); err == nil {
			return []vhost.BindingInfo{defaultBinding(e.destination)}
		}
	}
	all := slices.Collect(r.vhost.BindingsFrom(e.source))
	return slices.DeleteFunc(all, func(b vhost.BindingInfo) bool {
		return b.Destination != e.destination || b.ToExchange != e.toExchange
	})
}

func bindingsBetween(r *request) (reply, error) {
	e, err := r.bindingEnds()
	if err != nil {
		return reply{}, err
	}
	if r.vhost == nil {
		return noObjects(r)
	}
	return plain(appendBindings([]object{}, r.vhost, slices.Values(r.between(e))))
}

// binding is the one that the path names. Its key may be encoded once or twice.
func (r *request) binding() (ends, vhost.BindingInfo, error) {
	e, err := r.bindingEnds()
	if err != nil {
		return e, vhost.BindingInfo{}, err
	}
	props, all := r.arg("props"), r.between(e)
	i := slices.IndexFunc(all, func(b vhost.BindingInfo) bool { return propertiesKey(b.Key, b.Arguments) == props })
	if i < 0 && props != "~" { // which is no key and no arguments, and not the key ~
		i = slices.IndexFunc(all, func(b vhost.BindingInfo) bool {
			name := propertiesKey(b.Key, b.Arguments)
			once, err := url.PathUnescape(name)
			plain, _ := url.QueryUnescape(name) // with the blanks that + stands for
			return err == nil && (once == props || plain == props)
		})
	}
	if i < 0 {
		return e, vhost.BindingInfo{}, errNotFound
	}
	return e, all[i], nil
}

func oneBinding(r *request) (reply, error) {
	_, b, err := r.binding()
	if err != nil {
		return reply{}, err
	}
	return ok(bindingObject(r.vhost.Name(), &b))
}

func unbind(r *request) (reply, error) {
	e, b, err := r.binding()
	if err != nil {
		return reply{}, err
	}
	if e.toExchange {
		return done(r.vhost.UnbindExchange(r.actor(), e.destination, e.source, b.Key, b.Arguments))
	}
	return done(r.vhost.UnbindQueue(r.actor(), e.destination, e.source, b.Key, b.Arguments))
}

// bind handles POST /bindings/V/e/S/q/D. The location is relative, and the key
// in it encoded once more (RabbitMQ 4.0).
func bind(r *request) (reply, error) {
	e, err := r.bindingEnds()
	if err != nil {
		return reply{}, err
	}
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	key, args, err := readBinding(b)
	if err == nil {
		err = noNull(args)
	}
	if err != nil {
		return reply{}, err
	}
	if err := addBinding(r.vhost, r.actor(), e, key, args); err != nil {
		return reply{}, err
	}
	location := segment(e.destination) + "/" + segment(propertiesKey(key, args))
	return reply{status: http.StatusCreated, location: location}, nil
}

func addBinding(v *vhost.VHost, by vhost.Actor, e ends, key string, args frames.Table) error {
	if e.toExchange {
		return v.BindExchange(by, e.destination, e.source, key, args)
	}
	return v.BindQueue(by, e.destination, e.source, key, args)
}

// routingKey reads a routing key; one that is null or missing is empty.
func (b body) routingKey() (string, error) {
	key, err := b.text("routing_key")
	if err == nil && len(key) > frames.MaxShort {
		err = badRequest("a routing key must not be longer than %d bytes", frames.MaxShort)
	}
	return key, err
}

// readBinding reads key and arguments; a null key is an empty one, a null argument a
// void, as exports have it.
func readBinding(b body) (key string, args frames.Table, err error) {
	if key, err = b.routingKey(); err != nil {
		return "", nil, err
	}
	args, err = b.table("arguments")
	return key, args, err
}

// noNull refuses arguments that are null (RabbitMQ 4.0).
func noNull(args frames.Table) error {
	for _, f := range args {
		if f.Value == nil {
			return badRequest("the argument '%s' of a binding must not be null", f.Name)
		}
	}
	return nil
}
