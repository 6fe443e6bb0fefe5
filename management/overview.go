package management

import (
	"encoding/json"
	"runtime"
	"strconv"
)

// exchangeTypes are the types of exchange with a word for people.
var exchangeTypes = []struct{ name, description string }{
	{"direct", "Routes by the exact routing key"},
	{"fanout", "Routes to every binding"},
	{"headers", "Routes by message headers"},
	{"topic", "Routes by patterns of the routing key"},
	{"x-consistent-hash", "Spreads messages over queues by a hash"},
	{"x-delayed-message", "Keeps messages until their delay is over"},
	{"x-local-random", "Picks one queue of this node at random"},
	{"x-message-deduplication", "Drops messages that came before, by an id in their header"},
	{"x-modulus-hash", "Spreads messages over queues by a hash of the key"},
	{"x-random", "Picks one queue at random"},
	{"x-recent-history", "Gives new queues the last messages"},
}

// overview handles GET /overview.
func overview(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	cfg := &r.s.cfg
	f, all := r.visibleFigures()
	w := r.s.sampler.view(part{kind: theOverview})
	if !all {
		w = view{kind: theOverview, at: w.at, points: noPoints}
	}
	o := object{
		{"management_version", cfg.CompatibleVersion},
		{"rates_mode", cfg.Options.ratesMode()},
		{"sample_retention_policies", object{
			{"global", []any{600, 3600, 28800, 86400}}, {"basic", []any{600, 3600}}, {"detailed", []any{600}}}},
		{"exchange_types", exchangeTypeObjects()},
		{"product_version", cfg.ProductVersion},
		{"product_name", cfg.Product},
		{"rabbitmq_version", cfg.CompatibleVersion},
		{"cluster_name", r.s.clusterName()},
		{"cluster_tags", tagsObject(cfg.Options.ClusterTags)},
		{"node_tags", tagsObject(cfg.Options.NodeTags)},
		{"erlang_version", "27"},
		{"erlang_full_version", runtime.Version()},
		{"disable_stats", cfg.DisableStats},
		{"default_queue_type", cfg.DefaultQueueType},
		{"is_op_policy_updating_enabled", !cfg.Options.FixedOperatorPolicies},
		{"enable_queue_totals", cfg.EnableQueueTotals},
		{"message_stats", figuresObject(cfg.Options.overviewMetrics(), f, w, d)},
		{"churn_rates", figuresObject(churnMetrics, f, w, d)},
		{"queue_totals", figuresObject(levelMetrics, f, w, d)},
		{"object_totals", r.objectTotals(f)},
		{"statistics_db_event_queue", 0},
	}
	if r.monitors() {
		health := cfg.Store.Health()
		o = append(o, member{"node", cfg.Node}, member{"listeners", r.s.listenerObjects()}, member{"contexts", r.s.contextObjects()},
			member{"leveret_store", storeObject(&health)})
	}
	return ok(o)
}

func figuresObject(metrics []metric, f *figures, w view, d details) object {
	o := make(object, 0, 2*len(metrics))
	addFigures(&o, metrics, &f.counters, w, d)
	return o
}

// visibleFigures are the totals of the vhosts that the user sees.
func (r *request) visibleFigures() (sum *figures, all bool) {
	t := r.s.sampler.totals()
	sum, all = &figures{}, true
	sum.counters.plus(&t.churn)
	for name, f := range t.vhosts {
		if r.monitors() || r.sees(name) {
			sum.plus(f)
		} else {
			all = false
		}
	}
	if !all {
		sum.counters[mDropUnroutable] -= t.churn[mDropUnroutable] // what is known of all vhosts together only
	}
	return sum, all
}

// objectTotals counts objects. Who does not monitor sees the connections and
// channels of its own only, and no consumers (RabbitMQ 4.0).
func (r *request) objectTotals(f *figures) object {
	if r.monitors() {
		return object{{"channels", f.channels}, {"consumers", f.consumers}, {"connections", f.connections},
			{"exchanges", f.exchanges}, {"queues", f.queues}}
	}
	return object{{"channels", len(r.visibleChannels())}, {"connections", len(r.visibleConnections())},
		{"exchanges", f.exchanges}, {"queues", f.queues}}
}

func exchangeTypeObjects() []object {
	var list []object
	for _, t := range exchangeTypes {
		list = append(list, object{{"name", t.name}, {"description", t.description}, {"enabled", true}})
	}
	return list
}

func (s *Server) listenerObjects() []object {
	list := []object{}
	for _, l := range s.listening() {
		list = append(list, object{
			{"node", s.cfg.Node}, {"protocol", l.protocol}, {"ip_address", l.addr.Addr().String()}, {"port", int(l.addr.Port())},
			{"socket_opts", object{{"nodelay", true}}},
		})
	}
	return list
}

// contextObjects are the addresses of the API. The port is a string (RabbitMQ 4.0).
func (s *Server) contextObjects() []object {
	list := []object{}
	for _, l := range s.listening() {
		if l.protocol == "http" || l.protocol == "https" {
			list = append(list, object{
				{"ssl_opts", []any{}}, {"node", s.cfg.Node}, {"description", "RabbitMQ Management"}, {"path", "/"},
				{"ip", l.addr.Addr().String()}, {"port", strconv.Itoa(int(l.addr.Port()))}, {"protocol", l.protocol},
			})
		}
	}
	return list
}

// clusterName is the global parameter of this name, or what the configuration says.
func (s *Server) clusterName() string {
	var name string
	if raw, ok := s.cfg.VHosts.Globals()["cluster_name"]; ok && json.Unmarshal(raw, &name) == nil && name != "" {
		return name
	}
	return s.cfg.ClusterName
}

func clusterName(r *request) (reply, error) {
	return ok(object{{"name", r.s.clusterName()}})
}

// clusterID is what tells clusters apart that have the same name; it is the name where
// there is no id.
func (s *Server) clusterID() string {
	var id string
	if json.Unmarshal(s.cfg.VHosts.Globals()[ClusterID], &id) != nil { // definitions may have anything
		return s.clusterName()
	}
	return id
}

func putClusterName(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("name"); err != nil {
		return reply{}, err
	}
	name, isText := b["name"].(string)
	if !isText {
		return reply{}, badRequest("name must be a string")
	}
	raw, err := json.Marshal(name)
	if err != nil {
		return reply{}, err
	}
	return done(r.s.cfg.VHosts.SetGlobal("cluster_name", raw))
}

func reset(r *request) (reply, error) {
	if !r.namesThisNode() {
		return reply{}, errNotFound
	}
	r.s.sampler.reset()
	return noContent, nil
}

// namesThisNode says whether the path's node is this one, or there is none in it.
func (r *request) namesThisNode() bool { return r.arg("node") == "" || r.arg("node") == r.s.cfg.Node }

// nothing is for what there is nothing to do about on one node.
func nothing(*request) (reply, error) { return noContent, nil }

// noObjects is for lists that are always empty here.
func noObjects(*request) (reply, error) { return ok([]object{}) }
