package management

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/pattern"
)

// A list is an answer with many objects. They are made when it is known which
// of them are wanted.
type list struct {
	rows    []row // shared: not to be changed
	details details
	// unpaged lists ignore page and filter (RabbitMQ 4.0).
	unpaged bool
}

// A row is one object of a list, in the list's default order. Name is what the
// filter looks at. Rows may be kept and shown to several requests.
type row struct {
	vhost, name string
	object      func(r *request, d details) object
}

// rows answers with a list that can be paged.
func (r *request) rows(all []row) (reply, error) {
	d, err := r.details()
	return reply{list: &list{rows: all, details: d}}, err
}

// plain answers with a list that is never paged.
func plain(all []object) (reply, error) {
	l := &list{unpaged: true, rows: make([]row, len(all))}
	for i, o := range all {
		l.rows[i] = row{object: func(*request, details) object { return o }}
	}
	return reply{list: l}, nil
}

// heavyFrom is the length from which a list waits for its turn, so that many
// requests for long ones take one processor of four at most, and is sent in bits.
const heavyFrom = 1000

// write answers with what the query asks for.
func (l *list) write(r *request) error {
	p, err := r.paging()
	if err != nil {
		return err
	}
	if l.unpaged || p == nil {
		l.sort(r)
		if len(l.rows) >= heavyFrom {
			l.stream(r)
			return nil
		}
		b := r.s.buffer()
		*b, _ = l.append(*b, r, l.rows)
		r.writeRaw(http.StatusOK, *b)
		r.s.release(b)
		return nil
	}
	return l.writePage(r, p)
}

// writePage answers with one page.
func (l *list) writePage(r *request, p *paging) error {
	total := len(l.rows)
	if p.match != nil {
		l.rows = matching(l.rows, p.match)
	}
	filtered := len(l.rows)
	from := p.from()
	if from >= filtered && p.page > 1 {
		return &failure{http.StatusBadRequest, "page_out_of_range", pageOutOfRange(p, filtered)}
	}
	l.sort(r)
	items, b := r.s.buffer(), r.s.buffer()
	var n int
	*items, n = l.append(*items, r, l.rows[from:min(from+p.size, filtered)])
	*b = appendObject(*b, object{
		{"filtered_count", filtered},
		{"item_count", n},
		{"items", json.RawMessage(*items)},
		{"page", p.page},
		{"page_count", (filtered + p.size - 1) / p.size},
		{"page_size", p.size},
		{"total_count", total},
	})
	r.writeRaw(http.StatusOK, *b)
	r.s.release(items)
	r.s.release(b)
	return nil
}

// from is how many objects come before the page. Beyond the largest list it stays
// where it is: no list has so many.
func (p *paging) from() int { return min(p.page-1, math.MaxInt32/p.size) * p.size }

func pageOutOfRange(p *paging, n int) string {
	return fmt.Sprintf("Page out of range, page: %d page size: %d, len: %d", p.page, p.size, n)
}

func matching(all []row, match func(name string) bool) []row {
	var kept []row
	for _, w := range all {
		if match(w.name) {
			kept = append(kept, w)
		}
	}
	return kept
}

// append appends rows as a JSON array and says how many there were: what has gone
// meanwhile is left out.
func (l *list) append(dst []byte, r *request, rows []row) (out []byte, n int) {
	out, n = l.appendRows(append(dst, '['), r, rows, 0)
	return append(out, ']'), n
}

// appendRows appends rows with commas between them, and before them if there were
// any. It returns how many there are then.
func (l *list) appendRows(dst []byte, r *request, rows []row, before int) (out []byte, n int) {
	columns := r.columns()
	n = before
	for _, w := range rows {
		o := w.object(r, l.details)
		if o == nil {
			continue
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = appendObject(dst, columns.only(o))
		n++
	}
	return dst, n
}

// streamed is how many rows of a long list are made before they are sent. A slow
// client holds the memory of so many, and nobody's turn.
const streamed = 100

// stream answers with a long list bit by bit.
func (l *list) stream(r *request) {
	send := r.begin(http.StatusOK)
	b, n := r.s.buffer(), 0
	defer r.s.release(b)
	*b = append(*b, '[')
	for rows := range slices.Chunk(l.rows, streamed) {
		*b, n = l.turn(*b, r, rows, n)
		if !send(*b) {
			return
		}
		*b = (*b)[:0]
	}
	send(append(*b, ']'))
	send(nil)
}

// turn is appendRows when it is this list's turn.
func (l *list) turn(dst []byte, r *request, rows []row, before int) ([]byte, int) {
	r.s.heavy <- struct{}{}
	defer func() { <-r.s.heavy }()
	return l.appendRows(dst, r, rows, before)
}

// sort sorts by the one key of the query. What is equal keeps its order, or is reversed
// as well (RabbitMQ 4.0).
func (l *list) sort(r *request) {
	key := r.query.Get("sort")
	reverse := r.flag("sort_reverse")
	if key == "" && !reverse {
		return
	}
	l.rows = slices.Clone(l.rows)
	if key == "" {
		slices.Reverse(l.rows)
		return
	}
	type keyed struct {
		row
		key any
	}
	if len(l.rows) >= heavyFrom {
		r.s.heavy <- struct{}{}
		defer func() { <-r.s.heavy }()
	}
	all := make([]keyed, len(l.rows))
	for i, w := range l.rows {
		all[i] = keyed{w, w.sortKey(key)}
		if key != "name" && key != "vhost" || w.name == "" {
			all[i].key = sortable(w.object(r, l.details), key)
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compare(a.key, b.key) })
	if reverse {
		slices.Reverse(all)
	}
	for i := range all {
		l.rows[i] = all[i].row
	}
}

// sortable is the member of an object at a dotted path: a number, a bool or text; nil
// if there is none. It keeps nothing of the object.
func sortable(o object, path string) any {
	v, _ := o.get(path)
	switch v.(type) {
	case object, rateOnly, []object, []any, []string, frames.Table, map[string]any:
		return unordered(appendJSON(nil, v))
	}
	return v
}

// An unordered value comes after all that have an order; its JSON tells it apart.
type unordered string

// sortKey is the key of a row by the two names that need no object.
func (w row) sortKey(key string) any {
	if key == "vhost" {
		return w.vhost
	}
	return w.name
}

// compare orders values of JSON as Erlang orders terms: numbers first, then
// booleans, then text. What is missing is 0 (RabbitMQ 4.0).
func compare(a, b any) int {
	ra, na, sa := sortTerm(a)
	rb, nb, sb := sortTerm(b)
	return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(na, nb), strings.Compare(sa, sb))
}

func sortTerm(v any) (rank int, n float64, s string) {
	switch v := v.(type) {
	case nil:
		return 0, 0, ""
	case float64:
		return 0, v, ""
	case rate:
		return 0, float64(v), ""
	case uint64:
		return 0, float64(v), ""
	case int:
		return 0, float64(v), ""
	case bool:
		return 1, 0, strconv.FormatBool(v)
	case string:
		return 2, 0, v
	case unordered:
		return 3, 0, string(v)
	}
	if n, ok := frames.Integer(v); ok {
		return 0, float64(n), ""
	}
	return 3, 0, string(appendJSON(nil, v))
}

// A paging is which part of a list is wanted.
type paging struct {
	page, size int
	match      func(name string) bool // nil matches all
}

const (
	defaultPageSize = 100
	maxPageSize     = 500
)

// paging reads the query; nil without a page.
func (r *request) paging() (*paging, error) {
	p := &paging{size: defaultPageSize}
	var err error
	if r.query.Has("page_size") {
		if p.size, err = strconv.Atoi(r.query.Get("page_size")); err != nil {
			return nil, badRequest("Pagination parameters are invalid") // without a page, too (RabbitMQ 4.0)
		}
	}
	if !r.query.Has("page") {
		return nil, nil
	}
	if p.page, err = strconv.Atoi(r.query.Get("page")); err != nil {
		return nil, badRequest("Pagination parameters are invalid")
	}
	if p.page < 1 || p.size < 1 || p.size > maxPageSize {
		return nil, &failure{http.StatusBadRequest, "invalid_pagination_parameters",
			fmt.Sprintf("Invalid pagination parameters: page number %d, page size %s", p.page, or(r.query.Get("page_size"), "undefined"))}
	}
	p.match, err = r.nameFilter()
	return p, err
}

// nameFilter is the filter on names: a substring or an expression, both
// without regard to case.
func (r *request) nameFilter() (func(string) bool, error) {
	name := r.query.Get("name")
	if name == "" {
		return nil, nil
	}
	if !r.flag("use_regex") {
		name = strings.ToLower(name)
		return func(s string) bool { return strings.Contains(strings.ToLower(s), name) }, nil
	}
	re, err := pattern.Compile("(?i)" + name)
	if err != nil {
		return nil, badRequest("Pagination parameters are invalid")
	}
	return re.MatchString, nil
}

// columns are the members that an answer is cut down to; nil are all.
type columns []string

func (r *request) columns() columns {
	text := r.query.Get("columns")
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// only returns the object with these columns.
func (c columns) only(o object) object {
	if c == nil {
		return o
	}
	kept := object{}
	for _, m := range o {
		whole, inner := c.of(m.name)
		if whole {
			kept = append(kept, m)
			continue
		}
		if inner == nil {
			continue
		}
		if o, ok := asObject(m.value); ok {
			kept.add(m.name, inner.only(o))
		}
	}
	return kept
}

// of says whether a member is wanted as a whole, or which columns of it.
func (c columns) of(name string) (whole bool, inner columns) {
	for _, column := range c {
		first, rest, deeper := strings.Cut(column, ".")
		switch {
		case first != name:
		case !deeper:
			return true, nil
		default:
			inner = append(inner, rest)
		}
	}
	return false, inner
}
