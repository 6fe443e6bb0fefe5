package management

import (
	"time"
)

// visibleConnections are all, or those of the user; of the path's vhost if it
// names one.
func (r *request) visibleConnections() []Connection {
	var list []Connection
	for _, c := range r.s.cfg.Connections.Connections() {
		if (r.monitors() || c.User == r.user.Name) && (r.vhost == nil || c.VHost == r.vhost.Name()) {
			list = append(list, c)
		}
	}
	return list
}

func connections(r *request) (reply, error) {
	var all []row
	for _, c := range r.visibleConnections() {
		all = append(all, row{c.VHost, c.Name, func(r *request, d details) object { return r.connectionObject(&c, d) }})
	}
	return r.pagedUnlessPart(all)
}

// pagedUnlessPart answers with a list that is paged if the path names nothing that its
// objects are part of: no vhost and no connection (RabbitMQ 4.0).
func (r *request) pagedUnlessPart(all []row) (reply, error) {
	a, err := r.rows(all)
	a.list.unpaged = r.vhost != nil || r.arg("connection") != ""
	return a, err
}

// connection finds the one that the path names. Who may not see it gets 401.
func (r *request) connection() (*Connection, error) {
	for _, c := range r.s.cfg.Connections.Connections() {
		if c.Name != r.arg("connection") {
			continue
		}
		if !r.monitors() && c.User != r.user.Name {
			return nil, notAuthorised("User not authorised to access object")
		}
		return &c, nil
	}
	return nil, errNotFound
}

func oneConnection(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	c, err := r.connection()
	if err != nil {
		return reply{}, err
	}
	return ok(r.connectionObject(c, d))
}

func (r *request) connectionObject(c *Connection, d details) object {
	o := object{
		{"name", c.Name}, {"node", r.s.cfg.Node}, {"vhost", c.VHost}, {"user", c.User}, {"user_who_performed_action", c.User},
		{"protocol", "AMQP 0-9-1"}, {"type", "network"}, {"state", connectionState(c)}, {"channels", c.Channels},
		{"channel_max", int(c.ChannelMax)}, {"frame_max", int64(c.FrameMax)}, {"timeout", int(c.Heartbeat.Seconds())},
		{"connected_at", c.ConnectedAt.UnixMilli()}, {"auth_mechanism", c.Mechanism}, {"client_properties", c.ClientProperties},
		{"host", c.Host.Addr().Unmap().String()}, {"port", int(c.Host.Port())},
		{"peer_host", c.Peer.Addr().Unmap().String()}, {"peer_port", int(c.Peer.Port())},
	}
	o = append(o, securityMembers(c)...)
	if c.UserProvidedName != "" {
		o.add("user_provided_name", c.UserProvidedName)
	}
	if r.withoutStats() {
		return o
	}
	figures := connectionCounters(c)
	addFigures(&o, octetMetrics, &figures, r.s.sampler.view(part{aConnection, c.VHost, c.Name}), d)
	o = append(o, member{"recv_cnt", c.Reads}, member{"send_cnt", c.Writes}, member{"send_pend", c.Pending})
	addRuntime(&o)
	return o
}

// securityMembers describe the TLS of a connection; all but the first are null
// without. The hash and the key exchange are part of the cipher's name.
func securityMembers(c *Connection) object {
	o := object{{"ssl", c.TLS}, {"ssl_protocol", nil}, {"ssl_cipher", nil}, {"ssl_hash", nil}, {"ssl_key_exchange", nil},
		{"peer_cert_subject", nil}, {"peer_cert_issuer", nil}, {"peer_cert_validity", nil}}
	if c.TLS {
		o[1].value, o[2].value = c.TLSVersion, c.TLSCipher
	}
	if cert := c.PeerCertificate; cert != nil {
		o[5].value, o[6].value = cert.Subject.String(), cert.Issuer.String()
		o[7].value = cert.NotBefore.UTC().Format(time.RFC3339) + " - " + cert.NotAfter.UTC().Format(time.RFC3339)
	}
	return o
}

func connectionState(c *Connection) string {
	if c.Blocked {
		return "blocked"
	}
	return "running"
}

// closedByAPI is the reason that a client gets unless the request names one
// (RabbitMQ 4.0).
const closedByAPI = "Closed via management plugin"

func (r *request) closeReason() string { return or(r.http.Header.Get("X-Reason"), closedByAPI) }

func closeConnection(r *request) (reply, error) {
	c, err := r.ownConnection()
	if err != nil {
		return reply{}, err
	}
	if !r.s.cfg.Connections.CloseConnection(c.Name, r.closeReason()) {
		return reply{}, errNotFound
	}
	return noContent, nil
}

// ownConnection is connection for who wants to close it: administrators may
// close all, others their own.
func (r *request) ownConnection() (*Connection, error) {
	c, err := r.connection()
	if err != nil {
		return nil, err
	}
	if c.User != r.user.Name && !r.user.Has("administrator") {
		return nil, notAuthorised("User not authorised to access object")
	}
	return c, nil
}

func userConnections(r *request) (reply, error) {
	if r.arg("user") != r.user.Name && !r.monitors() {
		return reply{}, notAuthorised("User not authorised to access object")
	}
	var all []row
	for _, c := range r.visibleConnections() {
		if c.User == r.arg("user") {
			all = append(all, row{c.VHost, c.Name, func(r *request, _ details) object {
				return object{{"name", c.Name}, {"vhost", c.VHost}, {"user", c.User}, {"node", r.s.cfg.Node}}
			}})
		}
	}
	return r.rows(all)
}

func closeUserConnections(r *request) (reply, error) {
	user := r.arg("user")
	if user != r.user.Name && !r.user.Has("administrator") {
		return reply{}, notAuthorised("User not authorised to access object")
	}
	for _, c := range r.s.cfg.Connections.Connections() {
		if c.User == user {
			r.s.cfg.Connections.CloseConnection(c.Name, r.closeReason()) // it may have ended by itself
		}
	}
	return noContent, nil
}

// connectionDetails is how other objects name a connection.
func (s *Server) connectionDetails(name string) object {
	for _, c := range s.cfg.Connections.Connections() {
		if c.Name == name {
			return peerObject(&c)
		}
	}
	return object{{"name", name}}
}

func peerObject(c *Connection) object {
	return object{{"name", c.Name}, {"peer_host", c.Peer.Addr().Unmap().String()}, {"peer_port", int(c.Peer.Port())}}
}
