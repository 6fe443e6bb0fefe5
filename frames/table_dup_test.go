package frames

import (
	"fmt"
	"slices"
	"testing"
)

func TestIrregular(t *testing.T) {
	var many Table
	for i := range 40 {
		many = append(many, Field{fmt.Sprint("k", i), int32(i)})
	}
	for _, tt := range []struct {
		table Table
		want  bool
	}{
		{nil, false},
		{Table{{"a", "1"}, {"b", "1"}}, false},
		{Table{{"a", "1"}, {"b", "2"}, {"a", "3"}}, true},
		{many, false},
		{append(slices.Clone(many), Field{"k3", "again"}), true},
		{append(slices.Clone(many), Field{"k39", "again"}), true},
	} {
		if got := Irregular(AppendTable(nil, tt.table)[4:]); got != tt.want {
			t.Errorf("Irregular(%d fields) = %v, want %v", len(tt.table), got, tt.want)
		}
	}
	const unsigned = "L\x00\x00\x00\x00\x00\x00\x00\x07"
	for _, b := range []string{
		"\x01a" + unsigned,
		"\x01aF\x00\x00\x00\x0b\x01b" + unsigned,
		"\x01aA\x00\x00\x00\x0aV" + unsigned,
		string(AppendTable(nil, many)[4:]) + "\x01a" + unsigned,
	} {
		if err := CheckTable([]byte(b)); err != nil || !Irregular([]byte(b)) {
			t.Errorf("%q is not irregular, or %v", b, err)
		}
	}
	if got := (Table{{"a", "1"}, {"b", "2"}, {"a", "3"}}).Unique(); len(got) != 2 || got[0].Value != "1" || got[1].Value != "2" {
		t.Errorf("Unique() = %v, want a=1, b=2", got)
	}
}
