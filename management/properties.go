package management

import (
	"encoding/json"
	"strconv"

	"github.com/leveretmq/leveret/frames"
)

// A propertyName ties a property's name in JSON to its flag and field.
type propertyName struct {
	name string
	flag uint16
	// text is the field of a property that is a string; nil for the others.
	text func(p *frames.Properties) *[]byte
}

// propertyNames are the properties in the order of the wire (spec §4.2.6.1).
func propertyNames() []propertyName {
	return []propertyName{
		{"content_type", frames.FlagContentType, func(p *frames.Properties) *[]byte { return &p.ContentType }},
		{"content_encoding", frames.FlagContentEncoding, func(p *frames.Properties) *[]byte { return &p.ContentEncoding }},
		{"headers", frames.FlagHeaders, nil},
		{"delivery_mode", frames.FlagDeliveryMode, nil},
		{"priority", frames.FlagPriority, nil},
		{"correlation_id", frames.FlagCorrelationID, func(p *frames.Properties) *[]byte { return &p.CorrelationID }},
		{"reply_to", frames.FlagReplyTo, func(p *frames.Properties) *[]byte { return &p.ReplyTo }},
		{"expiration", frames.FlagExpiration, func(p *frames.Properties) *[]byte { return &p.Expiration }},
		{"message_id", frames.FlagMessageID, func(p *frames.Properties) *[]byte { return &p.MessageID }},
		{"timestamp", frames.FlagTimestamp, nil},
		{"type", frames.FlagType, func(p *frames.Properties) *[]byte { return &p.Type }},
		{"user_id", frames.FlagUserID, func(p *frames.Properties) *[]byte { return &p.UserID }},
		{"app_id", frames.FlagAppID, func(p *frames.Properties) *[]byte { return &p.AppID }},
		{"cluster_id", frames.FlagClusterID, func(p *frames.Properties) *[]byte { return &p.ClusterID }},
	}
}

// propertiesObject shows the properties of a message. None at all are an empty
// array (RabbitMQ 4.0).
func propertiesObject(header []byte) any {
	var p frames.Properties
	if p.Parse(header) != nil || p.Flags == 0 {
		return []any{} // a header that is none was refused when it came in
	}
	var o object
	for _, n := range propertyNames() {
		switch {
		case !p.Has(n.flag):
		case n.text != nil:
			o.add(n.name, string(*n.text(&p)))
		case n.flag == frames.FlagHeaders:
			t, _ := p.Table() // Parse has checked it
			o.add(n.name, t)
		case n.flag == frames.FlagDeliveryMode:
			o.add(n.name, int(p.DeliveryMode))
		case n.flag == frames.FlagPriority:
			o.add(n.name, int(p.Priority))
		case n.flag == frames.FlagTimestamp:
			o.add(n.name, p.Timestamp)
		}
	}
	return o
}

// readProperties reads the properties of a message to publish. Members that are
// no property are ignored.
func readProperties(b body) (frames.Properties, error) {
	var p frames.Properties
	for _, n := range propertyNames() {
		v, there := b[n.name]
		if !there || v == nil {
			continue
		}
		if err := n.read(&p, v, b); err != nil {
			return p, err
		}
		p.Flags |= n.flag
	}
	return p, nil
}

func (n *propertyName) read(p *frames.Properties, v any, b body) error {
	if n.text != nil {
		s, isText := propertyText(v)
		if !isText || len(s) > maxNameLength {
			return badRequest("the property %s must be a string of at most %d bytes", n.name, maxNameLength)
		}
		*n.text(p) = []byte(s)
		return nil
	}
	if n.flag == frames.FlagHeaders {
		t, err := b.table(n.name)
		if err == nil {
			p.SetTable(t)
		}
		return err
	}
	if _, isNumber := v.(json.Number); !isNumber {
		return badRequest("%s must be an integer", n.name) // a string that holds one is none (RabbitMQ 4.0)
	}
	i, _, err := b.integer(n.name)
	if err != nil {
		return err
	}
	switch n.flag {
	case frames.FlagTimestamp:
		p.Timestamp = uint64(max(i, 0))
		return nil
	case frames.FlagPriority:
		p.Priority = byte(i)
	case frames.FlagDeliveryMode:
		p.DeliveryMode = byte(i)
	}
	if i < 0 || i > 255 {
		return badRequest("the property %s must be between 0 and 255", n.name)
	}
	return nil
}

// propertyText takes a number for a string, too: an expiration is often given
// as one.
func propertyText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
