package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

func connect(t *testing.T, b *Broker) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Before it has logged in, a client cannot make the broker hold a large frame.
func TestFramesBeforeTheLoginAreSmall(t *testing.T) {
	b := start(t, func(c *config.Config) { c.Limits.FrameMax = 0 })
	c := connect(t, b)
	frame := binary.BigEndian.AppendUint32([]byte("AMQP\x00\x00\x09\x01\x01\x00\x00"), 1<<20)
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c) // connection.start, and the end; not the minute of the deadline
	if err != nil && strings.Contains(err.Error(), "timeout") || len(got) == 0 {
		t.Errorf("got %d bytes, %v; want connection.start and a closed connection", len(got), err)
	}
}

// Passwords, whole addresses with them, and tokens are not in the log at any
// level, whatever goes wrong with them.
func TestSecretsAreNotLogged(t *testing.T) {
	const secret = "s3samE7"
	var out bytes.Buffer
	enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	cfg := testConfig(t)
	cfg.InMemory, cfg.DefaultPass, cfg.ManagementListen = true, secret, "127.0.0.1:0"
	cfg.DefaultUsers = []config.DefaultUser{{Name: "u", Password: secret, VHosts: ".*", Permissions: config.Permissions{Configure: ".*", Write: ".*", Read: ".*"}}}
	b := New(cfg, zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(&out)), zapcore.DebugLevel)))
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	amqpAddr, api := b.listeners[0].Addr().String(), "http://"+b.apiListener.Addr().String()+"/api/"
	for _, userinfo := range []string{"guest:" + secret, "guest:wrong" + secret, "nobody:" + secret} {
		if conn, err := amqp091.Dial("amqp://" + userinfo + "@" + amqpAddr); err == nil {
			conn.Close()
		}
	}
	plain := "\x00guest\x00" + secret + "\x00" // malformed
	c := connect(t, b)
	_, _ = io.WriteString(c, "AMQP\x00\x00\x09\x01")
	_, _ = c.Write(startOk("PLAIN", plain))
	_, _ = io.Copy(io.Discard, c)
	for _, tt := range []struct{ method, path, body string }{
		{"PUT", "users/a", fmt.Sprintf(`{"password":%q,"tags":""}`, secret)},
		{"PUT", "users/a", fmt.Sprintf(`{"password":%q,"tags":`, secret)}, // malformed
		{"PUT", "parameters/shovel/%2f/s", fmt.Sprintf(`{"value":{"src-uri":"amqp://u:%s@host","src-queue":"a","dest-uri":"amqp://u:%s@host","dest-queue":"b"}}`, secret, secret)},
		{"PUT", "parameters/federation-upstream/%2f/f", fmt.Sprintf(`{"value":{"uri":"amqp://u:%s@host:x/"}}`, secret)},
		{"POST", "definitions", fmt.Sprintf(`{"users":[{"name":"b","password":%q,"tags":7}]}`, secret)},
		{"GET", "no/such?password=" + secret, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, api+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.SetBasicAuth("guest", secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", api+"overview", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
	}
	stop(t, b)
	if out.Len() == 0 {
		t.Fatal("nothing was logged")
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, secret) {
			t.Errorf("the log has a secret: %s", line)
		}
	}
}

// startOk is the frame of connection.start-ok.
func startOk(mechanism, response string) []byte {
	args := []byte{0, 10, 0, 11, 0, 0, 0, 0, byte(len(mechanism))}
	args = append(args, mechanism...)
	args = binary.BigEndian.AppendUint32(args, uint32(len(response)))
	args = append(args, response...)
	args = append(args, 5)
	args = append(args, "en_US"...)
	frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(len(args)))
	return append(append(frame, args...), 0xce)
}
