package frames

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Code is a reply code (spec §1.2).
type Code uint16

// The reply codes that a broker sends.
const (
	Success            Code = 200
	NoRoute            Code = 312
	ConnectionForced   Code = 320
	InvalidPath        Code = 402
	AccessRefused      Code = 403
	NotFound           Code = 404
	ResourceLocked     Code = 405
	PreconditionFailed Code = 406
	FrameError         Code = 501
	SyntaxError        Code = 502
	CommandInvalid     Code = 503
	ChannelError       Code = 504
	UnexpectedFrame    Code = 505
	ResourceError      Code = 506
	NotAllowed         Code = 530
	NotImplemented     Code = 540
	InternalError      Code = 541
)

// String is the name that begins every reply text, as RabbitMQ prints it.
func (c Code) String() string {
	switch c {
	case Success:
		return "REPLY_SUCCESS"
	case NoRoute:
		return "NO_ROUTE"
	case ConnectionForced:
		return "CONNECTION_FORCED"
	case InvalidPath:
		return "INVALID_PATH"
	case AccessRefused:
		return "ACCESS_REFUSED"
	case NotFound:
		return "NOT_FOUND"
	case ResourceLocked:
		return "RESOURCE_LOCKED"
	case PreconditionFailed:
		return "PRECONDITION_FAILED"
	case FrameError:
		return "FRAME_ERROR"
	case SyntaxError:
		return "SYNTAX_ERROR"
	case CommandInvalid:
		return "COMMAND_INVALID"
	case ChannelError:
		return "CHANNEL_ERROR"
	case UnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case ResourceError:
		return "RESOURCE_ERROR"
	case NotAllowed:
		return "NOT_ALLOWED"
	case NotImplemented:
		return "NOT_IMPLEMENTED"
	case InternalError:
		return "INTERNAL_ERROR"
	}
	return "CODE_" + strconv.Itoa(int(c))
}

// Hard says whether the code ends the connection; the others end the channel.
func (c Code) Hard() bool {
	switch c {
	case AccessRefused, NotFound, ResourceLocked, PreconditionFailed, NoRoute:
		return false
	}
	return true
}

// An Error is a protocol error: what a close method tells the client.
type Error struct {
	Code Code
	Text string // the explanation, without the code's name; "" if none
	// Unbound errors belong to no method: their close carries class and method
	// 0 whatever was being handled.
	Unbound bool
}

// Errorf makes an Error with RabbitMQ's text for it.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: explain(format, args)}
}

// Unboundf makes an Error that is not tied to the method being handled.
func Unboundf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: explain(format, args), Unbound: true}
}

// explain formats a text. It is UTF-8, as clients decode it, whatever a client sent:
// what is no UTF-8 is taken for Latin-1 (RabbitMQ 4.0).
func explain(format string, args []any) string {
	text := fmt.Sprintf(format, args...)
	if utf8.ValidString(text) { // as it is, too, if a verb has quoted the bytes
		return text
	}
	plain := slices.Clone(args)
	for i, a := range args {
		switch a.(type) {
		case string, []byte:
			plain[i] = PlainTerm(a)
		}
	}
	return fmt.Sprintf(format, plain...)
}

func (e *Error) Error() string { return e.ReplyText() }

// maxReplyText is the longest reply text, in bytes: a shortstr.
const maxReplyText = 255

// ReplyText is "NAME - explanation", at most 255 bytes long; a longer one is
// cut and ends in "..." (RabbitMQ 4.0).
func (e *Error) ReplyText() string {
	s := e.Code.String()
	if e.Text != "" {
		s += " - " + e.Text
	}
	if len(s) <= maxReplyText {
		return s
	}
	return strings.ToValidUTF8(s[:maxReplyText-3], "") + "..."
}

// frameError makes the 501 for bytes that are no frame; its text shows them as
// Erlang would, which is what people search for.
func frameError(typ byte, payload []byte, why string, args ...any) *Error {
	return Unboundf(FrameError, "%s: %s", Octets(typ, payload), fmt.Sprintf(why, args...))
}

// Octets describes a frame for an error text: its type and up to 16 octets.
func Octets(typ byte, payload []byte) string {
	if len(payload) > 16 {
		return fmt.Sprintf("type %d, first 16 octets = %s", typ, BinaryTerm(string(payload[:16])))
	}
	return fmt.Sprintf("type %d, all octets = %s", typ, BinaryTerm(string(payload)))
}
