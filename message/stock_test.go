package message

import (
	"bytes"
	"testing"
)

// stocked returns a stock that has these bodies, whatever other tests have left.
func stocked(bodies ...[]byte) (*Stock, *Returns) {
	for c := range used {
		for used[c].Get() != nil {
		}
	}
	r := &Returns{}
	for _, b := range bodies {
		r.Put(b)
	}
	return &Stock{}, r
}

func TestSizesThatAreNotUsedAgain(t *testing.T) {
	for _, n := range []int{0, 1, MaxInline, maxUsed + 1} {
		s, r := stocked(make([]byte, n))
		r.Flush()
		if got := s.Take(n); got != nil {
			t.Errorf("a body of %d bytes was used again", n)
		}
		for c := range used {
			if p := used[c].Get(); p != nil {
				t.Errorf("a body of %d bytes was kept in class %d", n, c)
			}
		}
	}
}

func TestBodyWithTooLittleRoomIsNotUsed(t *testing.T) {
	s, r := stocked(make([]byte, 1200))
	r.Flush()
	if got := s.Take(1300); got != nil {
		t.Errorf("got room for %d bytes, want none for 1300", cap(got))
	}
}

func TestReturnedBodyIsSpoiledUnderTheRaceDetector(t *testing.T) {
	b := make([]byte, MaxInline+1)
	var r Returns
	r.Put(b[:1])
	want := make([]byte, len(b))
	if poison {
		want = bytes.Repeat([]byte{0xdb}, len(b))
	}
	if !bytes.Equal(b, want) {
		t.Errorf("the returned body begins with %x and ends with %x, want %x", b[:2], b[len(b)-2:], want[:2])
	}
}
