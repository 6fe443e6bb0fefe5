package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// A request is one call of the API. It belongs to its goroutine.
type request struct {
	s        *Server
	w        http.ResponseWriter
	http     *http.Request
	resource *resource
	segments []string
	query    url.Values

	user  auth.User    // set by the access check
	local bool         // likewise: the user is the local administrator
	vhost *vhost.VHost // set by the access check if the path names one

	scratch object // see queueObject
}

// arg is the value of a variable of the path.
func (r *request) arg(name string) string {
	v, _ := r.resource.variable(name, r.segments)
	return v
}

// exchangeArg is a variable that names an exchange: amq.default is the default
// exchange (RabbitMQ 4.0).
func (r *request) exchangeArg(name string) string {
	if v := r.arg(name); v != "amq.default" {
		return v
	}
	return ""
}

// flag says whether a query parameter is "true".
func (r *request) flag(name string) bool { return r.query.Get(name) == "true" }

// rawBody reads the request's body up to the limit.
func (r *request) rawBody() ([]byte, error) {
	limit := r.s.cfg.MaxBodySize
	b, err := r.readBody(limit)
	if errors.Is(err, errTooLarge) {
		err = badRequest("the request body is larger than the limit of %d bytes; raise management.http.max_body_size", limit)
	}
	return b, err
}

var errTooLarge = errors.New("the request body is too large")

// readBody reads the request's body; errTooLarge if it has more than limit bytes.
func (r *request) readBody(limit int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, &steadyBody{r.http.Body, http.NewResponseController(r.w)}, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, badRequest("the request body could not be read: %s", err)
	}
	return b, nil
}

// A steadyBody ends with an error when nothing of it has come for as long as a
// slowClient may take.
type steadyBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *steadyBody) Read(p []byte) (n int, err error) {
	b.control.SetReadDeadline(time.Now().Add(slowClient)) // a test's writer has none
	if n, err = b.ReadCloser.Read(p); err == io.EOF {
		b.control.SetReadDeadline(time.Time{}) // of the connection, for the next request
	}
	return n, err
}

// body reads the request's body, a JSON object. No body is an empty one, and so is
// null (RabbitMQ 4.0).
func (r *request) body() (body, error) {
	raw, err := r.rawBody()
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return body{}, nil
	}
	switch b, err := parseBody(raw); {
	case err == nil:
		return b, nil
	case string(bytes.TrimSpace(raw)) == "null":
		return body{}, nil
	case json.Valid(raw) && bytes.TrimSpace(raw)[0] == '"':
		return nil, errTwiceJSON
	}
	return nil, errNotJSON
}

// A body is a decoded JSON object; numbers are json.Number.
type body map[string]any

// parseBody reads one JSON object. Text that is no Unicode is refused (RabbitMQ 4.0):
// the decoder would put other characters in its place.
func parseBody(raw []byte) (body, error) {
	if !utf8.Valid(raw) || hasLoneSurrogate(raw) {
		return nil, errors.New("text that is no Unicode")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var b body
	if err := dec.Decode(&b); err != nil {
		return nil, err
	}
	if dec.More() || b == nil {
		return nil, errors.New("no single JSON object")
	}
	return b, nil
}

// hasLoneSurrogate says whether an escape in JSON, \uD800 to \uDFFF, is not one half
// of a pair.
func hasLoneSurrogate(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return false
		}
		r, ok := escapedUnit(raw[i:])
		if !ok {
			raw = raw[i+2:]
			continue
		}
		raw = raw[i+6:]
		if !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := escapedUnit(raw)
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return true
		}
		raw = raw[6:]
	}
}

// escapedUnit is the UTF-16 code unit of the escape \uXXXX that a text begins with.
func escapedUnit(raw []byte) (unit rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

// need says which of the members are missing, as RabbitMQ does.
func (b body) need(names ...string) error {
	var missing []string
	for _, name := range names {
		if _, ok := b[name]; !ok {
			missing = append(missing, "{key_missing,"+name+"}")
		}
	}
	if missing == nil {
		return nil
	}
	text := strings.Join(missing, ",")
	if len(text) > maxTermLine {
		text = strings.Join(missing, ",\n ")
	}
	return badRequest("[%s]", text)
}

// maxTermLine is the length from which RabbitMQ 4.0 prints a list on several lines,
// without its brackets.
const maxTermLine = 76

// text is a string member; "" if it is absent or null.
func (b body) text(name string) (string, error) {
	switch v := b[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", badRequest("%s must be a string", name)
}

// string is a string member that must be there and not be null.
func (b body) string(name string) (string, error) {
	if text, isText := b[name].(string); isText {
		return text, nil
	}
	return "", badRequest("%s must be a string", name)
}

// only refuses members that are none of these. In requests that RabbitMQ does not
// have a name that is misspelt must not mean everything.
func (b body) only(names ...string) error {
	for name := range b {
		if !slices.Contains(names, name) {
			return badRequest("unknown member '%s'; the members are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// limited is an integer member from 0 to limit, which larger ones are; ok is false if
// it is absent.
func (b body) limited(name string, limit int64) (n int, ok bool, err error) {
	v, ok, err := b.integer(name)
	if err == nil && v < 0 {
		err = badRequest("%s must not be negative", name)
	}
	return int(min(v, limit)), ok, err
}

// boolean is a bool member, which may be given as a string (RabbitMQ 4.0:
// rabbitmqadmin does); false if it is absent.
func (b body) boolean(name string) (bool, error) {
	switch v := b[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		switch v {
		case "true":
			return true, nil
		case "false", "":
			return false, nil
		}
	}
	return false, badRequest("%s must be true or false", name)
}

// integer is a member that is an integer or a string that holds one; ok is
// false if it is absent.
func (b body) integer(name string) (n int64, ok bool, err error) {
	var text string
	switch v := b[name].(type) {
	case nil:
		return 0, false, nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	n, isInt := parseInteger(text)
	if !isInt {
		return 0, false, badRequest("%s must be an integer", name)
	}
	return n, true, nil
}

// parseInteger reads an integer; 5.0 is one, too.
func parseInteger(s string) (int64, bool) {
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// tags is a member that is a list of strings or one string with commas; ok is
// false if it is absent.
func (b body) tags(name string) (list []string, ok bool, err error) {
	switch v := b[name].(type) {
	case nil:
		return nil, false, nil
	case string:
		for t := range strings.SplitSeq(v, ",") {
			if t = strings.TrimSpace(t); t != "" {
				list = append(list, t)
			}
		}
		return list, true, nil
	case []any:
		for _, t := range v {
			s, isString := t.(string)
			if !isString {
				return nil, false, badRequest("%s must be a list of strings", name)
			}
			list = append(list, s)
		}
		return list, true, nil
	}
	return nil, false, badRequest("%s must be a list of strings or one string with commas", name)
}

// table is an object member as a field table in order of name, one that can be read
// back when it was written.
func (b body) table(name string) (frames.Table, error) {
	switch v := b[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		t := tableOf(v)
		if t.CheckNumbers() != nil {
			return nil, errNotJSON // as RabbitMQ 4.0 says of a number like 1e999
		}
		if _, err := frames.ParseTable(frames.AppendTable(nil, t)[4:]); err != nil {
			return nil, badRequest("%s is no field table that can be read back: %s", name, err)
		}
		return t, nil
	case []any:
		if len(v) == 0 { // what an empty table looks like in PHP
			return nil, nil
		}
	}
	return nil, badRequest("%s must be an object", name)
}

// tableOf turns a JSON object into a field table: integers are of type long,
// other numbers double (RabbitMQ 4.0).
func tableOf(m map[string]any) frames.Table {
	t := make(frames.Table, 0, len(m))
	for name, v := range m {
		t = append(t, frames.Field{Name: name, Value: fieldValue(v)})
	}
	return t.Sorted()
}

func fieldValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range is infinite, which is a double, too
		return f
	case map[string]any:
		return tableOf(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = fieldValue(v[i])
		}
		return list
	}
	return v
}
