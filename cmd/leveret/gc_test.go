package main

import (
	"testing"
	"time"
)

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

// The heap has more headroom once the disk has not been used for a while.
func TestHeadroomWhileTheDiskIsStill(t *testing.T) {
	p := &pacer{headroom: 48}
	start := time.Now()
	for i, tt := range []struct {
		disk  int64
		after time.Duration
		want  int64
	}{
		{5, 0, 48},
		{5, stillAfter - 1, 48},
		{5, stillAfter, 80},
		{5, 10 * stillAfter, 80},
		{6, 10*stillAfter + 1, 48},
		{6, 11 * stillAfter, 48},
		{6, 11*stillAfter + 1, 80},
	} {
		if got := p.headroomNow(tt.disk, start.Add(tt.after)); got != tt.want {
			t.Errorf("look %d: headroom %d, want %d", i, got, tt.want)
		}
	}
}
