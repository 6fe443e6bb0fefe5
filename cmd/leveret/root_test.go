package main

import "testing"

// All commands are made at each start, also of a broker: 18,000 allocations were 10 ms
// of it.
func TestRootCommandAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(5, func() { rootCommand() }); n > 9000 {
		t.Errorf("%v allocations for all commands, want 9000 at most", n)
	}
}
