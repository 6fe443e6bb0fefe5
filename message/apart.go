package message

import "slices"

// maxTogether is the longest body, in bytes, that may be in one piece of memory
// with others. What comes from the store is, a few dozen messages together; a
// longer one has memory of its own.
const maxTogether = 8 << 10

// Apart returns a copy of the message that keeps no memory of messages alive that
// came with it. It is for who keeps a few of many for long, such as the dead letters
// among a backlog: each would hold tens of kilobytes. The memory of a large body is
// not shared, and so not copied. More stays the same.
func (m *Message) Apart() *Message {
	if len(m.Header)+len(m.Body) > MaxInline {
		c := *m
		c.Own().Header = slices.Clone(m.Header)
		c.Body = BodyApart(m.Body)
		return &c
	}
	c := New(len(m.Header), len(m.Body))
	header := c.Header
	copy(header, m.Header)
	copy(c.Body, m.Body)
	*c.Envelope = *m.Envelope
	c.Header = header
	c.More, c.Time = m.More, m.Time
	return c
}

// BodyApart is Apart for a body alone.
func BodyApart(body []byte) []byte {
	if len(body) > maxTogether {
		return body
	}
	return slices.Clone(body)
}
