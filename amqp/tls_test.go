package amqp

import (
	"crypto/tls"
	"testing"
)

func TestTLSName(t *testing.T) {
	for version, want := range map[uint16]string{tls.VersionTLS12: "tlsv1.2", tls.VersionTLS13: "tlsv1.3"} {
		if got := tlsName(version); got != want {
			t.Errorf("tlsName(%#x) = %q, want %q", version, got, want)
		}
	}
}
