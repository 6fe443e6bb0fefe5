package management

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestConnectionWithTLS(t *testing.T) {
	a := newAPI(t, nil)
	a.aConn("c", "guest", "/", "q")
	c := &a.conns.connections[0]
	c.TLS, c.TLSVersion, c.TLSCipher = true, "tlsv1.3", "TLS_AES_128_GCM_SHA256"
	c.PeerCertificate = &x509.Certificate{Subject: pkix.Name{CommonName: "ann"}, Issuer: pkix.Name{CommonName: "ca"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(86400, 0)}
	has(t, a.do("GET", "/connections/c", "", 200), J{"ssl": true, "ssl_protocol": "tlsv1.3", "ssl_cipher": "TLS_AES_128_GCM_SHA256",
		"peer_cert_subject": "CN=ann", "peer_cert_issuer": "CN=ca", "peer_cert_validity": "1970-01-01T00:00:00Z - 1970-01-02T00:00:00Z"})
}

func TestCertificatesThatExpireSoon(t *testing.T) {
	a := newAPI(t, func(c *Config) {
		c.Certificates = func() []Certificate {
			return []Certificate{{"soon.pem", "CN=soon", time.Time{}, time.Now().Add(10 * day)}, {"late.pem", "CN=late", time.Time{}, time.Now().Add(1000 * day)}}
		}
	})
	a.is("/health/checks/certificate-expiration/1/weeks", `{"status":"ok"}`)
	got := a.do("GET", "/health/checks/certificate-expiration/2/weeks", "", http.StatusServiceUnavailable)
	has(t, got, J{"status": "failed", "reason": "Certificates expiring"})
	if l := got.(J)["expired"].([]any); len(l) != 1 || l[0].(J)["certfile"] != "soon.pem" {
		t.Errorf("expired %v, want soon.pem", l)
	}
	for _, ever := range []string{"10000/years", "10001/Days", "99999999999999999999/YEARS"} {
		a.do("GET", "/health/checks/certificate-expiration/"+ever, "", http.StatusServiceUnavailable)
	}
	a.do("GET", "/health/checks/certificate-expiration/-1/days", "", 400)
	a.do("GET", "/health/checks/certificate-expiration/-99999999999999999999/days", "", 400)
	a.do("GET", "/health/checks/certificate-expiration/1/moons", "", 400)
}

// A month is 365/12 days (RabbitMQ 4.0).
func TestMonthsOfExpirations(t *testing.T) {
	left := time.Duration(0)
	a := newAPI(t, func(c *Config) {
		c.Certificates = func() []Certificate { return []Certificate{{NotAfter: time.Now().Add(left)}} }
	})
	left = 30*day + 9*time.Hour
	a.do("GET", "/health/checks/certificate-expiration/1/months", "", http.StatusServiceUnavailable)
	left = 30*day + 11*time.Hour
	a.do("GET", "/health/checks/certificate-expiration/1/months", "", 200)
}

// Clients refuse a certificate that is not valid yet, too.
func TestCertificateThatIsNotValidYet(t *testing.T) {
	a := newAPI(t, func(c *Config) {
		c.Certificates = func() []Certificate {
			return []Certificate{{"early.pem", "CN=early", time.Now().Add(time.Hour), time.Now().Add(1000 * day)}}
		}
	})
	a.do("GET", "/health/checks/certificate-expiration/1/weeks", "", http.StatusServiceUnavailable)
}

// What an http.Server complains of is the client's affair.
func TestFailedHandshakesAreLoggedForDebugging(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	a := newAPI(t, func(c *Config) { c.Log = zap.New(core) })
	for _, s := range []*http.Server{&a.s.http, &a.s.metrics, a.s.local} {
		s.ErrorLog.Print("http: TLS handshake error from 10.0.0.7:1: EOF")
	}
	lines := logged.FilterMessageSnippet("TLS handshake error").All()
	if len(lines) != 3 || lines[0].Level != zapcore.DebugLevel {
		t.Errorf("%v, want three lines at level debug", lines)
	}
}
