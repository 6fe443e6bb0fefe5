package amqp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// newTestConfirms is the confirms of a channel without a socket.
func newTestConfirms() *confirms {
	ch := &channel{id: 1, conn: &conn{out: newOutbox(nil)}}
	return &confirms{ch: ch, next: 1}
}

// sent takes what is in the outbox and prints the confirms: ack 3, ack <=5, nack 6.
func (f *confirms) sent(t *testing.T) []string {
	t.Helper()
	out := f.ch.conn.out
	got := []string{}
	for b := out.frames; len(b) > 0; {
		fr, n, err := frames.Parse(b, 4096)
		if err != nil || n == 0 {
			t.Fatalf("outbox holds no whole frame: %v", err)
		}
		b = b[n:]
		id, args, _ := frames.SplitMethod(fr.Payload)
		tag, bits, err := frames.ParseSettle(args)
		if err != nil {
			t.Fatal(err)
		}
		s := map[frames.MethodID]string{frames.BasicAckID: "ack", frames.BasicNackID: "nack"}[id]
		if bits&1 != 0 {
			s += " <="
		} else {
			s += " "
		}
		got = append(got, fmt.Sprintf("%s%d", s, tag))
	}
	out.pending.reset()
	return got
}

func TestConfirmsAreCumulativeAndInOrder(t *testing.T) {
	f := newTestConfirms()
	batch := func(first, last uint64) *message.Receipt {
		r := message.NewReceipt(f, first, last)
		r.Hold(1)
		return r
	}
	a, b, c := batch(1, 3), batch(4, 4), batch(5, 9)
	c.Release()
	b.Release()
	if got := f.sent(t); len(got) != 0 {
		t.Fatalf("confirms before the lowest batch is safe: %v", got)
	}
	a.Release()
	if got, want := f.sent(t), []string{"ack <=9"}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	d := batch(10, 10)
	d.Release()
	if got, want := f.sent(t), []string{"ack 10"}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestConfirmsNack(t *testing.T) {
	for _, tt := range []struct {
		refused []uint64
		failed  bool
		want    []string
	}{
		{[]uint64{3}, false, []string{"ack <=2", "nack <=3", "ack <=5"}},
		{[]uint64{5, 1, 5}, false, []string{"nack <=1", "ack <=4", "nack <=5"}},
		{[]uint64{1, 2, 3, 4, 5}, false, []string{"nack <=5"}},
		{[]uint64{2, 3, 5}, false, []string{"ack 1", "nack <=3", "ack 4", "nack <=5"}},
		{nil, true, []string{"nack <=5"}},
	} {
		f := newTestConfirms()
		r := message.NewReceipt(f, 1, 5)
		r.Hold(1)
		for _, seq := range tt.refused {
			r.Refuse(seq)
		}
		if tt.failed {
			r.Fail()
		}
		r.Release()
		if got := f.sent(t); !slices.Equal(got, tt.want) {
			t.Errorf("refused %v, failed %v: sent %v, want %v", tt.refused, tt.failed, got, tt.want)
		}
	}
}

func TestConfirmsAfterTheChannelEndedSayNothing(t *testing.T) {
	f := newTestConfirms()
	r := message.NewReceipt(f, 1, 1)
	r.Hold(1)
	f.drop()
	r.Release()
	if got := f.sent(t); len(got) != 0 {
		t.Errorf("sent %v, want nothing", got)
	}
}
