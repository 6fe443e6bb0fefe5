package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leveretmq/leveret/config"
)

// checkPorts looks whether the addresses of the listeners are free, and who has
// them if not.
func (p *patient) checkPorts(ctx context.Context) []finding {
	const name = "ports"
	var found []finding
	for _, list := range []string{p.cfg.Listen, p.cfg.TLSListen, p.cfg.ManagementListen, p.cfg.ManagementTLSListen, p.cfg.PrometheusListen, p.cfg.PrometheusTLSListen} {
		for _, address := range config.Addresses(list) {
			_, port, err := net.SplitHostPort(address)
			if err != nil || port == "0" || !p.taken(address) {
				continue
			}
			who := p.listener(port)
			if strings.Contains(who, "leveret") || who == "" && p.runs(ctx) {
				continue // the broker itself
			}
			found = append(found, finding{name, bad, fmt.Sprintf("%s is taken by %s", address, or(who == "", "a program that is not visible from here", who)),
				"stop that, or choose another address for this broker"})
		}
	}
	if found == nil {
		return one(name, fine, "no other program has them", "")
	}
	return found
}

// addressTaken says whether a listener cannot be opened.
func addressTaken(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	return l.Close() != nil
}

// listener names the process that listens on a TCP port, "" if it is not
// visible: those of others are not to all users.
func (p *patient) listener(port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	inodes := p.listening(uint16(n))
	processes, err := fs.Glob(p.root, "proc/[0-9]*/fd")
	if err != nil || len(inodes) == 0 {
		return ""
	}
	for _, dir := range processes {
		if !p.hasSocket(dir, inodes) {
			continue
		}
		pid := strings.Split(dir, "/")[1]
		return fmt.Sprintf("process %s (%s)", pid, p.word("proc/"+pid+"/comm"))
	}
	return ""
}

// listening are the sockets that listen on a port, as the links to them read.
func (p *patient) listening(port uint16) []string {
	const listens = "0A" // the state, in Linux's numbers
	var sockets []string
	for _, table := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		for line := range strings.Lines(p.word(table)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == listens && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				sockets = append(sockets, "socket:["+f[9]+"]")
			}
		}
	}
	return sockets
}

func (p *patient) hasSocket(dir string, sockets []string) bool {
	entries, err := fs.ReadDir(p.root, dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		link, err := fs.ReadLink(p.root, dir+"/"+e.Name())
		return err == nil && slices.Contains(sockets, link)
	})
}

func (p *patient) runs(ctx context.Context) bool {
	_, err := p.version(ctx)
	return err == nil
}

// ownVersion is the version of RabbitMQ that the broker with this configuration
// stands for. It is asked over its socket, or by HTTP. What answers by HTTP must
// say that it is this broker: a RabbitMQ has the same usual address and login.
func ownVersion(ctx context.Context, cfg config.Config, env func(string) (string, bool)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var o struct {
		Product string `json:"product_name"`
		Node    string `json:"node"`
		Version string `json:"rabbitmq_version"`
	}
	if cfg.DataDir != "" && !cfg.InMemory { // else the folder is another broker's
		if path := adminSocket(cfg.DataDir, env); path != "" {
			a := &api{base: "http://127.0.0.1", shown: path, http: &http.Client{Transport: overSocket(path)}, local: true}
			err := a.get(ctx, apiPath("overview"), &o)
			return o.Version, err
		}
	}
	addresses := config.Addresses(cfg.ManagementListen)
	if len(addresses) == 0 {
		return "", errors.New("it has no socket and no HTTP API")
	}
	a := newAPI(&options{url: addresses[0] + cfg.HTTP.PathPrefix}, env)
	if err := a.get(ctx, apiPath("overview"), &o); err != nil {
		return "", err
	}
	if o.Product != cfg.ProductName || cfg.NodeName == "" && !strings.HasPrefix(o.Node, "leveret@") || cfg.NodeName != "" && o.Node != cfg.NodeName {
		return "", fmt.Errorf("%s is the node %s of %s", a.shown, o.Node, o.Product)
	}
	if err := a.keepsIts(ctx, cfg, o.Node); err != nil {
		return "", err
	}
	return o.Version, nil
}

// keepsIts returns an error if the node keeps its data elsewhere than a broker with
// this configuration.
func (a *api) keepsIts(ctx context.Context, cfg config.Config, node string) error {
	var nodes []struct {
		Name string `json:"name"`
		Dir  string `json:"db_dir"` // "" in memory
	}
	if err := a.get(ctx, apiPath("nodes"), &nodes); err != nil {
		return err
	}
	own := cfg.DataDir
	if cfg.InMemory {
		own = ""
	}
	for _, n := range nodes {
		if n.Name == node && !sameFolder(n.Dir, own) {
			return fmt.Errorf("%s is a broker with the data folder %q", a.shown, n.Dir)
		}
	}
	return nil
}

// sameFolder says whether the data folder of a broker may be this one; "" is none. A
// relative one cannot be compared: it depends on where the broker was started.
func sameFolder(theirs, own string) bool {
	switch {
	case theirs == "" || own == "":
		return theirs == own
	case !filepath.IsAbs(theirs):
		return true
	}
	a, errA := os.Stat(theirs)
	b, errB := os.Stat(own)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// checkBroker asks the broker that runs. That there is none is no mistake: the
// doctor is for before the start as well.
func (p *patient) checkBroker(ctx context.Context) []finding {
	const name = "broker"
	version, err := p.version(ctx)
	if err == nil {
		return one(name, fine, "it runs and answers (as RabbitMQ "+version+")", "")
	}
	for _, address := range config.Addresses(p.cfg.Listen) {
		if _, port, err := net.SplitHostPort(address); err == nil && strings.Contains(p.listener(port), "leveret") {
			return one(name, bad, "it listens on "+address+", and its HTTP API does not answer", "look into its log; give the doctor the flags and variables that it was started with")
		}
	}
	return one(name, fine, "none runs here", "")
}
