package management

import (
	"errors"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

func vhosts(r *request) (reply, error) {
	var all []row
	for _, name := range r.s.cfg.VHosts.Names() {
		v, exists := r.s.cfg.VHosts.Get(name)
		if exists && r.looksInto(name) {
			all = append(all, row{name: name, object: func(r *request, d details) object { return r.vhostObject(v, d) }})
		}
	}
	return r.rows(all)
}

func oneVHost(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	v, exists := r.s.cfg.VHosts.Get(r.arg("name"))
	if !exists {
		return reply{}, errNotFound
	}
	if !r.looksInto(v.Name()) {
		return reply{}, notAuthorised("User not authorised to access virtual host")
	}
	return ok(r.vhostObject(v, d))
}

func (r *request) vhostObject(v *vhost.VHost, d details) object {
	o := object{{"name", v.Name()}}
	o = append(o, r.s.vhostOptions(v)...)
	o = append(o, member{"tracing", v.Tracing()}, member{"cluster_state", object{{r.s.cfg.Node, "running"}}}, member{"protected_from_deletion", false})
	f := r.s.sampler.totals().vhosts[v.Name()]
	if f == nil {
		f = &figures{}
	}
	w := r.s.sampler.view(part{aVHost, v.Name(), ""})
	addFigures(&o, levelMetrics, &f.counters, w, d)
	if f.any(octetMetrics) {
		addFigures(&o, octetMetrics, &f.counters, w, d)
	}
	if stats := r.messageStats(&f.counters, w, d); stats != nil {
		o.add("message_stats", stats)
	}
	return o
}

// vhostOptions are the members for a vhost's options, twice as in RabbitMQ 4.0.
func (s *Server) vhostOptions(v *vhost.VHost) object {
	options := v.Options()
	o := object{
		{"description", options.Description},
		{"tags", append([]string{}, options.Tags...)},
		{"default_queue_type", or(options.DefaultQueueType, s.cfg.DefaultQueueType)},
	}
	return append(o, member{"metadata", append(object{}, o...)})
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func putVHost(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	name := r.arg("name")
	v, existed := r.s.cfg.VHosts.Get(name)
	var options vhost.Options
	if existed {
		options = v.Options()
	}
	if err := readOptions(b, &options); err != nil {
		return reply{}, err
	}
	tracing, err := b.boolean("tracing")
	if err != nil {
		return reply{}, err
	}
	if err := r.acting().createVHost(name, options); err != nil {
		return reply{}, err
	}
	if v, exists := r.s.cfg.VHosts.Get(name); exists && b["tracing"] != nil {
		v.SetTracing(tracing)
	}
	return put(!existed, nil)
}

// readOptions takes the options that the body has.
func readOptions(b body, o *vhost.Options) error {
	if _, there := b["description"]; there {
		text, err := b.text("description")
		if err != nil {
			return err
		}
		o.Description = text
	}
	tags, there, err := b.tags("tags")
	if err != nil {
		return err
	}
	if there {
		o.Tags = tags
	}
	t, err := b.text("default_queue_type")
	if err != nil {
		return err
	}
	if t != "" {
		o.DefaultQueueType = t
	}
	return nil
}

// createVHost makes a vhost and lets its maker do everything there (RabbitMQ
// 4.0), or changes one.
func (c *acting) createVHost(name string, o vhost.Options) error {
	if name == "" {
		return badRequest("the name of a virtual host must not be empty")
	}
	if err := checkUTF8("virtual host", name); err != nil {
		return err
	}
	_, existed := c.s.cfg.VHosts.Get(name)
	if err := c.s.cfg.VHosts.CreateBy(c.in(name), name, o); err != nil {
		return err
	}
	if existed || c.user == "" {
		return nil
	}
	_, err := c.auth.SetPermissions(c.user, name, ".*", ".*", ".*")
	return err
}

func deleteVHost(r *request) (reply, error) {
	name := r.arg("name")
	if err := r.s.cfg.VHosts.DeleteBy(r.acting().in(name), name); err != nil {
		return reply{}, orNotFound(err)
	}
	return noContent, nil
}

func startVHost(r *request) (reply, error) {
	if node := r.arg("node"); node != r.s.cfg.Node {
		return reply{}, badRequest("Request to node %s failed with nodedown", node)
	}
	return noContent, nil
}

// vhostLimits handles GET /vhost-limits and /vhost-limits/V.
func vhostLimits(r *request) (reply, error) {
	list := []object{}
	for _, v := range r.vhostsThat(r.looksInto) {
		if m := v.Limits().Map(); len(m) > 0 {
			list = append(list, object{{"vhost", v.Name()}, {"value", m}})
		}
	}
	return ok(list)
}

// vhosts are those of the request: the one that the path names, or all that
// the user sees.
func (r *request) vhosts() []*vhost.VHost { return r.vhostsThat(r.sees) }

// looksInto says whether the user is shown what a virtual host is like, if not what
// is in it.
func (r *request) looksInto(vhost string) bool { return r.monitors() || r.sees(vhost) }

// vhostsThat are the one that the path names, or all that are shown.
func (r *request) vhostsThat(shown func(name string) bool) []*vhost.VHost {
	if r.vhost != nil {
		return []*vhost.VHost{r.vhost}
	}
	var list []*vhost.VHost
	for _, name := range r.s.cfg.VHosts.Names() {
		if v, exists := r.s.cfg.VHosts.Get(name); exists && shown(name) {
			list = append(list, v)
		}
	}
	return list
}

func putVHostLimit(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("value"); err != nil {
		return reply{}, err
	}
	if err := checkLimit(r.arg("limit"), b["value"]); err != nil {
		return reply{}, err
	}
	n, _, err := b.integer("value")
	if err != nil {
		return reply{}, err
	}
	return done(r.vhost.SetLimit(r.actor(), r.arg("limit"), n))
}

// deleteVHostLimit takes a limit away, be it one that there is not (RabbitMQ 4.0).
func deleteVHostLimit(r *request) (reply, error) {
	if !isVHostLimit(r.arg("limit")) {
		return noContent, nil
	}
	return done(r.vhost.ClearLimit(r.actor(), r.arg("limit")))
}

// notFoundIsBad makes the 404 of a layer below a 400: of what a body names.
func notFoundIsBad(err error, reason string) error {
	if e, isError := errors.AsType[*frames.Error](err); isError && e.Code == frames.NotFound {
		return badRequest("%s", reason)
	}
	return err
}
