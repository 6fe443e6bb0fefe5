package message

import (
	"slices"
	"testing"
)

type fakeOwner struct{ settled []*Receipt }

func (o *fakeOwner) Settled(r *Receipt) { o.settled = append(o.settled, r) }

func TestReceiptSettlesWithTheLastRelease(t *testing.T) {
	var o fakeOwner
	r := NewReceipt(&o, 3, 9)
	r.Hold(1)
	r.Hold(2)
	r.Release()
	r.Release()
	if len(o.settled) != 0 {
		t.Fatal("settled while one party was still holding")
	}
	r.Release()
	if len(o.settled) != 1 || o.settled[0] != r {
		t.Fatalf("settled %v, want the receipt once", o.settled)
	}
}

func TestReceiptOutcome(t *testing.T) {
	r := NewReceipt(nil, 1, 3)
	r.Refuse(2)
	if refused, failed := r.Outcome(); !slices.Equal(refused, []uint64{2}) || failed {
		t.Errorf("Outcome() = %v, %v, want [2], false", refused, failed)
	}
	r.Fail()
	if _, failed := r.Outcome(); !failed {
		t.Error("Outcome() says the batch has not failed")
	}
}
