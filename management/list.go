package management

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leveretmq/leveret/frames"
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
// requests for long ones take one processor of four at most.
const heavyFrom = 1000

// page makes the body: what the query asks for.
func (l *list) page(r *request) (any, error) {
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	if len(l.rows) >= heavyFrom {
		r.s.heavy <- struct{}{}
		defer func() { <-r.s.heavy }()
	}
	if l.unpaged || p == nil {
		l.sort(r)
		return l.objects(r, l.rows), nil
	}
	total := len(l.rows)
	if p.match != nil {
		l.rows = matching(l.rows, p.match)
	}
	filtered := len(l.rows)
	from := (p.page - 1) * p.size
	if from >= filtered && p.page > 1 {
		return nil, &failure{http.StatusBadRequest, "page_out_of_range", pageOutOfRange(p, filtered)}
	}
	l.sort(r)
	items := l.objects(r, l.rows[from:min(from+p.size, filtered)])
	return object{
		{"filtered_count", filtered},
		{"item_count", len(items)},
		{"items", items},
		{"page", p.page},
		{"page_count", (filtered + p.size - 1) / p.size},
		{"page_size", p.size},
		{"total_count", total},
	}, nil
}

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

func (l *list) objects(r *request, wanted []row) []object {
	columns := r.columns()
	items := make([]object, len(wanted))
	for i, w := range wanted {
		items[i] = columns.only(w.object(r, l.details))
	}
	return items
}

// sort sorts by the one key of the query. What is equal keeps its order.
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
	all := make([]keyed, len(l.rows))
	for i, w := range l.rows {
		all[i] = keyed{w, w.sortKey(key)}
		if key != "name" && key != "vhost" || w.name == "" {
			o := w.object(r, l.details)
			all[i].object = func(*request, details) object { return o }
			all[i].key, _ = o.get(key)
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		c := compare(a.key, b.key)
		if reverse {
			return -c
		}
		return c
	})
	for i := range all {
		l.rows[i] = all[i].row
	}
}

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
	text := r.query.Get("page")
	if text == "" {
		return nil, nil
	}
	p := &paging{size: defaultPageSize}
	var err error
	if p.page, err = strconv.Atoi(text); err != nil {
		return nil, badRequest("Pagination parameters are invalid")
	}
	if s := r.query.Get("page_size"); s != "" {
		if p.size, err = strconv.Atoi(s); err != nil {
			return nil, badRequest("Pagination parameters are invalid")
		}
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
	re, err := regexp.Compile("(?i)" + name)
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
