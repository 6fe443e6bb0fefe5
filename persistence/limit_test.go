package persistence

import "testing"

func TestDiskLimitChangesWhileTheStoreRuns(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir(), DiskLimit: 100, diskFree: func(string) (int64, error) { return 1000, nil }})
	defer closeTest(t, s)
	for _, tt := range []struct {
		limit int64
		low   bool
	}{{2000, true}, {950, true}, {900, false}, {1001, true}, {50, false}, {1001, true}, {0, false}} {
		s.SetDiskLimit(tt.limit)
		if h := s.Health(); h.DiskLow != tt.low || h.DiskLimit != tt.limit {
			t.Errorf("Health() = %+v with 1000 bytes free and a limit of %d, want DiskLow %v", h, tt.limit, tt.low)
		}
	}
}
