package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/leveretmq/leveret/config"
)

var errGone = errors.New("no answer")

// healthy is a machine on which nothing is wrong.
func healthy(t *testing.T) *patient {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.MemoryAvailable, cfg.MemoryLimit, cfg.DiskFreeLimit = t.TempDir(), 4<<30, 2<<30, 1<<30
	cfg.Listen, cfg.ManagementListen, cfg.PrometheusListen = "127.0.0.1:5672", "127.0.0.1:15672", ""
	return &patient{
		root: fstest.MapFS{
			"proc/swaps":             {Data: []byte("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")},
			"proc/sys/vm/swappiness": {Data: []byte("60\n")},
			"proc/net/tcp":           {Data: []byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n")},
			"proc/42/comm":           {Data: []byte("rabbit\n")},
			"proc/42/fd/3":           {Data: []byte("socket:[4711]"), Mode: fs.ModeSymlink | 0o777},
			"sys/kernel/mm/transparent_hugepage/enabled": {Data: []byte("always [madvise] never\n")},
		},
		cfg: cfg, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), uid: 999,
		files:    func() (uint64, error) { return 1 << 20, nil },
		volume:   func(string) (volume, error) { return volume{"ext4", 50 << 30, 100 << 30}, nil },
		sync:     func(string) (time.Duration, error) { return time.Millisecond, nil },
		clock:    func() (bool, error) { return true, nil },
		taken:    func(string) bool { return false },
		version:  func(context.Context) (string, error) { return "", errGone },
		readFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		stat:     func(string) (int, fs.FileMode, error) { return 999, fs.ModeDir | 0o700, nil },
	}
}

func (p *patient) findings(ctx context.Context) []finding {
	var found []finding
	for _, check := range p.checks() {
		found = append(found, check(ctx)...)
	}
	return found
}

func TestAHealthyMachine(t *testing.T) {
	for _, f := range healthy(t).findings(t.Context()) {
		if f.Level != fine {
			t.Errorf("%+v", f)
		}
	}
}

func TestDoctorFinds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		upset func(p *patient, root fstest.MapFS)
		check string
		level severity
		text  string
	}{
		{"few files", func(p *patient, _ fstest.MapFS) { p.files = func() (uint64, error) { return 1024, nil } }, "open files", warning, "at most 1024"},
		{"a limit above the container's", func(p *patient, _ fstest.MapFS) { p.cfg.MemoryAvailable = 1 << 30 }, "memory", bad, "may take"},
		{"a limit near the container's", func(p *patient, _ fstest.MapFS) { p.cfg.MemoryAvailable = 2200 << 20 }, "memory", warning, "leaves little"},
		{"little memory", func(p *patient, _ fstest.MapFS) { p.cfg.MemoryLimit = 64 << 20 }, "memory", warning, "often be stopped"},
		{"swap", func(_ *patient, root fstest.MapFS) {
			root["proc/swaps"].Data = append(root["proc/swaps"].Data, "/swap.img file 2097148 0 -2\n"...)
		}, "swap", warning, "vm.swappiness is 60"},
		{"huge pages", func(_ *patient, root fstest.MapFS) {
			root["sys/kernel/mm/transparent_hugepage/enabled"].Data = []byte("[always] madvise never\n")
		}, "transparent huge pages", warning, "always"},
		{"an old clock", func(p *patient, _ fstest.MapFS) { p.now = time.Unix(0, 0) }, "clock", bad, "1970"},
		{"a clock that was set back", func(p *patient, root fstest.MapFS) {
			root[strings.TrimPrefix(p.cfg.DataDir, "/")+"/store/1.vlog"] = &fstest.MapFile{ModTime: p.now.Add(time.Hour)}
		}, "clock", warning, "set back"},
		{"a clock that runs by itself", func(p *patient, _ fstest.MapFS) { p.clock = func() (bool, error) { return false, nil } }, "clock", warning, "nothing keeps it right"},
		{"a folder of another user", func(p *patient, _ fstest.MapFS) {
			p.stat = func(string) (int, fs.FileMode, error) { return 1000, fs.ModeDir | 0o700, nil }
		}, "data folder", bad, "number 1000, the broker would be number 999"},
		{"an open folder", func(p *patient, _ fstest.MapFS) {
			p.stat = func(string) (int, fs.FileMode, error) { return 999, fs.ModeDir | 0o755, nil }
		}, "data folder", warning, "open to all users"},
		{"a file", func(p *patient, _ fstest.MapFS) {
			p.stat = func(string) (int, fs.FileMode, error) { return 999, 0o600, nil }
		}, "data folder", bad, "no folder"},
		{"in memory", func(p *patient, _ fstest.MapFS) { p.cfg.InMemory = true }, "data folder", warning, "in memory"},
		{"tmpfs", func(p *patient, _ fstest.MapFS) {
			p.volume = func(string) (volume, error) { return volume{"tmpfs", 50 << 30, 100 << 30}, nil }
		}, "disk", warning, "nothing survives"},
		{"nfs", func(p *patient, _ fstest.MapFS) {
			p.volume = func(string) (volume, error) { return volume{"nfs", 50 << 30, 100 << 30}, nil }
		}, "disk", warning, "on nfs"},
		{"a layer of a container", func(p *patient, _ fstest.MapFS) {
			p.volume = func(string) (volume, error) { return volume{"overlayfs", 50 << 30, 100 << 30}, nil }
		}, "disk", warning, "layer"},
		{"a full disk", func(p *patient, _ fstest.MapFS) {
			p.volume = func(string) (volume, error) { return volume{"ext4", 1 << 20, 100 << 30}, nil }
		}, "disk", bad, "publishers are stopped"},
		{"a nearly full disk", func(p *patient, _ fstest.MapFS) {
			p.volume = func(string) (volume, error) { return volume{"ext4", 2 << 30, 100 << 30}, nil }
		}, "disk", warning, "are free"},
		{"a slow disk", func(p *patient, _ fstest.MapFS) {
			p.sync = func(string) (time.Duration, error) { return 50 * time.Millisecond, nil }
		}, "disk latency", warning, "50ms"},
		{"a disk that cannot be written to", func(p *patient, _ fstest.MapFS) {
			p.sync = func(string) (time.Duration, error) { return 0, fs.ErrPermission }
		}, "disk latency", bad, "permission denied"},
		{"a port of another program", func(p *patient, _ fstest.MapFS) {
			p.taken = func(address string) bool { return address == "127.0.0.1:5672" }
		}, "ports", bad, "127.0.0.1:5672 is taken by process 42 (rabbit)"},
		{"a port of a program that is not visible", func(p *patient, root fstest.MapFS) {
			p.taken = func(address string) bool { return address == "127.0.0.1:15672" }
		}, "ports", bad, "not visible"},
		{"the port of the metrics with TLS", func(p *patient, _ fstest.MapFS) {
			p.cfg.PrometheusTLSListen = ":15691"
			p.taken = func(address string) bool { return address == ":15691" }
		}, "ports", bad, ":15691 is taken by a program that is not visible"},
		{"a broker that does not answer", func(_ *patient, root fstest.MapFS) { root["proc/42/comm"].Data = []byte("leveret\n") }, "broker", bad, "does not answer"},
		{"no certificate", func(p *patient, _ fstest.MapFS) { p.cfg.TLS.Cert = "c.pem" }, "certificate", bad, "not exist"},
		{"a certificate without its key", func(p *patient, _ fstest.MapFS) {
			p.certificateUntil(1000 * time.Hour)
			p.cfg.TLS.Key = "c.key" // what the fake has for each name is the certificate
		}, "key", bad, "c.key with c.pem"},
		{"a certificate that is none", func(p *patient, _ fstest.MapFS) {
			p.cfg.TLS.Cert, p.readFile = "c.pem", func(string) ([]byte, error) { return []byte("x"), nil }
		}, "certificate", bad, "PEM"},
		{"an old certificate", func(p *patient, _ fstest.MapFS) { p.certificateUntil(-time.Hour) }, "certificate", bad, "clients refuse it"},
		{"a certificate that ends soon", func(p *patient, _ fstest.MapFS) { p.certificateUntil(24 * time.Hour) }, "certificate", warning, "ends on 2026-06-02"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := healthy(t)
			tt.upset(p, p.root.(fstest.MapFS))
			for _, f := range p.findings(t.Context()) {
				if f.Level == fine {
					continue
				}
				if f.Check == tt.check && f.Level == tt.level && strings.Contains(f.Text, tt.text) && f.Advice != "" {
					return
				}
				t.Errorf("found %+v", f)
			}
			t.Errorf("found no %s %q with %q", tt.level, tt.check, tt.text)
		})
	}
}

// certificateUntil gives the broker a certificate that ends so long from now.
func (p *patient) certificateUntil(d time.Duration) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: p.now.Add(-1000 * time.Hour), NotAfter: p.now.Add(d)}
	raw, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		panic(err)
	}
	p.cfg.TLS.Cert = "c.pem"
	p.readFile = func(string) ([]byte, error) {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
	}
}

func TestDoctorExitCodes(t *testing.T) {
	for _, tt := range []struct {
		levels []severity
		want   int
	}{
		{[]severity{fine}, 0},
		{[]severity{fine, warning, fine}, 1},
		{[]severity{bad, warning}, 2},
	} {
		var found []finding
		for _, l := range tt.levels {
			found = append(found, finding{Level: l})
		}
		code := 0
		if e, ok := errors.AsType[*exitError](diagnosis(found)); ok {
			code = e.code
		}
		if code != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.levels, code, tt.want)
		}
	}
}

// One file for several listeners is told of once, and what to do depends on what is
// wrong with it.
func TestDoctorOnFilesOfCertificates(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrNotExist, "correct its name"},
		{fs.ErrPermission, "let the user of the broker read it"},
	} {
		p := healthy(t)
		p.cfg.TLS.Cert, p.cfg.ManagementTLS.Cert = "c.pem", "c.pem"
		p.readFile = func(string) ([]byte, error) { return nil, tt.err }
		if found := p.checkCertificates(t.Context()); len(found) != 1 || !strings.Contains(found[0].Advice, tt.want) {
			t.Errorf("%v: found %+v, want one with %q", tt.err, found, tt.want)
		}
	}
}

// On this machine, with a wrong setting: everything is read, and the setting named.
func TestDoctorReadsThisMachine(t *testing.T) {
	t.Setenv("RABBITMQ_DEFALT_USER", "x")
	code, out, _ := call(t, "", "leveret", "doctor", "--json", "--data-dir", t.TempDir(), "--memory-limit", "much", "--config", "none")
	if code != exitErrors || !strings.Contains(out, "did you mean RABBITMQ_DEFAULT_USER?") || !strings.Contains(out, `"configuration"`) || !strings.Contains(out, "memory-limit") || !strings.Contains(out, `"disk latency"`) {
		t.Errorf("code %d: %s", code, out)
	}
}

// The broker is asked over the socket in the folder that is named.
func TestDoctorFindsTheBrokerOfItsFolder(t *testing.T) {
	dir := startOnDisk(t)
	t.Setenv("LEVERET_DATA_DIR", "")
	_, out, _ := call(t, "", "leveret", "doctor", "--data-dir", dir, "--listen", "127.0.0.1:0")
	if !strings.Contains(out, "it runs and answers") {
		t.Errorf("the doctor does not see it:\n%s", out)
	}
}

// A broker in memory has no folder: who answers in it has the ports for itself.
func TestDoctorKnowsABrokerInMemory(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir, cfg.ManagementListen = startOnDisk(t), nobody
	if _, err := ownVersion(t.Context(), cfg, os.LookupEnv); err != nil {
		t.Error(err)
	}
	cfg.InMemory = true
	if version, err := ownVersion(t.Context(), cfg, os.LookupEnv); err == nil {
		t.Errorf("the broker on disk, %s, is taken for one in memory", version)
	}
	cfg.ManagementListen = strings.TrimPrefix(startBroker(t), "http://")
	if _, err := ownVersion(t.Context(), cfg, os.LookupEnv); err != nil {
		t.Errorf("by HTTP: %v", err)
	}
	cfg.DataDir, cfg.InMemory = t.TempDir(), false
	if version, err := ownVersion(t.Context(), cfg, os.LookupEnv); err == nil {
		t.Errorf("the broker in memory, %s, is taken for one on disk", version)
	}
}

// What answers at the usual address with the usual login may be a RabbitMQ.
func TestDoctorKnowsItsBroker(t *testing.T) {
	overview, dir := "", t.TempDir()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "guest" || password != "guest":
			t.Errorf("asked for %s as %s", r.URL.Path, user)
		case r.URL.Path == "/api/overview":
			_, _ = io.WriteString(w, overview)
		case r.URL.Path == "/api/nodes":
			_ = json.NewEncoder(w).Encode([]map[string]string{{"name": "leveret@here", "db_dir": dir}, {"name": "mq@here", "db_dir": dir}})
		}
	}))
	t.Cleanup(api.Close)
	ask(t, "http://"+nobody) // another broker's
	for _, tt := range []struct {
		overview, product, node string
		own                     bool
	}{
		{`{"product_name":"RabbitMQ","node":"rabbit@here","rabbitmq_version":"4.0.5"}`, "Leveret", "", false},
		{`{"product_name":"Leveret","node":"leveret@here","rabbitmq_version":"4.0.5"}`, "Leveret", "", true},
		{`{"product_name":"RabbitMQ","node":"rabbit@here","rabbitmq_version":"4.0.5"}`, "RabbitMQ", "", false},
		{`{"product_name":"RabbitMQ","node":"leveret@here","rabbitmq_version":"4.0.5"}`, "RabbitMQ", "", true},
		{`{"product_name":"Leveret","node":"mq@here","rabbitmq_version":"4.0.5"}`, "Leveret", "mq@here", true},
		{`{"product_name":"Leveret","node":"leveret@here","rabbitmq_version":"4.0.5"}`, "Leveret", "mq@here", false},
	} {
		overview = tt.overview
		cfg := config.Default()
		cfg.DataDir, cfg.ManagementListen = dir, strings.TrimPrefix(api.URL, "http://")
		cfg.ProductName, cfg.NodeName = tt.product, tt.node
		version, err := ownVersion(t.Context(), cfg, os.LookupEnv)
		if (err == nil) != tt.own || tt.own && version != "4.0.5" {
			t.Errorf("%s for %s %s: version %q, error %v", tt.overview, tt.product, tt.node, version, err)
		}
		cfg.DataDir = t.TempDir()
		if _, err := ownVersion(t.Context(), cfg, os.LookupEnv); err == nil {
			t.Errorf("%s: a broker with another data folder is taken for it", tt.overview)
		}
		cfg.InMemory = true
		if _, err := ownVersion(t.Context(), cfg, os.LookupEnv); err == nil {
			t.Errorf("%s: a broker on disk is taken for one in memory", tt.overview)
		}
	}
}
