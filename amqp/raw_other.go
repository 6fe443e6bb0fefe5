//go:build !unix

package amqp

// canWriteNow says whether writeNow works on this system.
const canWriteNow = false

func writeNow(uintptr, []byte) int { return 0 }
