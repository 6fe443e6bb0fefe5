//go:build foreign

package interop_test

import (
	"errors"
	"testing"
)

func runOwn(*testing.M) (int, error) {
	return 1, errors.New("with the tag foreign, AMQP_URL must name the broker to test")
}
