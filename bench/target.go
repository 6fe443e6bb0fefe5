package bench

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
)

// A Broker is where load goes. ParseBroker makes one; all fields are immutable
// from then on.
type Broker struct {
	Name    string // as the user calls it, "" for none
	Address string // host:port
	VHost   string
	TLS     *tls.Config // nil for plain TCP
	PIDs    []int       // the broker's processes on this machine, if known

	user, password string
}

// ParseBroker reads an amqp:// or amqps:// URI. Parts that are missing are
// guest, guest, the default port and the virtual host "/". The query may name
// cacertfile, certfile and keyfile (PEM), server_name_indication, and
// verify=verify_none to trust any certificate.
func ParseBroker(name, uri string) (*Broker, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("uri: it cannot be read; write amqp://user:password@host:5672/vhost") // err has the password
	}
	b := &Broker{Name: name, VHost: "/", user: "guest", password: "guest"}
	port := "5672"
	switch u.Scheme {
	case "amqp":
	case "amqps":
		port = "5671"
		b.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	default:
		return nil, fmt.Errorf("uri %q: it must begin with amqp:// or amqps://", u.Redacted())
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("uri %q: it has no host", u.Redacted())
	}
	if u.Port() != "" {
		port = u.Port()
	}
	b.Address = net.JoinHostPort(u.Hostname(), port)
	if u.User != nil {
		b.user = u.User.Username()
		b.password, _ = u.User.Password()
	}
	if path := strings.TrimPrefix(u.EscapedPath(), "/"); path != "" {
		if b.VHost, err = url.PathUnescape(path); err != nil || len(b.VHost) > 255 {
			return nil, fmt.Errorf("uri %q: the virtual host is not well-formed; write / as %%2F", u.Redacted())
		}
	}
	if err := b.query(u.Query()); err != nil {
		return nil, fmt.Errorf("uri %q: %w", u.Redacted(), err)
	}
	return b, nil
}

var queryKeys = []string{"cacertfile", "certfile", "keyfile", "server_name_indication", "verify"}

// query reads the options behind the question mark; all are about TLS.
func (b *Broker) query(q url.Values) error {
	for key := range q {
		if !slices.Contains(queryKeys, key) {
			return fmt.Errorf("unknown option %q; there are %s", key, strings.Join(queryKeys, ", "))
		}
		if b.TLS == nil {
			return fmt.Errorf("option %s is about TLS: write amqps://", key)
		}
	}
	if b.TLS == nil {
		return nil
	}
	switch q.Get("verify") {
	case "", "verify_peer":
	case "verify_none":
		b.TLS.InsecureSkipVerify = true
	default:
		return fmt.Errorf("verify is verify_peer or verify_none")
	}
	if name := q.Get("server_name_indication"); name != "" {
		b.TLS.ServerName = name
	}
	if file := q.Get("cacertfile"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		b.TLS.RootCAs = x509.NewCertPool()
		if !b.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("cacertfile %s has no certificate in it", file)
		}
	}
	if file := q.Get("certfile"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, q.Get("keyfile"))
		if err != nil {
			return err
		}
		b.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// String is how the broker is named in output: never with the password.
func (b *Broker) String() string {
	if b.Name != "" {
		return b.Name
	}
	return b.Address
}
