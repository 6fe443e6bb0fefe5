package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// adminFormats are the values of --format.
var adminFormats = []string{"pretty_table", "tsv", "long", "kvp", "bash", "raw_json", "pretty_json"}

// printAnswer prints an answer of the API, which is an array of objects. The formats
// of JSON have it as it came, the others these columns; none is all that there are,
// down to the depth. Objects in the column inOne are one cell.
func (a *admin) printAnswer(answer []byte, columns []string, inOne string) error {
	switch a.o.format {
	case "raw_json":
		a.printf("%s\n", answer)
		return nil
	case "pretty_json":
		return a.printPretty(answer)
	}
	var list []object
	if err := json.Unmarshal(answer, &list); err != nil {
		return exitf(exitFailure, "the answer is not a list of objects: %v", err)
	}
	if len(list) == 0 {
		a.say("No items")
		return nil
	}
	a.printRows(flatten(list, columns, inOne, max(a.o.depth, 1)))
	return nil
}

// printPretty prints JSON with its members in the order of their names.
func (a *admin) printPretty(answer []byte) error {
	var v any
	dec := json.NewDecoder(bytes.NewReader(answer))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return exitf(exitFailure, "the answer is not JSON: %v", err)
	}
	return a.document(v)
}

// flatten makes rows of objects, and of the objects in them members with dotted
// names: down to the depth, or to any if the columns are named.
func flatten(list []object, columns []string, inOne string, depth int) ([]string, [][]string) {
	if len(columns) > 0 {
		depth = math.MaxInt
	}
	names := map[string]bool{}
	flat := make([]map[string]string, len(list))
	for i, o := range list {
		flat[i] = map[string]string{}
		addMembers(flat[i], "", o, inOne, depth)
		for name := range flat[i] {
			names[name] = true
		}
	}
	if len(columns) == 0 {
		columns = slices.SortedFunc(maps.Keys(names), promoted)
	}
	rows := make([][]string, len(list))
	for i, members := range flat {
		rows[i] = make([]string, len(columns))
		for c, name := range columns {
			rows[i][c] = members[name]
		}
	}
	return columns, rows
}

// addMembers adds an object's members to a row. Objects further down than the depth are
// left out (RabbitMQ 4.0).
func addMembers(to map[string]string, prefix string, o object, inOne string, depth int) {
	for name, raw := range o {
		var inner object
		switch isObject := json.Unmarshal(raw, &inner) == nil && inner != nil; {
		case !isObject:
			to[prefix+name] = adminCell(raw)
		case name == inOne:
			to[prefix+name] = spacedJSON(raw)
		case depth > 1:
			addMembers(to, prefix+name+".", inner, inOne, depth-1)
		}
	}
}

// adminCell is a value that is no object as rabbitmqadmin of RabbitMQ 4.0 prints it.
func adminCell(raw json.RawMessage) string {
	var text string
	var words []string
	switch s := string(raw); {
	case s == "true":
		return "True"
	case s == "false":
		return "False"
	case s == "null":
		return "None"
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &words) == nil && !bytes.Contains(raw, []byte("null")):
		return strings.Join(words, " ")
	}
	return spacedJSON(raw)
}

// spacedJSON is JSON on one line with a space after each comma and colon.
func spacedJSON(raw json.RawMessage) string {
	var b strings.Builder
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			b.WriteByte(c)
			i++ // a backslash has something after it: this is JSON
			b.WriteByte(raw[i])
		case c == '"':
			inText = !inText
			b.WriteByte(c)
		case !inText && strings.IndexByte(" \t\r\n", c) >= 0:
		case !inText && (c == ',' || c == ':'):
			b.WriteString(string(c) + " ")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (a *admin) printRows(columns []string, rows [][]string) {
	switch a.o.format {
	case "tsv":
		a.printTabs(columns, rows)
	case "long":
		a.printLong(columns, rows)
	case "kvp":
		a.printPairs(columns, rows)
	case "bash":
		a.printNames(columns, rows)
	default:
		a.printGrid(columns, rows)
	}
}

func (a *admin) printTabs(columns []string, rows [][]string) {
	if !a.o.quiet {
		a.printf("%s\n", strings.Join(columns, "\t"))
	}
	for _, row := range rows {
		a.printf("%s\n", strings.Join(printable(row), "\t"))
	}
}

// printable is a row without what would break its line.
func printable(row []string) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = tabCell(cell)
	}
	return cells
}

// printGrid draws a table as rabbitmqadmin does.
func (a *admin) printGrid(columns []string, rows [][]string) {
	grid := [][]string{columns}
	for _, row := range rows {
		grid = append(grid, printable(row))
	}
	widths := widthsOf(grid)
	var b bytes.Buffer
	rule := func() {
		for _, w := range widths {
			b.WriteString("+" + strings.Repeat("-", w+2))
		}
		b.WriteString("+\n")
	}
	rule()
	for n, line := range grid {
		for i, cell := range line {
			space := widths[i] - utf8.RuneCountInString(cell)
			left := 0
			if n == 0 {
				left = space / 2
			}
			b.WriteString("| " + strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left) + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			rule()
		}
	}
	rule()
	a.printf("%s", b.Bytes())
}

// printLong prints one value a line.
func (a *admin) printLong(columns []string, rows [][]string) {
	width := 0
	for _, name := range columns {
		width = max(width, len(name))
	}
	line := strings.Repeat("-", 80)
	a.printf("\n")
	for _, row := range rows {
		a.printf("%s\n\n", line)
		for i, cell := range row {
			a.printf("%*s: %s\n", width, columns[i], cell)
		}
		a.printf("\n")
	}
	a.printf("%s\n\n", line)
}

// printPairs prints name="value" pairs.
func (a *admin) printPairs(columns []string, rows [][]string) {
	for _, row := range rows {
		pairs := make([]string, len(row))
		for i, cell := range row {
			pairs[i] = fmt.Sprintf("%s=\"%s\"", columns[i], cell)
		}
		a.printf("%s\n", strings.Join(pairs, " "))
	}
}

// printNames prints the column name on one line, for completion in a shell.
func (a *admin) printNames(columns []string, rows [][]string) {
	i := slices.Index(columns, "name")
	if i < 0 {
		return
	}
	names := make([]string, len(rows))
	for n, row := range rows {
		names[n] = row[i]
	}
	a.printf("%s\n", strings.Join(names, " "))
}
