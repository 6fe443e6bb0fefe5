package main

import "testing"

func TestPace(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		live, headroom int64
		want           int
	}{
		{0, 48 * mib, 1000},
		{2 * mib, 48 * mib, 1000},
		{12 * mib, 48 * mib, 400},
		{50 * mib, 48 * mib, 75},
		{1000 * mib, 48 * mib, 50},
	} {
		if got := pace(tt.live, tt.headroom); got != tt.want {
			t.Errorf("pace(%d MiB, %d MiB) = %d, want %d", tt.live/mib, tt.headroom/mib, got, tt.want)
		}
	}
}
