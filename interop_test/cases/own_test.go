//go:build !foreign

package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
	"github.com/leveretmq/leveret/queue/quorum"
	"github.com/leveretmq/leveret/queue/stream"
	"github.com/leveretmq/leveret/vhost"
)

// own is the broker of this process, put together here so that tests can reach
// its parts. Nil when the tests run against another one.
var own *parts

type parts struct {
	store  persistence.Store
	vhosts *vhost.Set
	auth   *auth.Authority
	server *amqp.Server
}

// runOwn runs the tests against a broker in this process.
func runOwn(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "leveret-cases-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if own, err = assemble(dir); err != nil {
		return 1, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1, err
	}
	served := make(chan error, 1)
	go func() { served <- own.server.Serve(context.Background(), l) }()
	brokerURL = "amqp://guest:guest@" + l.Addr().String() + "/"
	administration = own
	code = m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	own.server.Shutdown(ctx)
	return code, errors.Join(<-served, own.vhosts.Stop(), own.store.Close())
}

// assemble makes the parts, as package broker does.
func assemble(dir string) (*parts, error) {
	p := &parts{}
	var err error
	if p.store, err = persistence.Open(persistence.Options{Dir: dir}); err != nil {
		return nil, err
	}
	if p.auth, err = auth.New(auth.Config{DefaultUser: "guest", DefaultPass: "guest"}, p.store); err != nil {
		return nil, err
	}
	p.vhosts, err = vhost.Open(vhost.Config{
		Store:     p.store,
		Memory:    queue.NewBudget(256 << 20),
		Factories: map[string]queue.Factory{"classic": classic.New, "quorum": quorum.New, "stream": stream.New},
		Node:      "leveret@cases",
	})
	if err != nil {
		return nil, err
	}
	p.server = amqp.NewServer(amqp.Config{VHosts: p.vhosts, Auth: p.auth, Wait: p.waitStore, Version: "4.0.5", Node: "leveret@cases"})
	return p, nil
}

// waitStore blocks while the store is behind.
func (p *parts) waitStore(ctx context.Context, _ queue.Writes) error { return p.store.Wait(ctx) }

// operator is who changes policies and limits.
type operator struct{}

func (operator) User() string                                    { return "guest" }
func (operator) Owner() any                                      { return nil }
func (operator) MayExchange(vhost.Permission, string) error      { return nil }
func (operator) MayQueue(vhost.Permission, string) error         { return nil }
func (operator) MayTopic(vhost.Permission, string, string) error { return nil }

func (p *parts) putVHost(name, defaultQueueType string) error {
	if err := p.vhosts.Create(name, vhost.Options{DefaultQueueType: defaultQueueType}); err != nil {
		return err
	}
	return p.permit("guest", name, ".*", ".*", ".*")
}

func (p *parts) deleteVHost(name string) error {
	err := p.vhosts.Delete(name)
	p.server.CloseVHost(name)
	return errors.Join(err, p.auth.DropVHost(name))
}

func (p *parts) vhost(name string) *vhost.VHost {
	v, ok := p.vhosts.Get(name)
	if !ok {
		panic("no vhost " + name)
	}
	return v
}

func (p *parts) limitVHost(name, limit string, n int) error {
	return p.vhost(name).SetLimit(operator{}, limit, int64(n))
}

func (p *parts) putUser(name, password string, tags ...string) error {
	_, err := p.auth.PutUser(name, auth.Secret{Password: password}, tags)
	return err
}

func (p *parts) deleteUser(name string) error {
	err := p.auth.DeleteUser(name)
	p.server.CloseUser(name)
	return err
}

func (p *parts) limitUser(name, limit string, n int) error {
	return p.auth.SetLimit(name, auth.Limit(limit), n)
}

func (p *parts) permit(user, vhost, configure, write, read string) error {
	_, err := p.auth.SetPermissions(user, vhost, configure, write, read)
	return err
}

func (p *parts) permitTopic(user, vhost, exchange, write, read string) error {
	_, err := p.auth.SetTopicPermissions(user, vhost, exchange, write, read)
	return err
}

func (p *parts) putPolicy(vhostName, name string, d policy) error {
	// A definition comes as JSON, so its numbers are float64 or json.Number.
	text, err := json.Marshal(d.definition)
	if err != nil {
		return err
	}
	var definition queue.Definition
	if err := json.Unmarshal(text, &definition); err != nil {
		return err
	}
	return p.vhost(vhostName).SetPolicy(operator{}, vhost.Policy{
		Name: name, Pattern: d.pattern, ApplyTo: d.applyTo, Priority: d.priority, Definition: definition,
	}, d.operator)
}

func (p *parts) deletePolicy(vhostName, name string, isOperator bool) error {
	return p.vhost(vhostName).ClearPolicy(operator{}, name, isOperator)
}
