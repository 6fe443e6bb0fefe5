package amqp

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// capabilityNames are what RabbitMQ 4.0 announces; clients look some of them up.
var capabilityNames = []string{
	"authentication_failure_close", "basic.nack", "connection.blocked", "consumer_cancel_notify",
	"consumer_priorities", "direct_reply_to", "exchange_exchange_bindings", "per_consumer_qos", "publisher_confirms",
}

// startFrame makes connection.start, which is the same for every connection but
// for the mechanisms.
func (s *Server) startFrame(mechanisms string) []byte {
	var caps frames.Table
	for _, name := range capabilityNames {
		caps = append(caps, frames.Field{Name: name, Value: true})
	}
	return frames.AppendMethod(nil, 0, &frames.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9,
		ServerProperties: frames.Table{
			{Name: "capabilities", Value: caps},
			{Name: "cluster_name", Value: s.cfg.ClusterName},
			{Name: "copyright", Value: "Copyright (c) the Leveret authors"},
			{Name: "information", Value: "Leveret, an AMQP 0-9-1 broker"},
			{Name: "platform", Value: s.cfg.Platform},
			{Name: "product", Value: s.cfg.Product},
			{Name: "version", Value: s.cfg.Version},
		},
		Mechanisms: []byte(mechanisms),
		Locales:    []byte("en_US"),
	})
}

// headerHint says what a client with this header is, for the log.
func headerHint(h [8]byte) zap.Field {
	s := string(h[:])
	switch {
	case s[:4] == "AMQP" && h[4] == 0 && h[5] == 1, s[:4] == "AMQP" && h[4] == 3:
		return zap.String("reason", "the client speaks AMQP 1.0; this is an AMQP 0-9-1 listener")
	case s[:4] == "AMQP":
		return zap.String("reason", "the client speaks another version of AMQP than 0-9-1")
	case s[:4] == "GET ", s[:5] == "POST ", s[:4] == "PUT ", s[:5] == "HEAD ", s[:4] == "DELE", s[:4] == "OPTI":
		return zap.String("reason", "an HTTP client has connected to the AMQP port; the management API has another one")
	case h[0] == 0x16 && h[1] == 3:
		return zap.String("reason", "a TLS client has connected to the plain AMQP port")
	}
	return zap.String("reason", "the client does not speak AMQP")
}

// frameZero handles a frame of channel 0, or any frame before the connection
// runs.
func (c *conn) frameZero(f frames.Frame) error {
	if f.Type == frames.HeartbeatFrame && f.Channel == 0 {
		if len(f.Payload) == 0 {
			return nil
		}
		return c.wrongMethod(0, frames.Unboundf(frames.FrameError, "%s: unknown_frame", frames.Octets(f.Type, f.Payload)))
	}
	if f.Type != frames.MethodFrame || f.Channel != 0 {
		return c.wrongMethod(0, unexpectedFrame(f))
	}
	id, args, _ := frames.SplitMethod(f.Payload)
	m, err := frames.DecodeMethod(id, args)
	if err != nil {
		return c.wrongMethod(id, bound(err))
	}
	c.leave() // the method may wait
	switch m := m.(type) {
	case *frames.ConnectionStartOk:
		if c.state == awaitStartOk {
			return c.startOk(m)
		}
	case *frames.ConnectionTuneOk:
		if c.state == awaitTuneOk {
			return c.tuneOk(id, m)
		}
	case *frames.ConnectionOpen:
		if c.state == awaitOpen {
			return c.open(id, m)
		}
	case *frames.ConnectionClose:
		if c.state >= awaitTuneOk {
			return c.closeRequested(m)
		}
	case *frames.ConnectionUpdateSecret:
		if c.state == running {
			c.out.method(0, &frames.ConnectionUpdateSecretOk{}) // the internal backend has nothing to update (RabbitMQ 4.0)
			return nil
		}
	}
	return c.wrongMethod(id, frames.Errorf(frames.ChannelError, "unexpected method in connection state %s", c.state))
}

// bound returns a protocol error as one of the method that is being handled: on
// channel 0 none is without (RabbitMQ 4.0).
func bound(err error) error {
	e, ok := errors.AsType[*frames.Error](err)
	if !ok {
		return err
	}
	return &frames.Error{Code: e.Code, Text: e.Text}
}

// String is the state's name in error texts.
func (s connState) String() string {
	switch s {
	case awaitHeader, awaitStartOk:
		return "starting"
	case awaitTuneOk:
		return "tuning"
	case awaitOpen:
		return "opening"
	case running:
		return "running"
	}
	return "closing"
}

// wrongMethod ends the connection for a method, or with id 0 for a frame, that
// does not belong here; before tuning is done RabbitMQ says nothing.
func (c *conn) wrongMethod(id frames.MethodID, err error) error {
	if c.state < awaitOpen {
		c.log.Warn("unexpected input in the handshake", zap.Error(err))
		return errSilent
	}
	return c.fail(id, err)
}

// startOk logs the client in.
func (c *conn) startOk(m *frames.ConnectionStartOk) error {
	c.caps = clientCapabilities(m.ClientProperties)
	if name, ok := m.ClientProperties.Lookup("connection_name"); ok {
		if s, ok := name.(string); ok {
			c.start.UserProvidedName = s
			c.log = c.log.WithLazy(zap.String("name", s))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.srv.cfg.HandshakeTimeout)
	defer cancel()
	user, err := c.srv.cfg.Auth.Login(ctx, c.credentials(m))
	if err != nil {
		c.srv.event("user.authentication.failure", func() frames.Table { return c.loginEvent("", m.Mechanism, err) })
		return c.loginFailed(m.Mechanism, err)
	}
	c.srv.event("user.authentication.success", func() frames.Table { return c.loginEvent(user.Name, m.Mechanism, nil) })
	c.user = user
	c.start.User, c.start.Mechanism, c.start.ClientProperties = user.Name, m.Mechanism, m.ClientProperties
	c.state = awaitTuneOk
	c.out.method(0, &frames.ConnectionTune{ChannelMax: c.srv.cfg.ChannelMax, FrameMax: c.srv.cfg.FrameMax,
		Heartbeat: uint16(c.srv.cfg.Heartbeat / time.Second)})
	return nil
}

func (c *conn) loginFailed(mechanism string, err error) error {
	c.log.Warn("login failed", zap.String("mechanism", mechanism), zap.Error(err))
	e, ok := errors.AsType[*frames.Error](err)
	if !ok || !c.caps.authFailureClose {
		return errSilent
	}
	c.sendClose(0, e)
	c.state = closing
	c.sock.SetReadDeadline(time.Now().Add(c.closeTimeout()))
	return nil
}

func clientCapabilities(props frames.Table) capabilities {
	v, _ := props.Lookup("capabilities")
	t, _ := v.(frames.Table)
	is := func(name string) bool {
		v, _ := t.Lookup(name)
		b, _ := v.(bool)
		return b
	}
	return capabilities{
		authFailureClose: is("authentication_failure_close"),
		cancelNotify:     is("consumer_cancel_notify"),
		blocked:          is("connection.blocked"),
	}
}

// tuneOk takes the limits that the client chose. RabbitMQ 4.0 refuses 0, which
// would mean no limit, as its own are finite; it drops the connection where
// this says why.
func (c *conn) tuneOk(id frames.MethodID, m *frames.ConnectionTuneOk) error {
	if err := c.checkTune(m); err != nil {
		return c.fail(id, err)
	}
	c.frameMax, c.channelMax = m.FrameMax, m.ChannelMax
	c.heartbeat = time.Duration(m.Heartbeat) * time.Second
	c.state = awaitOpen
	if c.heartbeat > 0 {
		c.beats = startBeats(c)
	}
	return nil
}

func (c *conn) checkTune(m *frames.ConnectionTuneOk) error {
	channels, size := c.srv.cfg.ChannelMax, c.srv.cfg.FrameMax
	switch {
	case m.ChannelMax == 0 || m.ChannelMax > channels:
		return frames.Errorf(frames.NotAllowed, "negotiated channel_max = %d is higher than the maximum allowed value (%d)", m.ChannelMax, channels)
	case m.FrameMax == 0 || m.FrameMax > size:
		return frames.Errorf(frames.NotAllowed, "negotiated frame_max = %d is higher than the maximum allowed value (%d)", m.FrameMax, size)
	case m.FrameMax < frames.MinFrameMax:
		return frames.Errorf(frames.NotAllowed, "negotiated frame_max = %d is lower than the minimum allowed value (%d)", m.FrameMax, frames.MinFrameMax)
	}
	return nil
}

// open enters the vhost.
func (c *conn) open(id frames.MethodID, m *frames.ConnectionOpen) error {
	if c.srv.InMaintenance() {
		return c.fail(id, maintenanceError())
	}
	vh, ok := c.srv.cfg.VHosts.Get(m.VHost)
	if !ok {
		return c.fail(id, frames.Errorf(frames.NotAllowed, "vhost %s not found", m.VHost))
	}
	if err := vh.ConnectionOpened(c.user.Name); err != nil {
		return c.fail(id, err)
	}
	if err := c.srv.users.connectionOpened(c.user.Name); err != nil {
		vh.ConnectionClosed()
		return c.fail(id, err)
	}
	c.vhost, c.counted = vh, true
	if err := c.srv.cfg.Auth.VHostAccess(c.user, m.VHost); err != nil {
		c.uncount() // it takes no place while it waits for the client's close-ok
		return c.fail(id, err)
	}
	c.grants = c.srv.cfg.Auth.Grants(c.user.Name, m.VHost)
	c.state = running
	c.start.VHost = m.VHost
	c.start.ChannelMax, c.start.FrameMax, c.start.Heartbeat = c.channelMax, c.frameMax, c.heartbeat
	c.info.Store(&c.start)
	c.sock.SetReadDeadline(time.Time{})
	c.watch()
	if e := c.forced.Load(); e != nil { // its deadline may just have been taken back
		return c.fail(0, e)
	}
	c.srv.event("connection.created", c.createdEvent)
	c.out.method(0, &frames.ConnectionOpenOk{})
	c.logOpened(m.VHost)
	return nil
}

// closeRequested handles connection.close: everything ends before the answer.
func (c *conn) closeRequested(*frames.ConnectionClose) error {
	if err := c.flush(); err != nil {
		return err
	}
	c.release()
	c.out.method(0, &frames.ConnectionCloseOk{})
	c.state = closing
	return errLeft
}
