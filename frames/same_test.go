package frames

import "testing"

func TestSameValue(t *testing.T) {
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{int32(5), int64(5), true},
		{int32(5), "5", false},
		{int32(5), 5.0, false},
		{float32(1.5), 1.5, true},
		{"a", "a", true},
		{"a", []byte("a"), true},
		{"a", []byte("b"), false},
		{"5", int32(5), false},
		{Timestamp(5), int32(5), true},
		{int64(5), Timestamp(6), false},
		{[]byte("a"), []byte("a"), true},
		{true, true, true},
		{nil, nil, true},
		{Table{{"a", int32(1)}}, Table{{"a", int32(1)}}, true},
		{Table{{"a", int32(1)}}, Table{{"a", int32(2)}}, false},
		{[]any{"a"}, []any{"a"}, true},
		{"a", []any{"a"}, false},
		{Decimal{Scale: 1, Value: 2}, Decimal{Scale: 1, Value: 2}, true},
	} {
		if got := SameValue(tt.a, tt.b); got != tt.want {
			t.Errorf("SameValue(%v, %v) = %t", tt.a, tt.b, got)
		}
	}
}
