package exchange

import (
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// headers routes by the message's header table: a binding's arguments say which
// fields it wants (spec §3.1.3.4).
type headers struct {
	always headersList // bindings that every message meets
	index  headersIndex
	of     map[*Binding]*headersBinding
}

// A headersBinding is a binding with its arguments prepared.
type headersBinding struct {
	binding *Binding
	any     bool // one of wants is enough; else all must be met
	wants   []want
	places  []headersPlace
}

func newHeaders(frames.Table) (Router, error) {
	return &headers{index: make(headersIndex), of: make(map[*Binding]*headersBinding)}, nil
}

// Check looks at x-match only.
func (h *headers) Check(_ string, args frames.Table, _ queue.Queue) error {
	_, err := matchModeOf(args)
	return err
}

func (h *headers) Bind(b *Binding) {
	hb := prepareHeaders(b)
	h.of[b] = hb
	switch {
	case hb.any:
		for i := range hb.wants {
			h.index.add(&hb.wants[i], hb)
		}
	case len(hb.wants) == 0:
		h.always.add(hb, nil)
	default:
		h.index.add(h.index.rarest(hb.wants), hb)
	}
}

func (h *headers) Unbind(b *Binding) {
	hb := h.of[b]
	for i := range hb.places {
		p := hb.places[i] // as the removals before have left it
		p.list.remove(p.i)
		if p.want != nil {
			h.index.prune(p.want)
		}
	}
	delete(h.of, b)
}

func (h *headers) Route(m *message.Message, to *Matches) {
	for _, e := range h.always {
		to.add(e.binding.binding)
	}
	table := headerTable(m)
	for rest := table; len(rest) > 0; {
		var f headerField
		f, rest = nextField(rest)
		h.index.route(table, f, to)
	}
}

func (h *headers) ByKey() bool { return false }

// headerTable returns the contents of the message's header table, without the
// length prefix; nil if it has none.
func headerTable(m *message.Message) []byte {
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return nil
	}
	return p.Headers
}

// A matchMode is the argument x-match of a headers binding.
type matchMode struct {
	any   bool
	withX bool // fields whose names begin with "x-" count too
}

// matchModeOf returns the mode that a binding's arguments ask for.
// RabbitMQ 4.0: all if there is no x-match.
func matchModeOf(args frames.Table) (matchMode, error) {
	v, ok := args.Lookup("x-match")
	if !ok {
		return matchMode{}, nil
	}
	s, ok := v.(string)
	if !ok {
		return matchMode{}, frames.Errorf(frames.PreconditionFailed,
			"Invalid x-match field type %s (value %s); expected longstr", frames.TypeName(v), frames.Term(v))
	}
	switch s {
	case "all":
		return matchMode{}, nil
	case "any":
		return matchMode{any: true}, nil
	case "all-with-x":
		return matchMode{withX: true}, nil
	case "any-with-x":
		return matchMode{any: true, withX: true}, nil
	}
	return matchMode{}, frames.Errorf(frames.PreconditionFailed,
		"Invalid x-match field value %s; expected all, any, all-with-x, or any-with-x", frames.Term(v))
}

func prepareHeaders(b *Binding) *headersBinding {
	mode, _ := matchModeOf(b.Arguments) // Check has seen them
	hb := &headersBinding{binding: b, any: mode.any}
	for _, f := range b.Arguments.Sorted() {
		if f.Name == "x-match" || !mode.withX && strings.HasPrefix(f.Name, "x-") {
			continue
		}
		hb.wants = append(hb.wants, newWant(f.Name, f.Value))
	}
	return hb
}

// matches says whether a header table meets the binding. Without a want, all of
// none are met and any of none is not.
func (b *headersBinding) matches(table []byte) bool {
	for i := range b.wants {
		w := &b.wants[i]
		tag, value, ok := frames.FindField(table, w.name)
		if (ok && w.meets(tag, value)) == b.any {
			return b.any
		}
	}
	return !b.any
}
