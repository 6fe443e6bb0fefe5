package persistence

import (
	"errors"
	"slices"
	"testing"
)

// A readLog is a log whose second Load fails if it is to.
type readLog struct {
	Log
	loads int
	fail  error
}

func (l *readLog) Load(lane Lane, from uint64, dst []Record, maxBytes int) ([]Record, error) {
	if l.loads++; l.loads == 2 && l.fail != nil {
		return nil, l.fail
	}
	return l.Log.Load(lane, from, dst, maxBytes)
}

// threeBlocks is a log with records 1, 3 and 5 in lane 2, of which each is a block of
// its own, and record 2 in lane 0.
func threeBlocks(t *testing.T) *readLog {
	t.Helper()
	log, err := NewMemory().NewLog()
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, recordsBlock+1)
	log.Append([]Record{{ID: 1, Lane: 2, Body: body}, {ID: 2}, {ID: 3, Lane: 2, Body: body}, {ID: 5, Lane: 2, Body: body}}, nil)
	return &readLog{Log: log}
}

// idsOf reads records until there are no more or it has seen the id last.
func idsOf(log Log, from, last uint64) (ids []uint64, err error) {
	for rec, err := range Records(log, 2, from) {
		if err != nil {
			return ids, err
		}
		if ids = append(ids, rec.ID); rec.ID == last {
			break
		}
	}
	return ids, nil
}

func TestRecords(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name       string
		from, last uint64
		fail       error
		want       []uint64
		loads      int
	}{
		{"all", 0, 9, nil, []uint64{1, 3, 5}, 4},
		{"from an id", 2, 9, nil, []uint64{3, 5}, 3},
		{"none", 6, 9, nil, nil, 1},
		{"until enough", 0, 3, nil, []uint64{1, 3}, 2},
		{"until an error", 0, 9, broken, []uint64{1}, 2},
	} {
		log := threeBlocks(t)
		log.fail = tt.fail
		got, err := idsOf(log, tt.from, tt.last)
		if !slices.Equal(got, tt.want) || !errors.Is(err, tt.fail) || log.loads != tt.loads {
			t.Errorf("%s: ids %d, error %v, %d reads; want %d, %v, %d", tt.name, got, err, log.loads, tt.want, tt.fail, tt.loads)
		}
	}
}
