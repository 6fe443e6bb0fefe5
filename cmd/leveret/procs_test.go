package main

import "testing"

// One processor while there is little to do, all as soon as there is more or the
// disk is used.
func TestProcsFollowTheLoad(t *testing.T) {
	for _, tt := range []struct {
		name  string
		looks []float64 // processors used; negative: and the disk
		want  string    // after each look: 1 processor or a(ll)
	}{
		{"little to do", []float64{0.2, 0.2, 0.2, 0.2, 0.2, 0.2}, "aaaa11"},
		{"an interrupted calm", []float64{0.2, 0.2, 0.65, 0.2, 0.2, 0.2, 0.2, 0.2}, "aaaaaaa1"},
		{"much to do", []float64{0, 0, 0, 0, 0, 0.7, 0.8, 0.2}, "aaaa11aa"},
		{"a disk in use", []float64{0, 0, 0, 0, 0, -0.1, 0.1, 0.1, 0.1, -0.1, 0, 0, 0, 0, 0}, "aaaa1aaaaaaaaa1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := byte('a')
			p := &procs{set: func(one bool) {
				now = 'a'
				if one {
					now = '1'
				}
			}}
			var got []byte
			for _, used := range tt.looks {
				p.look(max(used, -used), used < 0)
				got = append(got, now)
			}
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestProcessUsage(t *testing.T) {
	before, ok := processUsage()
	if !ok {
		return // not known on this system, so nothing is tuned
	}
	sum := 0
	for now := before; now.cpu == before.cpu; now, _ = processUsage() {
		for i := range 1_000_000 {
			sum += i
		}
	}
	if sum == 0 {
		t.Error("no work was done")
	}
}
