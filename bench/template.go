package bench

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/leveretmq/leveret/frames"
)

// Each body begins with a mark and the time it was due, if it has room for them.
const (
	stampMark = 0x6c767274 // "lvrt"
	stampSize = 12         // in bytes: the mark and eight bytes of the clock
)

// templateTarget is how many bytes of prepared messages a publisher has unless
// its keys and sizes need more: few enough for the processor's cache.
const templateTarget = 128 << 10

// A template is the messages of one publisher as frames, ready to be written
// again and again; only the time in them changes.
type template struct {
	bytes  []byte
	ends   []int   // where each message ends
	stamps []int   // where its time goes, -1 if the body has no room
	fans   []int64 // deliveries of all messages up to and with this one
	sizes  []int64 // bytes of the bodies, likewise
	maxFan int64   // most deliveries of one message
}

// templateLength is how many messages a template has: enough for a good write,
// and whole rounds of keys and of sizes.
func (sc *Scenario) templateLength() int {
	n := min(256, max(1, templateTarget/(sc.Size.max()+80)))
	for _, p := range sc.Size {
		if p.Min != p.Max {
			n = max(n, min(256, (16<<20)/(p.Max+80)))
		}
	}
	round := lcm(lcm(sc.keyCount(), max(1, len(sc.RoutingKeys))), sc.Size.weight())
	return (n + round - 1) / round * round
}

// lcm is the least common multiple, or longestRound if that is less.
func lcm(a, b int) int {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return int(min(int64(a/x)*int64(b), longestRound))
}

// longestRound is more messages than any template may have.
const longestRound = 1 << 24

// newTemplate prepares the messages of the publisher with this number, counted
// from 0. Publishers begin at different keys.
func newTemplate(sc *Scenario, f *fan, publisher int, channel uint16, frameMax uint32) *template {
	t := &template{}
	sizes := sc.bodySizes(publisher)
	body := make([]byte, sc.Size.max())
	for i := range body {
		body[i] = byte('a' + i%26)
	}
	exchange := sc.exchangeName()
	var fans, total int64
	for j, size := range sizes {
		i := publisher + j*max(1, sc.Publishers)
		key := sc.routingKey(i)
		t.append(sc, channel, exchange, key, body[:size], frameMax)
		n := int64(f.of(i, key))
		fans += n
		total += int64(size)
		t.maxFan = max(t.maxFan, n)
		t.fans = append(t.fans, fans)
		t.sizes = append(t.sizes, total)
	}
	return t
}

// bodySizes draws the sizes of a template's bodies: exactly in the proportions
// asked for, in an order that has nothing to do with the keys.
func (sc *Scenario) bodySizes(publisher int) []int {
	rnd := rand.New(rand.NewPCG(uint64(publisher), 1))
	sizes := make([]int, 0, sc.templateLength())
	for len(sizes) < cap(sizes) {
		for _, p := range sc.Size {
			for range p.Weight {
				sizes = append(sizes, p.Min+rnd.IntN(p.Max-p.Min+1))
			}
		}
	}
	rnd.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	return sizes
}

func (t *template) append(sc *Scenario, channel uint16, exchange, key string, body []byte, frameMax uint32) {
	t.bytes = frames.AppendMethod(t.bytes, channel, &frames.BasicPublish{Exchange: exchange, RoutingKey: key, Mandatory: sc.Mandatory})
	t.bytes = frames.AppendContentHeader(t.bytes, channel, uint64(len(body)), sc.properties(key))
	stamp := -1
	at := len(t.bytes) + 7
	t.bytes = frames.AppendBody(t.bytes, channel, body, frameMax)
	if len(body) >= stampSize {
		binary.BigEndian.PutUint32(t.bytes[at:], stampMark)
		stamp = at + 4
	}
	t.stamps = append(t.stamps, stamp)
	t.ends = append(t.ends, len(t.bytes))
}

// properties is the property block of a message.
func (sc *Scenario) properties(key string) []byte {
	p := frames.Properties{Flags: frames.FlagDeliveryMode, DeliveryMode: 1}
	if sc.Persistent {
		p.DeliveryMode = 2
	}
	if sc.ExchangeType == "headers" {
		p.SetTable(frames.Table{{Name: headerName, Value: key}})
	}
	return p.Append(nil)
}

// stamp writes the time into the messages from up to but not including to.
func (t *template) stamp(from, to int, at int64) {
	for _, s := range t.stamps[from:to] {
		if s >= 0 {
			binary.BigEndian.PutUint64(t.bytes[s:], uint64(at))
		}
	}
}

// slice is the frames of the messages from up to but not including to.
func (t *template) slice(from, to int) []byte {
	return t.bytes[start(t.ends, from):t.ends[to-1]]
}

// sum is what the messages from up to but not including to have of fans or
// sizes.
func sum(totals []int64, from, to int) int64 {
	return totals[to-1] - start(totals, from)
}

// start is the total before the i-th message.
func start[T int | int64](totals []T, i int) T {
	if i == 0 {
		return 0
	}
	return totals[i-1]
}

// stampOf is the time in a body's first bytes, 0 if there is none.
func stampOf(body []byte) int64 {
	if len(body) < stampSize || binary.BigEndian.Uint32(body) != stampMark {
		return 0
	}
	return int64(binary.BigEndian.Uint64(body[4:]))
}
