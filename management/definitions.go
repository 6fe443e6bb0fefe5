package management

import (
	"mime"
	"net/http"
	"strings"

	"github.com/leveretmq/leveret/vhost"
)

// explanation goes into exported definitions for people.
const explanation = "Definitions of the whole broker; GET /api/definitions/VHOST has those of one virtual host."

// exportDefinitions handles GET /definitions. The order of the members is
// RabbitMQ 4.0's.
func exportDefinitions(r *request) (reply, error) {
	r.download()
	return ok(r.s.definitions())
}

func (s *Server) definitions() object {
	o := object{
		{"rabbit_version", s.cfg.CompatibleVersion}, {"rabbitmq_version", s.cfg.CompatibleVersion},
		{"product_name", s.cfg.Product}, {"product_version", s.cfg.ProductVersion},
		{"rabbitmq_definition_format", "cluster"}, {"original_cluster_name", s.clusterName()}, {"explanation", explanation},
	}
	users, permissions, topics := []object{}, []object{}, []object{}
	for a := range s.cfg.Auth.Users() {
		users = append(users, accountObject(a))
	}
	for p := range s.cfg.Auth.Permissions("", "") {
		permissions = append(permissions, permissionObject(p))
	}
	for p := range s.cfg.Auth.TopicPermissions("", "") {
		topics = append(topics, topicPermissionObject(p))
	}
	vhosts := []object{}
	var all topology
	for _, name := range s.cfg.VHosts.Names() {
		if v, exists := s.cfg.VHosts.Get(name); exists {
			vhosts = append(vhosts, append(object{{"name", name}}, s.vhostOptions(v)...))
			all.add(v, name)
		}
	}
	o = append(o, member{"users", users}, member{"vhosts", vhosts}, member{"permissions", permissions}, member{"topic_permissions", topics},
		member{"parameters", notNil(all.parameters)}, member{"global_parameters", s.globals()})
	return append(o, all.members()...)
}

// exportVHost handles GET /definitions/V: without users, and without the
// vhost's name in the items, so that it can be imported into another one.
func exportVHost(r *request) (reply, error) {
	v, exists := r.s.cfg.VHosts.Get(r.arg("vhost"))
	if !exists {
		return reply{}, badRequest("vhost_not_found")
	}
	r.download()
	cfg := &r.s.cfg
	var all topology
	all.add(v, "")
	options := r.s.vhostOptions(v)
	description, _ := options.get("description")
	metadata, _ := options.get("metadata")
	queueType, _ := options.get("default_queue_type")
	o := object{
		{"rabbit_version", cfg.CompatibleVersion}, {"rabbitmq_version", cfg.CompatibleVersion},
		{"product_name", cfg.Product}, {"product_version", cfg.ProductVersion},
		{"rabbitmq_definition_format", "single_virtual_host"}, {"original_vhost_name", v.Name()},
		{"explanation", "Definitions of virtual host '" + v.Name() + "'; POST them to /api/definitions/VHOST of any virtual host."}, {"metadata", metadata}, {"description", description}, {"default_queue_type", queueType},
		{"limits", v.Limits().Map()}, {"parameters", notNil(all.parameters)},
	}
	return ok(append(o, all.members()...))
}

// download makes a browser save the answer under the name that is asked for.
func (r *request) download() {
	if file := r.query.Get("download"); file != "" {
		if header := mime.FormatMediaType("attachment", map[string]string{"filename": file}); header != "" {
			r.w.Header().Set("Content-Disposition", header)
		}
	}
}

// A topology gathers what is in vhosts for an export.
type topology struct {
	parameters, policies, queues, exchanges, bindings []object
}

// add adds what is in a vhost. The items get its name, unless that is "".
func (t *topology) add(v *vhost.VHost, name string) {
	in := object{}
	if name != "" {
		in.add("vhost", name)
	}
	for _, p := range parametersOf(v) {
		t.parameters = append(t.parameters, parameterObject(name, p))
	}
	for _, p := range v.Policies(false) {
		t.policies = append(t.policies, policyObject(name, &p))
	}
	for q := range v.Queues() {
		if q.Spec.Exclusive { // it ends with its connection
			continue
		}
		o := append(object{{"name", q.Spec.Name}}, in...)
		t.queues = append(t.queues, append(o, member{"durable", q.Spec.Durable}, member{"auto_delete", q.Spec.AutoDelete},
			member{"arguments", q.Spec.Arguments.Table}))
	}
	for x := range v.Exchanges() {
		if x.Builtin {
			continue
		}
		o := append(object{{"name", x.X.Name}}, in...)
		t.exchanges = append(t.exchanges, append(o, member{"type", x.X.Type}, member{"durable", x.X.Durable},
			member{"auto_delete", x.X.AutoDelete}, member{"internal", x.X.Internal}, member{"arguments", x.X.Arguments}))
	}
	t.addBindings(v, in)
}

// addBindings leaves out those of exclusive queues, which are not exported.
func (t *topology) addBindings(v *vhost.VHost, in object) {
	for b := range v.Bindings() {
		if !b.ToExchange {
			if q, err := v.QueueInfo(b.Destination); err != nil || q.Spec.Exclusive {
				continue
			}
		}
		o := append(object{{"source", b.Source}}, in...)
		t.bindings = append(t.bindings, append(o, member{"destination", b.Destination},
			member{"destination_type", destinationType(b.ToExchange)}, member{"routing_key", b.Key}, member{"arguments", b.Arguments}))
	}
}

// members are those that both forms end with.
func (t *topology) members() object {
	return object{{"policies", notNil(t.policies)}, {"queues", notNil(t.queues)}, {"exchanges", notNil(t.exchanges)}, {"bindings", notNil(t.bindings)}}
}

func notNil(list []object) []object {
	if list == nil {
		return []object{}
	}
	return list
}

// mediaType is what a request's body is, in lower case, without parameters; "" is not
// told.
func mediaType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}
