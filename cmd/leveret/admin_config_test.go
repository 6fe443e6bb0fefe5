package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An adminCase is a command line of rabbitmqadmin, and what comes of it.
type adminCase struct {
	line string
	code int
	want string // in the output
}

func (c adminCase) check(t *testing.T) {
	t.Helper()
	if code, out, errs := call(t, "", append([]string{"rabbitmqadmin"}, words(c.line)...)...); code != c.code || !strings.Contains(out+errs, c.want) {
		t.Errorf("%s: exit %d, %s%s; want %d and %q", c.line, code, out, errs, c.code, c.want)
	}
}

// What the configuration file says chooses the broker, but for what the command line
// says.
func TestAdminConfigurationFile(t *testing.T) {
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(startBroker(t), "http://"))
	call(t, "", "rabbitmqadmin", "declare", "vhost", "name=v")
	call(t, "", "rabbitmqadmin", "-V", "v", "declare", "queue", "name=q")
	call(t, "hello", "rabbitmqadmin", "-V", "v", "publish", "routing_key=q")
	file := write(t, filepath.Join(t.TempDir(), "f"), fmt.Sprintf(`
		[default]
		hostname = %[1]s
		port: 1
		[prod]
		hostname = %[1]s
		port = %[2]s
		ssl = False
		declare_vhost = v
		format = tsv
		username = nobody
		[uri]
		base_uri = http://guest:guest@%[1]s:%[2]s
		verbose = False
		[wrong]
		host = x
		[wrong2]
		ssl = maybe
		[wrong3]
		request_timeout = soon`, host, port))
	for _, c := range []adminCase{
		{"-c " + file + " list queues", exitFailure, host + ":1"},
		{"-c " + file + " -N prod list queues", exitFailure, "refuses the login"},
		{"-c " + file + " -N prod -u guest list queues name", 0, "name\nq\n"},
		{"-c " + file + " -N prod -u guest get queue=q", 0, "\thello\t"},
		{"list queues --config " + file + " --node uri name", 0, "| q    |"},
		{"-c " + file + " -N uri --port 1 list queues", exitFailure, "127.0.0.1:1"},
		{"-c " + file + " -N staging delete queue name=q", exitUsage, "there is no section [staging]"},
		{"-c " + file + " -N wrong list queues", exitUsage, `"host" of the configuration file is not one of`},
		{"-c " + file + " -N wrong2 list queues", exitUsage, `"maybe" is not True or False`},
		{"-c " + file + " -N wrong3 list queues", exitUsage, `"request_timeout" of the configuration file`},
		{"-c " + file + ".none list queues", exitUsage, "no such file"},
		{"-N prod list queues", exitUsage, "no such file"},
		{"list queues --port 1", exitFailure, "127.0.0.1:1"},
		{"list queues --username=guest --password=wrong", exitFailure, "refuses the login"},
		{"-t 0 list queues", exitUsage, "--request-timeout"},
		{"-U ftp://x list queues", exitUsage, "--base-uri"},
	} {
		c.check(t)
	}
	// The file in the home folder is for who says nothing else.
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, adminConfigFile), "[default]\nport = 1\n[local]\nhostname = "+host+"\nport = "+port)
	adminCase{"list queues name", 0, "| q    |"}.check(t) // of LEVERET_URL
	adminCase{"-N local list queues name", 0, "| q    |"}.check(t)
	t.Setenv("LEVERET_URL", "")
	adminCase{"list queues name", exitFailure, "127.0.0.1:1"}.check(t)
}

func TestAdminDepth(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	for line, want := range map[string]string{"": "name\tmessages\n", "-d 1 ": "\tdurable\t", "-d 2 ": "\targuments.x-queue-type\t"} {
		_, out, _ := call(t, "", append([]string{"rabbitmqadmin"}, words("-f tsv "+line+"list queues")...)...)
		if !strings.Contains(out, want) || line == "-d 1 " && strings.Contains(out, "arguments") {
			t.Errorf("%slist queues prints %s, want %q in it", line, out, want)
		}
	}
}

// certificate is a file with the certificate and, if it has one, the key of a pair.
func certificate(t *testing.T, name string, pair tls.Certificate) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), name), string(append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)))
}

func TestAdminOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "app" || r.URL.Path == "/api/users" && len(r.TLS.PeerCertificates) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `[{"name":"q"}]`)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that break off are wanted
	s.StartTLS()
	defer s.Close()
	ask(t, "")
	pair := certificate(t, "pair.pem", s.TLS.Certificates[0]) // it has no name localhost
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	local, named := "-U https://app:x@127.0.0.1:"+port, "-s -u app -H localhost -P "+port
	for _, c := range []adminCase{
		{local + " list queues", exitFailure, "certificate"},
		{local + " -k list queues", 0, "| q"},
		{named + " --ssl-insecure list queues", 0, "| q"},
		{local + " --ssl-ca-cert-file " + pair + " list queues", 0, "| q"},
		{named + " --ssl-ca-cert-file " + pair + " list queues", exitFailure, "certificate"},
		{named + " --ssl-disable-hostname-verification --ssl-ca-cert-file " + pair + " list queues", 0, "| q"},
		{named + " --ssl-disable-hostname-verification list queues", exitFailure, "certificate"},
		{local + " -k list users", exitFailure, "refuses the login"},
		{local + " -k --ssl-cert-file " + pair + " --ssl-key-file " + pair + " list users", 0, "| q"},
		{local + " --ssl-ca-cert-file " + pair + ".none list queues", exitUsage, "no such file"},
		{local + " --ssl-cert-file " + os.DevNull + " list queues", exitUsage, "--ssl-cert-file"},
	} {
		c.check(t)
	}
}

func TestParseSections(t *testing.T) {
	text := "\ufeff# comment\r\n[DEFAULT]\nusername = all\n[ a b ]\n  Port=1 ; no comment\n ; comment\npassword : 5=%%:x\n[b]\nusername=\npassword=50%%%\n[DEFAULT]\nvhost=/\n"
	got, err := parseSections(text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{
		" a b ": {"port": "1 ; no comment", "password": "5=%:x", "username": "all", "vhost": "/"},
		"b":     {"username": "", "password": "50%%%", "vhost": "/"},
	}
	if !maps.EqualFunc(got, want, maps.Equal[map[string]string, map[string]string]) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"a = 1", "[a", "[a]\nport", "[a]\n= 1"} {
		if got, err := parseSections(text); err == nil {
			t.Errorf("%q is read as %q, want an error", text, got)
		}
	}
}

func FuzzParseSections(f *testing.F) {
	f.Add("[default]\nhostname = localhost\npassword: 1%%2\n")
	f.Add("[DEFAULT]\na=\n[]\n[x]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		sections, err := parseSections(text)
		if err != nil {
			return
		}
		for _, section := range sections {
			for key, value := range section {
				if key == "" || key != strings.TrimSpace(key) || value != strings.TrimSpace(value) {
					t.Errorf("%q: key %q has the value %q", text, key, value)
				}
			}
		}
	})
}
