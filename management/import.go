package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// importDefinitions handles POST /definitions.
func importDefinitions(r *request) (reply, error) {
	b, err := r.definitionsBody()
	if err != nil {
		return reply{}, err
	}
	return done((&importing{s: r.s, user: r.account(), defs: b}).run())
}

// importVHost handles POST /definitions/V. Users in it are ignored (RabbitMQ 4.0).
func importVHost(r *request) (reply, error) {
	b, err := r.definitionsBody()
	if err != nil {
		return reply{}, err
	}
	for _, section := range []string{"users", "vhosts", "permissions", "topic_permissions", "global_parameters"} {
		delete(b, section)
	}
	return done((&importing{s: r.s, user: r.account(), defs: b, into: r.vhost}).run())
}

// ImportDefinitions imports a file of definitions, as at the start of the broker.
func (s *Server) ImportDefinitions(raw []byte) error {
	b, err := parseDefinitions(raw)
	if err != nil {
		return err
	}
	return ofFile((&importing{s: s, defs: b}).run())
}

// CheckDefinitions says what keeps ImportDefinitions from reading a file: it is not one
// JSON object with lists of objects. What those are about only the import finds wrong.
func CheckDefinitions(raw []byte) error {
	b, err := parseDefinitions(raw)
	if err != nil {
		return err
	}
	i := &importing{defs: b}
	for _, section := range i.sections() {
		section.parallel, section.add = 1, func(body) error { return nil }
		if err := i.each(section); err != nil {
			return ofFile(err)
		}
	}
	return nil
}

func parseDefinitions(raw []byte) (body, error) {
	b, err := parseBody(raw)
	if err != nil {
		return nil, fmt.Errorf("%w; want one JSON object, as GET /api/definitions and leveret export_definitions give it", whereInJSON(raw, err))
	}
	return b, nil
}

// ofFile makes an answer of the API an error about a file.
func ofFile(err error) error {
	if f := failureOf(err); err != nil && f != nil {
		return errors.New(f.reason)
	}
	return err
}

// whereInJSON says in which line an error of reading JSON is, and what there is in
// place of an object.
func whereInJSON(raw []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("no JSON object but " + e.Value)
	}
	e, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case ok:
		return fmt.Errorf("line %d: %w", lineAt(raw, e.Offset), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: it ends in the middle", lineAt(raw, int64(len(bytes.TrimRight(raw, " \t\r\n")))))
	case errors.Is(err, io.EOF):
		return errors.New("nothing in it")
	}
	return err
}

// lineAt is the line, from 1, of a place in a text.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n"))
}

func (i *importing) acting() *acting { return i.s.acting(i.user) }

// definitionsBody reads the body: JSON, or a form with it in the field file. The header
// must say which (RabbitMQ 4.0): a browser sends text of any page's making without asking.
func (r *request) definitionsBody() (body, error) {
	var read func() ([]byte, error)
	switch mediaType(r.http.Header) {
	case "application/json":
		read = r.rawBody
	case "multipart/form-data":
		read = r.formFile
	default:
		return nil, errNotDefinitions
	}
	raw, err := read()
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return body{}, nil
	}
	b, err := parseBody(raw)
	if err != nil {
		return nil, badRequest("failed_to_parse_json: %s", whereInJSON(raw, err))
	}
	return b, nil
}

func (r *request) formFile() ([]byte, error) {
	r.http.Body = http.MaxBytesReader(r.w, r.http.Body, r.s.cfg.MaxBodySize)
	file, _, err := r.http.FormFile("file")
	if err != nil {
		return nil, badRequest("the form has no field 'file' with definitions: %s", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(file)
	if err != nil {
		return nil, badRequest("the file could not be read: %s", err)
	}
	return raw, nil
}

// An importing is one import of definitions. It adds and overwrites, and never
// removes; queues, exchanges and bindings that are there stay as they are
// (RabbitMQ 4.0).
type importing struct {
	s    *Server
	user string // who imports; "" is the broker itself
	defs body
	into *vhost.VHost // all items go here; nil is to where they say
}

// A section is a list of definitions of a kind.
type section struct {
	name     string
	add      func(item body) error
	parallel int  // so many at a time share the store's commits
	stops    bool // at the first wrong item; the others import the rest
}

// sections are in RabbitMQ's order, and stop where it does (RabbitMQ 4.0).
func (i *importing) sections() []section {
	return []section{
		{"users", i.addUser, 1, false},
		{"vhosts", i.addVHost, 1, false},
		{"permissions", i.addPermission, 1, false},
		{"exchanges", i.addExchange, importWriters, false},
		{"topic_permissions", i.addTopicPermission, 1, false},
		{"global_parameters", i.addGlobal, 1, true},
		{"policies", i.addPolicy, 1, true},
		{"parameters", i.addParameter, 1, true},
		{"queues", i.addQueue, importWriters, false},
		{"bindings", i.addBinding, importWriters, false},
	}
}

// run imports the sections in their order and ends with the first in which something
// is wrong (RabbitMQ 4.0).
func (i *importing) run() error {
	sections := i.sections()
	for n, section := range sections {
		if section.name == "permissions" { // the vhosts are there
			if err := i.checkQueueLimits(); err != nil {
				return err
			}
		}
		err := i.each(section)
		if w, ok := errors.AsType[*wrongItems](err); ok {
			return badRequest("%s%s", w.first.reason, i.outcome(sections, n, w))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkQueueLimits refuses to import some of a vhost's queues, when all would be too
// many (RabbitMQ 4.0).
func (i *importing) checkQueueLimits() error {
	list, _ := i.defs["queues"].([]any)
	added := map[*vhost.VHost]map[string]bool{}
	for _, v := range list {
		item, _ := v.(map[string]any)
		name, in, err := i.named(item)
		if err != nil {
			continue // the import finds that wrong
		}
		if _, missing := in.QueueInfo(name); missing == nil {
			continue
		}
		if added[in] == nil {
			added[in] = map[string]bool{}
		}
		added[in][name] = true
	}
	for v, names := range added {
		limit, there := v.Limits().MaxQueues, len(v.QueueRefs())
		if limit >= 0 && int64(there+len(names)) > limit {
			return badRequest("Adding %d queue(s) to virtual host %q would exceed the limit of %d queue(s).\n\n"+
				"This virtual host currently has %d queue(s) defined.\n\nImport aborted!", len(names), v.Name(), limit, there)
		}
	}
	return nil
}

// outcome says what was imported beside the wrong items of a section, and what not.
func (i *importing) outcome(sections []section, at int, w *wrongItems) string {
	var text string
	if more := w.wrong - 1; more > 0 {
		text = fmt.Sprintf("; wrong, too: %d of %s", more, sections[at].name)
	}
	imported := i.present(sections[:at])
	if w.good > 0 {
		imported = append(imported, fmt.Sprintf("%d of %s", w.good, sections[at].name))
	}
	if len(imported) > 0 {
		text += "; imported: " + strings.Join(imported, ", ")
	}
	left := i.present(sections[at+1:])
	if w.left > 0 {
		left = slices.Insert(left, 0, fmt.Sprintf("%d of %s", w.left, sections[at].name))
	}
	if len(left) > 0 {
		text += "; not imported: " + strings.Join(left, ", ")
	}
	return text
}

// present are the names of those sections in which there is something.
func (i *importing) present(sections []section) (names []string) {
	for _, s := range sections {
		if list, _ := i.defs[s.name].([]any); len(list) > 0 {
			names = append(names, s.name)
		}
	}
	return names
}

// importWriters is how many definitions are written at a time.
const importWriters = 64

// wrongItems is the error of a section with items that are wrong.
type wrongItems struct {
	first       *failure // of the list
	at          int      // its place there
	wrong, good int      // items
	left        int      // likewise: not tried
}

func (w *wrongItems) Error() string { return w.first.Error() }

func (w *wrongItems) Unwrap() error { return w.first }

// each adds the items of a section. It ends with an error that is not one of an item,
// and where the section stops.
func (i *importing) each(s section) error {
	list, isList := i.defs[s.name].([]any)
	if !isList && i.defs[s.name] != nil {
		return badRequest("%s must be a list", s.name)
	}
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		mu     sync.Mutex // guards what follows
		items  wrongItems
		broken error
	)
	note := func(n int, err error) (goOn bool) {
		mu.Lock()
		defer mu.Unlock()
		switch f := failureOf(err); {
		case err == nil:
			items.good++
		case f == nil:
			broken = err
		default:
			if items.first == nil || n < items.at {
				items.first, items.at = f, n
			}
			items.wrong++
		}
		return broken == nil && (items.wrong == 0 || !s.stops)
	}
	for range min(s.parallel, len(list)) {
		wg.Go(func() { // ends with the list or an error that ends the section
			for {
				n := int(next.Add(1)) - 1
				if n >= len(list) || !note(n, addItem(s.name, n, list[n], s.add)) {
					return
				}
			}
		})
	}
	wg.Wait()
	if broken != nil || items.first == nil {
		return broken
	}
	items.left = len(list) - items.good - items.wrong
	return &items
}

// addItem adds an item. All that is wrong with it is a 400, which says where it is.
func addItem(section string, n int, v any, add func(item body) error) error {
	item, isObject := v.(map[string]any)
	if !isObject {
		return badRequest("item %d of %s must be an object", n, section)
	}
	err := add(item)
	f := failureOf(err)
	if f == nil { // nothing is wrong, or not with the item
		return err
	}
	return badRequest("%s (item %d of %s%s)", strings.TrimSuffix(f.reason, "\n"), n, section, called(item))
}

// called is how an item is called, for an error; "" if it has no name.
func called(item body) string {
	for _, name := range []string{"name", "user", "source"} {
		if text, _ := item[name].(string); text != "" {
			return fmt.Sprintf(", %s '%s'", name, text)
		}
	}
	return ""
}

// vhost finds the vhost of an item.
func (i *importing) vhost(item body) (*vhost.VHost, error) {
	if i.into != nil {
		return i.into, nil
	}
	if err := item.need("vhost"); err != nil {
		return nil, err
	}
	name, err := item.text("vhost")
	if err != nil {
		return nil, err
	}
	v, exists := i.s.cfg.VHosts.Get(name)
	if !exists {
		return nil, badRequest("Please create virtual host \"%s\" prior to importing definitions.", name)
	}
	return v, nil
}

// named is the item's name and vhost.
func (i *importing) named(item body) (string, *vhost.VHost, error) {
	if err := item.need("name"); err != nil {
		return "", nil, err
	}
	name, err := item.text("name")
	if err != nil {
		return "", nil, err
	}
	v, err := i.vhost(item)
	return name, v, err
}

func (i *importing) addUser(item body) error {
	if err := item.need("name"); err != nil {
		return err
	}
	name, err := item.text("name")
	if err != nil {
		return err
	}
	if item["password_hash"] != nil {
		delete(item, "password") // an export has the hash, and one of them counts
		if item["hashing_algorithm"] == nil && i.beforeSHA256() {
			item["hashing_algorithm"] = string(auth.MD5)
		}
	}
	limits, _ := item["limits"].(map[string]any)
	if err := checkUserLimits(limits); err != nil {
		return err // and no user without its limits
	}
	if _, err := i.acting().putUser(name, item); err != nil {
		return err
	}
	return i.acting().setUserLimits(name, limits)
}

// beforeSHA256 says that the definitions are of a RabbitMQ whose hashes were MD5: one
// before 3.6.
func (i *importing) beforeSHA256() bool {
	version, _ := i.defs["rabbit_version"].(string)
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	first, err := strconv.Atoi(major)
	second, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (first < 3 || first == 3 && second < 6)
}

func (i *importing) addVHost(item body) error {
	if err := item.need("name"); err != nil {
		return err
	}
	name, err := item.text("name")
	if err != nil {
		return err
	}
	var options vhost.Options
	if v, exists := i.s.cfg.VHosts.Get(name); exists {
		options = v.Options()
	}
	if metadata, isObject := item["metadata"].(map[string]any); isObject {
		if err := readOptions(metadata, &options); err != nil {
			return err
		}
	}
	if err := readOptions(item, &options); err != nil {
		return err
	}
	tracing, err := item.boolean("tracing")
	if err != nil {
		return err
	}
	if err := i.acting().createVHost(name, options); err != nil {
		return err
	}
	if v, exists := i.s.cfg.VHosts.Get(name); exists && item["tracing"] != nil {
		v.SetTracing(tracing)
	}
	return nil
}

func (i *importing) addPermission(item body) error {
	user, vhost, err := userAndVHost(item)
	if err != nil {
		return err
	}
	return i.acting().grant(user, vhost, item)
}

func (i *importing) addTopicPermission(item body) error {
	user, vhost, err := userAndVHost(item)
	if err != nil {
		return err
	}
	_, err = i.acting().grantTopic(user, vhost, item)
	return err
}

func userAndVHost(item body) (user, vhost string, err error) {
	if err := item.need("user", "vhost"); err != nil {
		return "", "", err
	}
	if user, err = item.text("user"); err != nil {
		return "", "", err
	}
	vhost, err = item.text("vhost")
	return user, vhost, err
}

// addGlobal sets a global parameter. RabbitMQ 4.0 takes and exports one without a
// value: there is nothing to set.
func (i *importing) addGlobal(item body) error {
	if err := item.need("name"); err != nil {
		return err
	}
	name, err := item.text("name")
	if err != nil {
		return err
	}
	if _, there := item["value"]; !there {
		return nil
	}
	return i.s.cfg.VHosts.SetGlobal(name, appendJSON(nil, item["value"]))
}

func (i *importing) addPolicy(item body) error {
	name, v, err := i.named(item)
	if err != nil {
		return err
	}
	p, err := readPolicy(name, item)
	if err != nil {
		return err
	}
	err = v.SetPolicy(vhost.System, p, false)
	if e, isProtocol := errors.AsType[*frames.Error](err); isProtocol {
		return badRequest("%s (%s/%s)", e.Text, v.Name(), name)
	}
	return err
}

func (i *importing) addParameter(item body) error {
	if err := item.need("component", "value"); err != nil {
		return err
	}
	name, v, err := i.named(item)
	if err != nil {
		return err
	}
	component, err := item.text("component")
	if err != nil {
		return err
	}
	return setParameter(v, vhost.System, component, name, item["value"])
}

func (i *importing) addExchange(item body) error {
	name, v, err := i.named(item)
	if err != nil {
		return err
	}
	if _, missing := v.ExchangeInfo(name); missing == nil {
		return nil
	}
	durableUnlessSaid(item)
	d, err := readExchange(name, item)
	if err != nil {
		return err
	}
	return v.DeclareExchange(vhost.System, d)
}

func (i *importing) addQueue(item body) error {
	name, v, err := i.named(item)
	if err != nil {
		return err
	}
	if _, missing := v.QueueInfo(name); missing == nil {
		return nil
	}
	durableUnlessSaid(item)
	d, err := readQueue(name, item)
	if err != nil {
		return err
	}
	d.Imported = true
	_, err = v.DeclareQueue(vhost.System, d)
	return err
}

// durableUnlessSaid completes a definition that was written by hand: RabbitMQ 4.0
// makes such a queue durable.
func durableUnlessSaid(item body) {
	if _, said := item["durable"]; !said {
		item["durable"] = true
	}
}

func (i *importing) addBinding(item body) error {
	if err := item.need("source", "destination", "destination_type"); err != nil {
		return err
	}
	v, err := i.vhost(item)
	if err != nil {
		return err
	}
	var e ends
	if e.source, err = item.text("source"); err != nil {
		return err
	}
	if e.destination, err = item.text("destination"); err != nil {
		return err
	}
	switch item["destination_type"] {
	case "exchange":
		e.toExchange = true
	case "queue":
	default:
		return badRequest("destination_type must be 'queue' or 'exchange'")
	}
	key, args, err := readBinding(item)
	if err != nil || e.source == "" {
		return err // the default exchange has its bindings by itself
	}
	return addBinding(v, vhost.System, e, key, args)
}
