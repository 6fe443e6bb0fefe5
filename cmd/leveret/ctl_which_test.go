package main

import "testing"

func TestSameNode(t *testing.T) {
	for _, tt := range []struct {
		name, node string
		want       bool
	}{
		{"mq@host", "mq@host", true},
		{"mq@HOST", "mq@host", true},
		{"mq", "mq@host", true},
		{"mq@host.example.org", "mq@host", true}, // --longnames
		{"mq@host", "mq@host.example.org", true},
		{"rabbit@host", "leveret@host", true}, // no name was given
		{"rabbit@host", "mq@host", false},
		{"mq@other", "mq@host", false},
		{"other@host", "mq@host", false},
		{"leveret@host", "rabbit@host", false},
		{"MQ@host", "mq@host", false},
	} {
		if got := sameNode(tt.name, tt.node); got != tt.want {
			t.Errorf("sameNode(%q, %q) = %v, want %v", tt.name, tt.node, got, tt.want)
		}
	}
}
