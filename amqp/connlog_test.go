package amqp

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/frames"
)

// Programs that read logs look for RabbitMQ's words.
func TestLogLinesOfAConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		live func(c *rawClient)
		want []string
	}{
		"closed": {func(c *rawClient) {
			time.Sleep(time.Minute + 2*time.Second)
			c.method(0, &frames.ConnectionClose{ReplyCode: 200})
			c.want(frames.ConnectionCloseOkID)
			c.sock.Close()
		}, []string{
			"info accepting AMQP connection pipe -> pipe",
			"info connection pipe -> pipe - a?b: user 'guest' authenticated and granted access to vhost '/'",
			"info closing AMQP connection (pipe -> pipe - a?b, vhost: '/', user: 'guest', duration: '1M, 2s')",
		}},
		"gone": {func(c *rawClient) { c.sock.Close() }, []string{
			"info accepting AMQP connection pipe -> pipe",
			"info connection pipe -> pipe - a?b: user 'guest' authenticated and granted access to vhost '/'",
			"warn closing AMQP connection (pipe -> pipe - a?b, vhost: '/', user: 'guest', duration: '0ms'): client unexpectedly closed TCP connection",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.InfoLevel)
				c := dialPipe(t, newTestServer(t, zap.New(core)))
				c.write([]byte(frames.ProtocolHeader))
				c.want(frames.ConnectionStartID)
				c.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest"),
					ClientProperties: frames.Table{{Name: "connection_name", Value: "a\nb"}}})
				c.want(frames.ConnectionTuneID)
				c.method(0, &frames.ConnectionTuneOk{ChannelMax: 1, FrameMax: 4096})
				c.method(0, &frames.ConnectionOpen{VHost: "/"})
				c.want(frames.ConnectionOpenOkID)
				tt.live(c)
				synctest.Wait()
				if got := lines(logs); !slices.Equal(got, tt.want) {
					t.Errorf("logged %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A health check that only connects is not worth a line.
func TestNothingIsLoggedOfWhoSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		dialPipe(t, newTestServer(t, zap.New(core))).sock.Close()
		synctest.Wait()
		if got := lines(logs); len(got) > 0 {
			t.Errorf("logged %q, want nothing", got)
		}
	})
}

func lines(logs *observer.ObservedLogs) []string {
	var list []string
	for _, e := range logs.All() {
		list = append(list, e.Level.String()+" "+e.Message)
	}
	return list
}

func TestDurationsInTheLog(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0ms",
		999 * time.Millisecond:    "999ms",
		1999 * time.Millisecond:   "1s",
		time.Minute:               "1M, 0s",
		2*time.Hour + time.Second: "2H, 0M, 1s",
		49*time.Hour + 3*time.Minute + 4*time.Second: "2D, 1H, 3M, 4s",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s is written %q, want %q", d, got, want)
		}
	}
}
