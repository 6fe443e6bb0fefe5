package cases_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"
)

// mustAdmin fails the test when a preparation fails.
func mustAdmin(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// user makes a user that is deleted after the test, without permissions.
func user(t *testing.T, tags ...string) string {
	t.Helper()
	name := "u" + rand.Text()[:8]
	mustAdmin(t, administration.putUser(name, "secret", tags...))
	t.Cleanup(func() { _ = administration.deleteUser(name) }) // the test may have done it
	return name
}

// vhostOf makes a vhost that is deleted after the test.
func vhostOf(t *testing.T, defaultQueueType string) string {
	t.Helper()
	name := "v" + rand.Text()[:8]
	mustAdmin(t, administration.putVHost(name, defaultQueueType))
	t.Cleanup(func() { _ = administration.deleteVHost(name) }) // the test may have done it
	return name
}

const refused = "connection 403 ACCESS_REFUSED - Login was refused using authentication mechanism %s. For details see the broker logfile. (0,0)"

// Refused logins (rabbitmq-objc-client#33, dart_amqp#127).
func TestRefusedLogins(t *testing.T) {
	capable := login{}
	old := login{capabilities: table{}}
	for _, tt := range []struct {
		name, mechanism, response string
		l                         login
		want                      string
	}{
		{"wrong password", "PLAIN", "\x00guest\x00wrong", capable, fmt.Sprintf(refused, "PLAIN")},
		{"empty password", "PLAIN", "\x00guest\x00", capable, fmt.Sprintf(refused, "PLAIN")},
		{"unknown user", "PLAIN", "\x00nobody\x00guest", capable, fmt.Sprintf(refused, "PLAIN")},
		{"empty user", "PLAIN", "\x00\x00guest", capable, fmt.Sprintf(refused, "PLAIN")},
		{"wrong password, old client", "PLAIN", "\x00guest\x00wrong", old, "eof"},
		{"AMQPLAIN with a wrong password", "AMQPLAIN", string(table{"LOGIN", "guest", "PASSWORD", "wrong"}.encode()[4:]), capable, fmt.Sprintf(refused, "AMQPLAIN")},
		{"AMQPLAIN without PASSWORD", "AMQPLAIN", string(table{"LOGIN", "guest"}.encode()[4:]), capable, "eof"},
		{"AMQPLAIN with bytes", "AMQPLAIN", string(table{"LOGIN", []byte("guest"), "PASSWORD", []byte("guest")}.encode()[4:]), capable, "ok"},
		{"AMQPLAIN with a number for PASSWORD", "AMQPLAIN", string(table{"LOGIN", "guest", "PASSWORD", 5}.encode()[4:]), capable, fmt.Sprintf(refused, "AMQPLAIN")},
		{"AMQPLAIN with a number for LOGIN", "AMQPLAIN", string(table{"LOGIN", 5, "PASSWORD", "guest"}.encode()[4:]), capable, "eof"},
		{"AMQPLAIN garbage", "AMQPLAIN", "garbage", capable, "eof"},
		{"AMQPLAIN", "AMQPLAIN", string(table{"LOGIN", "guest", "PASSWORD", "guest"}.encode()[4:]), capable, "ok"},
		{"AMQPLAIN, other order", "AMQPLAIN", string(table{"PASSWORD", "guest", "more", 1, "LOGIN", "guest"}.encode()[4:]), capable, "ok"},
		{"unknown mechanism", "FANCY", "\x00guest\x00guest", capable, "eof"},
		{"EXTERNAL without TLS", "EXTERNAL", "", capable, "eof"},
		{"PLAIN without the leading NUL", "PLAIN", "guest\x00guest", capable, "eof"},
		{"PLAIN with an identity", "PLAIN", "guest\x00guest\x00guest", capable, "eof"},
		{"PLAIN empty", "PLAIN", "", capable, "eof"},
		{"PLAIN", "PLAIN", "\x00guest\x00guest", old, "ok"},
		{"lower case", "plain", "\x00guest\x00guest", capable, "eof"},
		{"no vhost", "PLAIN", "\x00guest\x00guest", login{vhost: "nope"}, "connection 530 NOT_ALLOWED - vhost nope not found (10,40)"},
		{"a vhost that is no UTF-8", "PLAIN", "\x00guest\x00guest", login{vhost: "\xff"}, "connection 501 FRAME_ERROR - Malformed UTF-8 in shortstr (10,40)"},
		{"no vhost, old client", "PLAIN", "\x00guest\x00guest", login{vhost: "nope", capabilities: table{}}, "connection 530 NOT_ALLOWED - vhost nope not found (10,40)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.is(c.open(tt.l, tt.mechanism, tt.response), tt.want)
		})
	}
}

func TestNoAccessToTheVHost(t *testing.T) {
	name := user(t)
	c := dial(t)
	c.is(c.login(login{user: name, password: "secret"}), "connection 530 NOT_ALLOWED - access to vhost '/' refused for user '"+name+"' (10,40)")
	mustAdmin(t, administration.permit(name, "/", "", "", ""))
	c = dial(t)
	c.is(c.login(login{user: name, password: "secret"}), "ok") // may nothing, but may in
	c.is(c.on(1).declare("q", "", nil), "channel 403 ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user '"+name+"' (50,10)")
	c.is(c.on(1).declare("q", "p", nil), "channel 404 NOT_FOUND - no queue 'q' in vhost '/' (50,10)")
}

// Which permission each method needs (product-ei#4251,
// react-native-rabbitmq#37). The user may configure ^c, write ^w, read ^r.
func TestPermissions(t *testing.T) {
	name := user(t)
	mustAdmin(t, administration.permit(name, "/", "^(c|amq\\.gen)", "^w", "^r"))
	owner := connect(t)
	for _, q := range []string{"cq", "wq", "rq"} {
		owner.ok(owner.declare(q, "", nil))
		owner.ok(owner.exchange(q, "direct", "", nil))
	}
	owner.ok(owner.bind("wq", "rq", "k", nil))
	no := func(what, kind, object, ids string) string {
		return fmt.Sprintf("channel 403 ACCESS_REFUSED - %s access to %s '%s' in vhost '/' refused for user '%s' %s", what, kind, object, name, ids)
	}
	for _, tt := range []struct {
		name string
		do   func(c *channel) string
		want string
	}{
		{"declare", func(c *channel) string { return c.declare("c", "", nil) }, "ok c 0 0"},
		{"declare, refused", func(c *channel) string { return c.declare("w", "", nil) }, no("configure", "queue", "w", "(50,10)")},
		{"declare existing, refused", func(c *channel) string { return c.declare("wq", "", nil) }, no("configure", "queue", "wq", "(50,10)")},
		{"server-named", func(c *channel) string { return c.declare("", "x", nil) }, "ok amq.gen-* 0 0"},
		{"passive", func(c *channel) string { return c.declare("wq", "p", nil) }, "ok wq 0 0"},
		{"passive exchange", func(c *channel) string { return c.exchange("wq", "direct", "p", nil) }, "ok"},
		{"purge", func(c *channel) string { return c.purge("rq") }, "ok 0"},
		{"purge, refused", func(c *channel) string { return c.purge("cq") }, no("read", "queue", "cq", "(50,30)")},
		{"purge missing, refused", func(c *channel) string { return c.purge("nope") }, no("read", "queue", "nope", "(50,30)")},
		{"get", func(c *channel) string { return c.get("rq") }, "empty"},
		{"get, refused", func(c *channel) string { return c.get("wq") }, no("read", "queue", "wq", "(60,70)")},
		{"consume", func(c *channel) string { return c.consume("rq", "t", "", nil) }, "ok t"},
		{"consume, refused", func(c *channel) string { return c.consume("wq", "t", "", nil) }, no("read", "queue", "wq", "(60,20)")},
		{"delete, refused", func(c *channel) string { return c.remove("rq", "") }, no("configure", "queue", "rq", "(50,40)")},
		{"delete missing, refused", func(c *channel) string { return c.remove("nope", "") }, no("configure", "queue", "nope", "(50,40)")},
		{"delete missing", func(c *channel) string { return c.remove("cnope", "") }, "ok 0"},
		{"bind", func(c *channel) string { return c.bind("wq", "rq", "k", nil) }, "ok"},
		{"bind, queue refused", func(c *channel) string { return c.bind("rq", "rq", "k", nil) }, no("write", "queue", "rq", "(50,20)")},
		{"bind, exchange refused", func(c *channel) string { return c.bind("wq", "wq", "k", nil) }, no("read", "exchange", "wq", "(50,20)")},
		{"bind, both refused", func(c *channel) string { return c.bind("cq", "cq", "k", nil) }, no("write", "queue", "cq", "(50,20)")},
		{"unbind, queue refused", func(c *channel) string { return c.unbind("rq", "rq", "k", nil) }, no("write", "queue", "rq", "(50,50)")},
		{"link", func(c *channel) string { return c.link("wq", "rq", "k", nil) }, "ok"},
		{"link, destination refused", func(c *channel) string { return c.link("rq", "rq", "k", nil) }, no("write", "exchange", "rq", "(40,30)")},
		{"link, source refused", func(c *channel) string { return c.link("wq", "cq", "k", nil) }, no("read", "exchange", "cq", "(40,30)")},
		{"exchange.declare, refused", func(c *channel) string { return c.exchange("x", "direct", "", nil) }, no("configure", "exchange", "x", "(40,10)")},
		{"exchange.delete, refused", func(c *channel) string { return c.removeExchange("rq", "") }, no("configure", "exchange", "rq", "(40,20)")},
		{"unknown type before the permission", func(c *channel) string { return c.exchange("x", "nosuch", "", nil) }, "channel 406 PRECONDITION_FAILED - unknown exchange type 'nosuch' (40,10)"},
		{"publish", func(c *channel) string { return c.put("wq", "k", "m", props{}, "") }, "ack"},
		{"publish, refused", func(c *channel) string { return c.put("rq", "k", "m", props{}, "") }, no("write", "exchange", "rq", "(60,40)")},
		{"publish to missing, refused", func(c *channel) string { return c.put("nope", "k", "m", props{}, "") }, no("write", "exchange", "nope", "(60,40)")},
		{"publish to default, refused", func(c *channel) string { return c.put("", "wq", "m", props{}, "") }, no("write", "exchange", "amq.default", "(60,40)")},
		{"DLX, queue not readable", func(c *channel) string { return c.declare("c2", "", table{"x-dead-letter-exchange", "wx"}) }, no("read", "queue", "c2", "(50,10)")},
		{"alternate, exchange not readable", func(c *channel) string { return c.exchange("c2", "direct", "", table{"alternate-exchange", "wx"}) }, no("read", "exchange", "c2", "(40,10)")},
		{"qos, recover, tx", func(c *channel) string {
			c.ok(c.qos(1, false))
			c.ok(c.call(basicRecover, u8(1)))
			return c.call(txSelect)
		}, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := owner.again(login{user: name, password: "secret"})
			c.T = t
			c.is(tt.do(c), tt.want)
		})
	}
}

func TestPermissionsOfADeadLetterExchange(t *testing.T) {
	name := user(t)
	mustAdmin(t, administration.permit(name, "/", "^c", "^w", "^(r|cr)"))
	c := connectAs(t, login{user: name, password: "secret"})
	c.is(c.declare("cr", "", table{"x-dead-letter-exchange", "wx"}), "ok cr 0 0")
	c.is(c.declare("cr2", "", table{"x-dead-letter-exchange", "rx"}), "channel 403 ACCESS_REFUSED - write access to exchange 'rx' in vhost '/' refused for user '"+name+"' (50,10)")
	c.is(c.declare("cr3", "", table{"x-dead-letter-exchange", ""}), "channel 403 ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user '"+name+"' (50,10)")
	c.is(c.exchange("cr", "direct", "", table{"alternate-exchange", "wx"}), "ok")
	c.is(c.exchange("cr4", "direct", "", table{"alternate-exchange", "rx"}), "channel 403 ACCESS_REFUSED - write access to exchange 'rx' in vhost '/' refused for user '"+name+"' (40,10)")
}

// Topic permissions are about keys, on publish and on bind
// (rabbitmq-server#1099).
func TestTopicPermissions(t *testing.T) {
	name := user(t)
	mustAdmin(t, administration.permit(name, "/", ".*", ".*", ".*"))
	c := connectAs(t, login{user: name, password: "secret"})
	c.ok(c.exchange("t", "topic", "", nil))
	c.ok(c.exchange("free", "topic", "", nil))
	c.ok(c.exchange("d", "direct", "", nil))
	c.ok(c.declare("q", "", nil))
	for _, x := range []string{"t", "d"} {
		mustAdmin(t, administration.permitTopic(name, "/", c.name(x), "^w", "^({username}|a)"))
	}
	c = c.again(login{user: name, password: "secret"})
	c.is(c.bind("q", "t", "a.x", nil), "ok")
	c.is(c.bind("q", "t", name+".x", nil), "ok")
	no := func(what, key, ids string) string {
		return "channel 403 ACCESS_REFUSED - " + what + " access to topic '" + key + "' in exchange 't' in vhost '/' refused for user '" + name + "' " + ids
	}
	c.is(c.bind("q", "t", "b.x", nil), no("read", "b.x", "(50,20)"))
	c.is(c.bind("q", "t", "#", nil), no("read", "#", "(50,20)"))
	c.is(c.unbind("q", "t", "b.x", nil), no("read", "b.x", "(50,50)"))
	c.is(c.link("free", "t", "b.x", nil), no("read", "b.x", "(40,30)"))
	c.is(c.put("t", "w.x", "m", props{}, ""), "ack")
	c.is(c.put("t", "x.w", "m", props{}, ""), no("write", "x.w", "(60,40)"))
	c.is(c.put("t", "w", "m", props{headers: table{"CC", array{"w.1", "b.c"}}}, ""), no("write", "b.c", "(60,40)"))
	c.is(c.put("t", "w", "m", props{headers: table{"BCC", array{"b.c"}}}, ""), no("write", "b.c", "(60,40)"))
	// Expiration, CC and reply-to are looked at before the topic.
	c.is(c.put("t", "x", "m", props{expiration: "soon"}, ""), "channel 406 PRECONDITION_FAILED - invalid expiration 'soon': no_integer (60,40)")
	c.is(c.put("t", "x", "m", props{headers: table{"CC", 1}}, ""), `channel 406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",signedint} (60,40)`)
	c.is(c.put("t", "x", "m", props{replyTo: "amq.rabbitmq.reply-to"}, ""), "channel 406 PRECONDITION_FAILED - fast reply consumer does not exist (60,40)")
	c.is(c.put("t", "x", "m", props{user: "other"}, ""), no("write", "x", "(60,40)"))
	c.is(c.bind("q", "free", "b.x", nil), "ok")    // no entry: all
	c.is(c.put("d", "b", "m", props{}, ""), "ack") // not a topic exchange
}

// An impersonator may set any user-id.
func TestImpersonator(t *testing.T) {
	name := user(t, "impersonator")
	mustAdmin(t, administration.permit(name, "/", ".*", ".*", ".*"))
	c := connectAs(t, login{user: name, password: "secret"})
	c.ok(c.declare("q", "", nil))
	c.is(c.put("", "q", "m", props{user: "bob"}, ""), "ack")
	c.take("q")
	c.is(c.props(), "user=bob")
}

// The secret may be updated; with passwords that changes nothing.
func TestUpdateSecret(t *testing.T) {
	c := connect(t)
	c.ok(c.sync())
	c.send(methodFrame(0, method{10, 70}, long("new"), short("because")))
	it, _ := c.read(patience)
	if it.method != (method{10, 71}) {
		t.Errorf("got %s, want update-secret-ok", c.text(it))
	}
	c.is(c.sync(), "ok")
}

// Limits of vhosts and users.
func TestVHostLimits(t *testing.T) {
	v := vhostOf(t, "")
	mustAdmin(t, administration.limitVHost(v, "max-connections", 1))
	mustAdmin(t, administration.limitVHost(v, "max-queues", 1))
	c := connectAs(t, login{vhost: v})
	c.pause(200 * time.Millisecond) // RabbitMQ counts in the background
	d := dial(t)
	d.is(d.login(login{vhost: v}), "connection 530 NOT_ALLOWED - access to vhost '"+v+"' refused for user 'guest': connection limit (1) is reached (10,40)")
	c.is(c.declare("q", "x", nil), "ok q 0 0")
	c.is(c.declare("q", "x", nil), "ok q 0 0")
	c.is(c.declare("r", "x", nil), "channel 406 PRECONDITION_FAILED - cannot declare queue 'r': queue limit in vhost '"+v+"' (1) is reached (50,10)")
	c.is(c.declare("r", "x", table{"x-max-length", -1}),
		"channel 406 PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'r' in vhost '"+v+"': {value_negative,-1} (50,10)")
	mustAdmin(t, administration.limitVHost(v, "max-queues", -1))
	c.is(c.declare("r", "x", nil), "ok r 0 0")
	mustAdmin(t, administration.limitVHost(v, "max-connections", 0))
	d = dial(t)
	d.is(d.login(login{vhost: v}), "connection 530 NOT_ALLOWED - access to vhost '"+v+"' refused for user 'guest': connection limit (0) is reached (10,40)")
}

func TestUserLimits(t *testing.T) {
	name := user(t)
	mustAdmin(t, administration.permit(name, "/", ".*", ".*", ".*"))
	mustAdmin(t, administration.limitUser(name, "max-connections", 1))
	mustAdmin(t, administration.limitUser(name, "max-channels", 2))
	c := connectAs(t, login{user: name, password: "secret"})
	c.pause(200 * time.Millisecond) // RabbitMQ counts in the background
	d := dial(t)
	d.is(d.login(login{user: name, password: "secret"}), "connection 530 NOT_ALLOWED - connection refused for user '"+name+"': user connection limit (1) is reached (10,40)")
	c.ok(c.on(1).sync())
	c.ok(c.on(2).sync())
	c.pause(200 * time.Millisecond)
	c.send(methodFrame(3, channelOpen, short("")))
	got := c.next()
	if !strings.HasPrefix(got, "connection 530 NOT_ALLOWED - number of channels opened for user '") || !strings.HasSuffix(got, "' has reached the maximum allowed user limit of (2) (0,0)") {
		t.Errorf("got %s, want 530 for the channel limit", got)
	}
}

// A connection that was refused takes no place, even if its client does not answer.
func TestRefusedConnectionsAreNotCounted(t *testing.T) {
	name := user(t)
	mustAdmin(t, administration.limitUser(name, "max-connections", 1))
	refused := dial(t)
	refused.send([]byte("AMQP\x00\x00\x09\x01"),
		methodFrame(0, connectionStartOk, table{}.encode(), short("PLAIN"), long("\x00"+name+"\x00secret"), short("en_US")),
		methodFrame(0, connectionTuneOk, u16(2047), u32(131072), u16(0)),
		methodFrame(0, connectionOpen, short("/"), short(""), u8(0)))
	for range 3 { // start, tune, and the close that stays unanswered
		if _, ok := refused.frame(patience); !ok {
			t.Fatalf("no frame: %s", refused.ended)
		}
	}
	mustAdmin(t, administration.permit(name, "/", ".*", ".*", ".*"))
	c := dial(t)
	c.is(c.login(login{user: name, password: "secret"}), "ok")
}

// Deleting a user or a vhost closes its connections.
func TestForcedCloses(t *testing.T) {
	name := user(t)
	v := vhostOf(t, "")
	mustAdmin(t, administration.permit(name, "/", ".*", ".*", ".*"))
	c := connectAs(t, login{user: name, password: "secret"})
	d := connectAs(t, login{vhost: v})
	c.ok(c.sync())
	d.ok(d.declare("q", "d", nil))
	c.pause(200 * time.Millisecond) // RabbitMQ notes connections in the background
	mustAdmin(t, administration.deleteUser(name))
	c.is(c.next(), "connection 320 CONNECTION_FORCED - user '"+name+"' is deleted (0,0)")
	mustAdmin(t, administration.deleteVHost(v))
	d.is(d.next(), "connection 320 CONNECTION_FORCED - vhost '"+v+"' is deleted (0,0)")
	mustAdmin(t, administration.putVHost(v, ""))
	e := connectAs(t, login{vhost: v})
	e.is(e.declare("q", "p", nil), "channel 404 NOT_FOUND - no queue 'q' in vhost '"+v+"' (50,10)")
}
