package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table is what a command that lists has found. A cell is JSON; nil is a
// value that is not there.
type table struct {
	columns []string
	rows    [][]json.RawMessage
}

// A look is how a table is printed.
type look struct {
	formatter string // one of formatters
	headers   bool   // for the formatters table and csv
	colours   bool
}

// formatters are the names of --formatter.
var formatters = []string{"table", "json", "pretty_table", "csv", "erlang"}

// machineReadable says whether programs read the format: then there is nothing
// but data in the output (RabbitMQ 4.0).
func machineReadable(formatter string) bool { return formatter == "json" || formatter == "csv" }

func (t *table) write(w io.Writer, l look) error {
	var b bytes.Buffer
	switch l.formatter {
	case "json":
		t.appendJSON(&b)
	case "erlang":
		t.appendErlang(&b)
	case "csv":
		t.appendLines(&b, l.headers && len(t.rows) > 0, ",", csvCell)
	case "pretty_table":
		t.appendBoxes(&b, l.colours)
	default:
		t.appendLines(&b, l.headers && len(t.rows) > 0, "\t", tabCell)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// appendJSON writes an array with one object a line (RabbitMQ 4.0).
func (t *table) appendJSON(b *bytes.Buffer) {
	b.WriteString("[\n")
	for i, row := range t.rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsonRow(t.columns, row))
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
}

// jsonRow is a row as an object.
func jsonRow(columns []string, row []json.RawMessage) []byte {
	b := []byte{'{'}
	for i, cell := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quoted(columns[i])...)
		b = append(b, ':')
		if cell == nil {
			cell = json.RawMessage("null")
		}
		b = append(b, cell...)
	}
	return append(b, '}')
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string has a JSON form always
	return b
}

func (t *table) appendLines(b *bytes.Buffer, headers bool, separator string, cell func(string) string) {
	line := func(n int, text func(i int) string) {
		for i := range n {
			if i > 0 {
				b.WriteString(separator)
			}
			b.WriteString(cell(text(i)))
		}
		b.WriteByte('\n')
	}
	if headers {
		line(len(t.columns), func(i int) string { return t.columns[i] })
	}
	for _, row := range t.rows {
		line(len(row), func(i int) string { return cellText(row[i]) })
	}
}

// tabCell keeps what would break the columns or the terminal out of a line.
func tabCell(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func csvCell(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// A frame is the characters of a table's lines: at the left, in between, at
// the right, and along.
type frame struct{ left, cross, right, along string }

// appendBoxes draws lines around the cells (RabbitMQ 4.0: between rows, too).
func (t *table) appendBoxes(b *bytes.Buffer, colours bool) {
	grid := t.text()
	widths := widthsOf(grid)
	rule := func(f frame) {
		for i, w := range widths {
			b.WriteString(or(i == 0, f.left, f.cross))
			b.WriteString(strings.Repeat(f.along, w+2))
		}
		b.WriteString(f.right + "\n")
	}
	rule(frame{"┌", "┬", "┐", "─"})
	for n, line := range grid {
		if n > 0 {
			rule(frame{"├", "┼", "┤", "─"})
		}
		for i, cell := range line {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if colours && n == 0 {
				cell = bold(cell)
			}
			b.WriteString("│ " + cell + padding + " ")
		}
		b.WriteString("│\n")
	}
	rule(frame{"└", "┴", "┘", "─"})
}

// text is the table as text, the names of the columns first.
func (t *table) text() [][]string {
	grid := [][]string{t.columns}
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = tabCell(cellText(cell))
		}
		grid = append(grid, line)
	}
	return grid
}

// widthsOf is the width of each column, in characters.
func widthsOf(grid [][]string) []int {
	widths := make([]int, len(grid[0]))
	for _, line := range grid {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func or(condition bool, a, b string) string {
	if condition {
		return a
	}
	return b
}

func bold(s string) string { return "\x1b[1m" + s + "\x1b[0m" }

func red(s string) string { return "\x1b[31m" + s + "\x1b[0m" }

// cellText is a value as RabbitMQ's tools print it: strings without quotes,
// objects as lists of pairs, nothing for null.
func cellText(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	t, err := dec.Token()
	if err != nil {
		return string(raw)
	}
	return tokenText(dec, t, false)
}

// tokenText is the value that begins with the token; nested strings of objects
// have quotes, those of lists have not.
func tokenText(dec *json.Decoder, t json.Token, quotes bool) string {
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return objectText(dec)
		}
		return listText(dec)
	case string:
		if quotes {
			return string(quoted(t))
		}
		return t
	case nil:
		return ""
	default:
		return fmt.Sprint(t)
	}
}

func objectText(dec *json.Decoder) string {
	var members []string
	for dec.More() {
		name, _ := dec.Token() // the decoder of a whole value: it was checked when it came
		value, _ := dec.Token()
		members = append(members, fmt.Sprintf("{%q,%s}", name, tokenText(dec, value, true)))
	}
	_, _ = dec.Token() // the closing bracket
	return "[" + strings.Join(members, ",") + "]"
}

func listText(dec *json.Decoder) string {
	var items []string
	for dec.More() {
		value, _ := dec.Token()
		items = append(items, tokenText(dec, value, false))
	}
	_, _ = dec.Token()
	return "[" + strings.Join(items, ", ") + "]"
}
