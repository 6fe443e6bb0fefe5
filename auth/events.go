package auth

import "github.com/leveretmq/leveret/frames"

// event tells whoever listens of a change, with the names and fields of
// RabbitMQ 4.0's amq.rabbitmq.event.
func (a *Authority) event(key string, fields ...frames.Field) {
	if a.OnEvent != nil {
		a.OnEvent(key, append(fields, field("user_who_performed_action", a.by)))
	}
}

func field(name string, v any) frames.Field { return frames.Field{Name: name, Value: v} }

// list is strings as the value of a field.
func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}
