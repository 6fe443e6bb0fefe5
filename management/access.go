package management

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/vhost"
)

// An access is the check before a handler: who may call it (RabbitMQ 4.0: by
// user tags). It finds the request's vhost if the path names one.
type access func(r *request) error

// anybody needs no credentials.
func anybody(*request) error { return nil }

// anyTag lets every user in that may use the API at all.
func anyTag(r *request) error {
	if err := r.enter(); err != nil {
		return err
	}
	return r.findVHost()
}

// enter lets in who has a tag that counts.
func (r *request) enter() error {
	if err := r.authenticate(); err != nil {
		return err
	}
	if !anyOf(r.user.Tags, auth.Administrator, auth.Monitoring, auth.Policymaker, auth.Management) {
		return notAuthorised("Not management user")
	}
	return nil
}

// administrator lets administrators in only.
func administrator(r *request) error {
	if err := administratorOf(r); err != nil {
		return err
	}
	return r.findVHost()
}

// administratorOf is administrator for a path whose vhost may be missing: the
// handler says so.
func administratorOf(r *request) error {
	if err := r.enter(); err != nil {
		return err
	}
	if !r.user.Has(auth.Administrator) {
		return notAuthorised("Not administrator user")
	}
	return nil
}

// administratorIfAny is administratorOf for a handler that has use for the vhost if
// there is one.
func administratorIfAny(r *request) error {
	if err := administratorOf(r); err != nil {
		return err
	}
	_ = r.findVHost() // the handler sees it
	return nil
}

// monitor is for the view of the whole broker.
func monitor(r *request) error {
	if err := r.enter(); err != nil {
		return err
	}
	if !r.monitors() {
		return notAuthorised("Not monitor user")
	}
	return r.findVHost()
}

// monitorOrInVHost is for limits: monitors see those of all vhosts.
func monitorOrInVHost(r *request) error {
	if err := anyTag(r); err != nil || r.monitors() {
		return err
	}
	return r.mayVHost()
}

// policymaker is for parameters and policies.
func policymaker(r *request) error {
	if err := r.enter(); err != nil {
		return err
	}
	if !r.user.Has(auth.Policymaker) && !r.user.Has(auth.Administrator) {
		return errNotYourObject
	}
	if err := r.findVHost(); err != nil {
		return err
	}
	if r.mayVHost() != nil {
		return errNotYourObject
	}
	return nil
}

// inVHost is for what is in a vhost: the user needs a permission there.
func inVHost(r *request) error {
	if err := anyTag(r); err != nil {
		return err
	}
	return r.mayVHost()
}

// inVHostIfAny is inVHost for lists that are empty in a vhost that there is not
// (RabbitMQ 4.0). Those are for the handler, which then has none.
func inVHostIfAny(r *request) error {
	if err := inVHost(r); err != error(errNotFound) {
		return err
	}
	return nil
}

// mayVHost checks the vhost of the path, if there is one.
func (r *request) mayVHost() error {
	if r.vhost == nil || r.sees(r.vhost.Name()) {
		return nil
	}
	return notAuthorised("User not authorised to access virtual host")
}

// monitors says whether the user sees what is not its own.
func (r *request) monitors() bool {
	return r.user.Has(auth.Monitoring) || r.user.Has(auth.Administrator)
}

// sees says whether the user sees what is in a vhost.
func (r *request) sees(vhost string) bool {
	return r.user.Has(auth.Administrator) || r.s.cfg.Auth.VHostAccess(r.user, vhost) == nil
}

// findVHost finds the vhost that the path names.
func (r *request) findVHost() error {
	name, ok := r.resource.variable("vhost", r.segments)
	if !ok {
		return nil
	}
	v, ok := r.s.cfg.VHosts.Get(name)
	if !ok && (r.http.Method == http.MethodPut || r.http.Method == http.MethodPost) {
		return missing(errNotFound, "vhost_not_found")
	}
	if !ok {
		return errNotFound
	}
	r.vhost = v
	return nil
}

// authenticate finds out who the user is.
func (r *request) authenticate() error {
	if r.enterLocally() {
		return nil
	}
	name, password, ok := r.http.BasicAuth()
	if !ok {
		if r.http.Header.Get("Authorization") != "" {
			return errBadLogin
		}
		return errNoCredentials
	}
	u, err := r.login(name, password)
	r.user = u
	return err
}

// login checks a name and password, unless too many have failed.
func (r *request) login(name, password string) (auth.User, error) {
	u, err := r.s.cfg.Auth.Authenticate(name, password, auth.Credentials{Peer: peerOf(r.http), Loopback: r.onSocket()})
	if errors.Is(err, auth.ErrThrottled) {
		return u, errTooManyLogins
	}
	if err != nil {
		if strings.Contains(err.Error(), "via localhost") {
			return u, notAuthorised("User can only log in via localhost")
		}
		return u, errBadLogin
	}
	return u, nil
}

// peerOf is the client's address; the zero one if it has none.
func peerOf(h *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(h.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// An actor acts on topology for a user of the API. It owns no queue.
type actor struct {
	auth        *auth.Authority
	user, vhost string
	all         bool // may do everything
}

var _ vhost.Actor = (*actor)(nil)

// actor is the user of the request in its vhost.
func (r *request) actor() *actor { return r.actorIn(r.vhost.Name()) }

// actorIn is the user of the request in another vhost.
func (r *request) actorIn(vhost string) *actor {
	return &actor{r.s.cfg.Auth, r.user.Name, vhost, r.local}
}

// User implements vhost.Actor.
func (a *actor) User() string { return a.user }

// Owner implements vhost.Actor.
func (a *actor) Owner() any { return nil }

// MayExchange implements vhost.Actor.
func (a *actor) MayExchange(p vhost.Permission, name string) error {
	if a.all {
		return nil
	}
	return a.auth.Check(a.user, a.vhost, auth.Resource{Kind: auth.Exchange, Name: name}, permission(p))
}

// MayQueue implements vhost.Actor.
func (a *actor) MayQueue(p vhost.Permission, name string) error {
	if a.all {
		return nil
	}
	return a.auth.Check(a.user, a.vhost, auth.Resource{Kind: auth.Queue, Name: name}, permission(p))
}

// MayTopic implements vhost.Actor.
func (a *actor) MayTopic(p vhost.Permission, exchange, key string) error {
	if a.all {
		return nil
	}
	return a.auth.CheckTopic(a.user, a.vhost, exchange, permission(p), key)
}

func permission(p vhost.Permission) auth.Permission {
	switch p {
	case vhost.Configure:
		return auth.Configure
	case vhost.Write:
		return auth.Write
	}
	return auth.Read
}
