package message

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// maxTTL is the longest TTL, in milliseconds: ten years (RabbitMQ 4.0).
const maxTTL = 315360000000

// ParseExpiration reads the expiration property, in milliseconds, as Erlang's
// string:to_integer does. The text of an error is RabbitMQ 4.0's.
func ParseExpiration(s string) (ttl int64, err error) {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		digits = s // two signs are no integer
	}
	n := 0
	for n < len(digits) && '0' <= digits[n] && digits[n] <= '9' {
		n++
	}
	if n == 0 {
		return 0, expirationError(s, "no_integer")
	}
	if rest := digits[n:]; rest != "" {
		return 0, expirationError(s, "{leftover_string,"+frames.StringTerm(frames.Latin1(rest))+"}")
	}
	ttl, err = strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil && ttl < 0, err != nil && s[0] == '-':
		return 0, expirationError(s, "{value_negative,"+strings.TrimPrefix(s, "+")+"}")
	case err != nil || ttl > maxTTL:
		return 0, expirationError(s, "{value_too_large,"+strings.TrimPrefix(s, "+")+"}")
	}
	return ttl, nil
}

func expirationError(s, why string) error {
	return fmt.Errorf("invalid expiration '%s': %s", frames.PlainTerm(s), why)
}
