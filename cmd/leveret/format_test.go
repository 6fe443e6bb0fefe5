package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestFormatters(t *testing.T) {
	tab := &table{columns: []string{"name", "arguments"}, rows: [][]json.RawMessage{
		{json.RawMessage(`"a\tb"`), json.RawMessage(`{"x-queue-type":"quorum","n":[1,"two"]}`)},
		{json.RawMessage(`"say \"é\""`), nil},
	}}
	for formatter, want := range map[string]string{
		"table": "name\targuments\n" +
			`a\tb` + "\t" + `[{"x-queue-type","quorum"},{"n",[1, two]}]` + "\n" +
			`say "é"` + "\t\n",
		"csv": `"name","arguments"` + "\n" + `"a` + "\t" + `b","[{""x-queue-type"",""quorum""},{""n"",[1, two]}]"` + "\n" + `"say ""é""",""` + "\n",
		"json": "[\n" + `{"name":"a\tb","arguments":{"x-queue-type":"quorum","n":[1,"two"]}}` + "\n" +
			`,{"name":"say \"é\"","arguments":null}` + "\n]\n",
		"pretty_table": "" +
			"┌─────────┬────────────────────────────────────────────┐\n" +
			"│ name    │ arguments                                  │\n" +
			"├─────────┼────────────────────────────────────────────┤\n" +
			"│ a\\tb    │ [{\"x-queue-type\",\"quorum\"},{\"n\",[1, two]}] │\n" +
			"├─────────┼────────────────────────────────────────────┤\n" +
			"│ say \"é\" │                                            │\n" +
			"└─────────┴────────────────────────────────────────────┘\n",
	} {
		var b bytes.Buffer
		if err := tab.write(&b, look{formatter: formatter, headers: true}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", formatter, got, want)
		}
	}
}

func TestEmptyTable(t *testing.T) {
	for formatter, want := range map[string]string{"table": "", "json": "[\n]\n", "csv": "", "erlang": "[]\n"} {
		var b bytes.Buffer
		if err := (&table{columns: []string{"name"}}).write(&b, look{formatter: formatter, headers: true}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want {
			t.Errorf("%s: %q, want %q", formatter, got, want)
		}
	}
}
