package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// adminConfigFile is the configuration file of rabbitmqadmin, in the user's home
// folder. Each section of it has the options for one broker.
const adminConfigFile = ".rabbitmqadmin.conf"

// adminKeys are the options that the file can have: by the name there, the flag's.
func adminKeys() map[string]string {
	return map[string]string{
		"hostname": "host", "port": "port", "base_uri": "base-uri", "path_prefix": "path-prefix",
		"vhost": "vhost", "declare_vhost": "declare-vhost", "username": "username", "password": "password",
		"ssl": "ssl", "ssl_insecure": "ssl-insecure", "ssl_disable_hostname_verification": "ssl-disable-hostname-verification",
		"ssl_ca_cert_file": "ssl-ca-cert-file", "ssl_cert_file": "ssl-cert-file", "ssl_key_file": "ssl-key-file",
		"request_timeout": "request-timeout", "format": "format", "sort": "sort", "sort_reverse": "sort-reverse",
		"depth": "depth", "quiet": "quiet", "verbose": "quiet",
	}
}

// configure gives the options that are not on the command line what the
// configuration file says, and takes --base-uri apart. LEVERET_URL comes before a
// file that the command line does not ask for.
func (o *adminOptions) configure(f *pflag.FlagSet, env func(string) (string, bool)) error {
	asked := f.Changed("config") || f.Changed("node")
	if address, _ := env("LEVERET_URL"); asked || address == "" {
		section, err := o.section()
		if err != nil {
			return err
		}
		if err := fillIn(f, section); err != nil {
			return err
		}
	}
	if o.timeout <= 0 {
		return exitf(exitUsage, "--request-timeout is 1 second at least")
	}
	if o.format == "table" { // RabbitMQ 4.0: its name for it
		o.format = "pretty_table"
	}
	if !slices.Contains(adminFormats, o.format) {
		return exitf(exitUsage, "there is no format %q; take one of %s", o.format, strings.Join(adminFormats, ", "))
	}
	return o.applyBaseURI()
}

// section is the section of the file that --config and --node choose; nil if there
// is none and none was asked for.
func (o *adminOptions) section() (map[string]string, error) {
	name := o.config
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil && o.node == "" {
			return nil, nil
		}
		name = filepath.Join(home, adminConfigFile)
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && o.config == "" && o.node == "" {
		return nil, nil
	}
	if err != nil {
		return nil, exitf(exitUsage, "cannot read the configuration file: %v", err)
	}
	sections, err := parseSections(string(raw))
	if err != nil {
		return nil, exitf(exitUsage, "configuration file %s: %v", name, err)
	}
	section, there := sections[or(o.node == "", "default", o.node)]
	if !there && o.node != "" {
		return nil, exitf(exitUsage, "there is no section [%s] in the configuration file %s; it has: %s",
			o.node, name, strings.Join(slices.Sorted(maps.Keys(sections)), ", "))
	}
	return section, nil
}

// inAll is the section whose lines are in all others, too, unless those have their own.
const inAll = "DEFAULT"

// parseSections reads a file as Python's configparser has them: [sections] with
// lines name = value or name: value.
func parseSections(text string) (map[string]map[string]string, error) {
	sections := map[string]map[string]string{inAll: {}}
	var section map[string]string
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, closed := strings.Cut(name, "]")
			if !closed {
				return nil, fmt.Errorf("line %d: there is no ] after the name of a section", n)
			}
			if sections[name] == nil {
				sections[name] = map[string]string{}
			}
			section = sections[name]
			continue
		}
		i := strings.IndexAny(line, "=:")
		switch {
		case section == nil:
			return nil, fmt.Errorf("line %d: it belongs to no section; begin with [default]", n)
		case i < 1:
			return nil, fmt.Errorf("line %d: it is not of the form name = value", n)
		}
		section[strings.ToLower(strings.TrimSpace(line[:i]))] = singlePercent(strings.TrimSpace(line[i+1:]))
	}
	all := sections[inAll]
	delete(sections, inAll)
	for name, own := range sections {
		section := maps.Clone(all)
		maps.Copy(section, own)
		sections[name] = section
	}
	return sections, nil
}

// singlePercent undoes the doubling of percent signs. A value that has a single one,
// as a password may, is what it is.
func singlePercent(s string) string {
	if strings.Contains(strings.ReplaceAll(s, "%%", ""), "%") {
		return s
	}
	return strings.ReplaceAll(s, "%%", "%")
}

// fillIn sets the flags that are not given to what a section says.
func fillIn(f *pflag.FlagSet, section map[string]string) error {
	elsewhere := f.Changed("host") || f.Changed("port") || f.Changed("url") || f.Changed("base-uri")
	keys := adminKeys()
	for _, key := range slices.Sorted(maps.Keys(section)) {
		name, known := keys[key]
		if !known {
			return exitf(exitUsage, "%q of the configuration file is not one of: %s", key, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if f.Changed(name) || key == "base_uri" && elsewhere {
			continue
		}
		value := section[key]
		if f.Lookup(name).Value.Type() == "bool" {
			on, err := parseSwitch(value)
			if err != nil {
				return exitf(exitUsage, "%q of the configuration file: %v", key, err)
			}
			value = strconv.FormatBool(on != (key == "verbose"))
		}
		if err := f.Set(name, value); err != nil {
			return exitf(exitUsage, "%q of the configuration file: %v", key, err)
		}
	}
	return nil
}

// parseSwitch reads a boolean of configparser.
func parseSwitch(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "yes", "true", "on":
		return true, nil
	case "0", "no", "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is not True or False", s)
}

// applyBaseURI takes host, port and login out of --base-uri.
func (o *adminOptions) applyBaseURI() error {
	if o.baseURI == "" {
		return nil
	}
	text := o.baseURI
	if !strings.Contains(text, "//") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" { // the text may have a password in it
		return exitf(exitUsage, "--base-uri is not of the form http://host:port or https://host:port")
	}
	o.host, o.port = u.Hostname(), or(u.Port() == "", o.port, u.Port())
	o.tls = o.tls || u.Scheme == "https"
	if u.User != nil {
		o.user = u.User.Username()
		o.password, _ = u.User.Password()
	}
	return nil
}

// transport is the way to a broker by TLS, with what the options say of certificates;
// nil if they say nothing.
func (o *adminOptions) transport() (http.RoundTripper, error) {
	if o.caFile == "" && o.certFile == "" && o.keyFile == "" && !o.insecure && !o.anyHost {
		return nil, nil
	}
	cfg := &tls.Config{InsecureSkipVerify: o.insecure || o.anyHost}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, exitf(exitUsage, "--ssl-ca-cert-file: %v", err)
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, exitf(exitUsage, "--ssl-ca-cert-file: there is no certificate in PEM format in %s", o.caFile)
		}
	}
	if o.certFile != "" || o.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(or(o.certFile == "", o.keyFile, o.certFile), or(o.keyFile == "", o.certFile, o.keyFile))
		if err != nil {
			return nil, exitf(exitUsage, "--ssl-cert-file, --ssl-key-file: %v", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if o.anyHost && !o.insecure {
		cfg.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, cfg.RootCAs) }
	}
	t := http.DefaultTransport.(*http.Transport).Clone() // it is one
	t.TLSClientConfig = cfg
	return t, nil
}

// verifyChain checks who has signed a certificate, and not which host it is of.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] { // there is one at least
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}
