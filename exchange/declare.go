package exchange

import (
	"fmt"

	"github.com/leveretmq/leveret/frames"
)

const alternateKey = "alternate-exchange"

// alternateArgument returns the alternate exchange that the arguments name.
func alternateArgument(spec *Spec) (name string, ok bool, err error) {
	v, ok := spec.Arguments.Lookup(alternateKey)
	if !ok {
		return "", false, nil
	}
	name, ok = v.(string)
	if !ok {
		return "", false, frames.Errorf(frames.PreconditionFailed, "invalid type '%s' for arg '%s' in exchange '%s' in vhost '%s'",
			frames.TypeName(v), alternateKey, spec.Name, spec.VHost)
	}
	return name, true, nil
}

// Equivalent says, as an Error for the client, what differs between the
// exchange and a new declaration of it. Of the arguments only the alternate
// exchange is compared (RabbitMQ 4.0); an unknown type is an error first of all.
func (x *Exchange) Equivalent(spec Spec) error {
	if !KnownType(spec.Type) {
		return ErrUnknownType(spec.Type)
	}
	for _, f := range []struct {
		name              string
		received, current any
	}{
		{"type", typeTerm(spec.Type), typeTerm(x.Type)},
		{"durable", spec.Durable, x.Durable},
		{"auto_delete", spec.AutoDelete, x.AutoDelete},
		{"internal", spec.Internal, x.Internal},
	} {
		if f.received != f.current {
			return errInequivalent(&spec, f.name, "received '%v' but current is '%v'", f.received, f.current)
		}
	}
	return x.equivalentAlternate(&spec)
}

func (x *Exchange) equivalentAlternate(spec *Spec) error {
	received, is := spec.Arguments.Lookup(alternateKey)
	current, was := x.Arguments.Lookup(alternateKey)
	switch {
	case !is && !was:
		return nil
	case !was:
		return errInequivalent(spec, alternateKey, "received the value '%s' of type '%s' but current is none",
			frames.PlainTerm(received), frames.TypeName(received))
	case !is:
		return errInequivalent(spec, alternateKey, "received none but current is the value '%s' of type '%s'",
			frames.PlainTerm(current), frames.TypeName(current))
	case !frames.SameValue(received, current):
		return errInequivalent(spec, alternateKey, "received %s but current is %s", frames.QuotedTerm(received), frames.QuotedTerm(current))
	}
	return nil
}

func errInequivalent(spec *Spec, arg, format string, args ...any) error {
	return frames.Errorf(frames.PreconditionFailed, "inequivalent arg '%s' for exchange '%s' in vhost '%s': %s",
		arg, spec.Name, spec.VHost, fmt.Sprintf(format, args...))
}
