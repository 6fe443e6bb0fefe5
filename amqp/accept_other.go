//go:build !unix

package amqp

// temporary says whether an accept error goes away by itself.
func temporary(error) bool { return false }
