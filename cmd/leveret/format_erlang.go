package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// plainAtom is a word that Erlang takes as an atom without quotes.
var plainAtom = regexp.MustCompile(`^[a-z][A-Za-z0-9_@]*$`)

// appendErlang writes a list with a list of pairs for each row (RabbitMQ 4.0:
// --formatter erlang).
func (t *table) appendErlang(b *bytes.Buffer) {
	b.WriteByte('[')
	for i, row := range t.rows {
		if i > 0 {
			b.WriteString(",\n ")
		}
		pairs := make([]string, len(row))
		for c, cell := range row {
			pairs[c] = "{" + erlangAtom(t.columns[c]) + "," + erlangText(cell) + "}"
		}
		b.WriteString("[" + strings.Join(pairs, ",") + "]")
	}
	b.WriteString("]\n")
}

func erlangAtom(name string) string {
	if plainAtom.MatchString(name) {
		return name
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
}

// erlangText is a value as a term of Erlang.
func erlangText(raw json.RawMessage) string {
	if raw == nil {
		return "undefined"
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	t, err := dec.Token()
	if err != nil {
		return "undefined"
	}
	return erlangToken(dec, t)
}

func erlangToken(dec *json.Decoder, t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		return erlangList(dec, t == '{')
	case string:
		return erlangBinary(t)
	case nil:
		return "undefined"
	default:
		return fmt.Sprint(t)
	}
}

// erlangList is the rest of an array, or of an object as a list of pairs.
func erlangList(dec *json.Decoder, pairs bool) string {
	var items []string
	for dec.More() {
		item := ""
		t, _ := dec.Token() // the decoder of a whole value: it was checked when it came
		if pairs {
			name, _ := t.(string)
			value, _ := dec.Token()
			item = "{" + erlangBinary(name) + "," + erlangToken(dec, value) + "}"
		} else {
			item = erlangToken(dec, t)
		}
		items = append(items, item)
	}
	_, _ = dec.Token() // the closing bracket
	return "[" + strings.Join(items, ",") + "]"
}

// erlangBinary is a text; what is not ASCII needs a type.
func erlangBinary(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return "<<" + strconv.Quote(s) + "/utf8>>"
	}
	return "<<" + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` + ">>"
}
