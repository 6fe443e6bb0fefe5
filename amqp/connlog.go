package amqp

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"go.uber.org/zap/zapcore"
)

// The lines of a connection's life have RabbitMQ's words, for programs that read
// logs. Their text is made only if it is logged.

// logAccepted says that a client which speaks AMQP has come.
func (c *conn) logAccepted() {
	if e := c.srv.log.Check(zapcore.InfoLevel, ""); e != nil {
		e.Message = "accepting AMQP connection " + c.name
		e.Write()
	}
}

// logOpened says that a client has logged in and entered a vhost.
func (c *conn) logOpened(vhost string) {
	if e := c.srv.log.Check(zapcore.InfoLevel, ""); e != nil {
		e.Message = "connection " + c.longName() + ": user '" + printable(c.user.Name) +
			"' authenticated and granted access to vhost '" + printable(vhost) + "'"
		e.Write()
	}
}

// logClosed says that the connection is over, with the read loop's error. Who has
// sent no header is no client: health checks connect like that.
func (c *conn) logClosed(err error) {
	if c.state == awaitHeader {
		return
	}
	level, reason := zapcore.InfoLevel, ""
	if c.state == running && !errors.Is(err, errEnd) {
		level, reason = zapcore.WarnLevel, ": "+lossOf(err)
	}
	if e := c.srv.log.Check(level, ""); e != nil {
		e.Message = "closing AMQP connection (" + c.longName() + c.whose() + ", duration: '" + roughly(time.Since(c.start.ConnectedAt)) + "')" + reason
		e.Write()
	}
}

// lossOf says why a connection that was in use is gone.
func lossOf(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return "client unexpectedly closed TCP connection"
	}
	return err.Error()
}

// longName is the name with what the client calls itself.
func (c *conn) longName() string {
	if c.start.UserProvidedName == "" {
		return c.name
	}
	return c.name + " - " + printable(c.start.UserProvidedName)
}

// whose is the vhost and the user, as far as they are known.
func (c *conn) whose() string {
	switch {
	case c.user.Name == "":
		return ""
	case c.vhost == nil:
		return ", vhost: 'none', user: '" + printable(c.user.Name) + "'"
	}
	return ", vhost: '" + printable(c.vhost.Name()) + "', user: '" + printable(c.user.Name) + "'"
}

// printable keeps a name from making log lines of its own.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name)
}

// roughly writes a duration as RabbitMQ 4.0 does: 137ms, 42s, 5M, 3s.
func roughly(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	seconds := int64(d / time.Second)
	text := strconv.FormatInt(seconds%60, 10) + "s"
	for _, unit := range []struct {
		size, next int64 // in seconds; next is 0 for the largest
		name       string
	}{{60, 3600, "M"}, {3600, 86400, "H"}, {86400, 0, "D"}} {
		if seconds < unit.size {
			return text
		}
		n := seconds / unit.size
		if unit.next > 0 {
			n = seconds % unit.next / unit.size
		}
		text = strconv.FormatInt(n, 10) + unit.name + ", " + text
	}
	return text
}
