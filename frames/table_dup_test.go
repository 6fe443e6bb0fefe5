package frames

import (
	"fmt"
	"slices"
	"testing"
)

func TestHasDuplicates(t *testing.T) {
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
		if got := HasDuplicates(AppendTable(nil, tt.table)[4:]); got != tt.want {
			t.Errorf("HasDuplicates(%d fields) = %v, want %v", len(tt.table), got, tt.want)
		}
	}
	if got := (Table{{"a", "1"}, {"b", "2"}, {"a", "3"}}).Unique(); len(got) != 2 || got[0].Value != "1" || got[1].Value != "2" {
		t.Errorf("Unique() = %v, want a=1, b=2", got)
	}
}
