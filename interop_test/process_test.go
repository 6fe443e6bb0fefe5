//go:build !foreign

package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A process is the leveret program, started by a test.
type process struct {
	*testing.T
	cmd     *exec.Cmd
	addr    string        // of its listener
	stderr  bytes.Buffer  // complete after wait
	drained chan struct{} // closed when its output has ended

	mu      sync.Mutex
	log     []string          // guarded by mu; the lines of its output so far
	awaited map[string]func() // guarded by mu; called for the first line with the text
}

// program builds leveret once for all tests.
var program = sync.OnceValues(func() (string, error) {
	file := filepath.Join(workDir, "leveret")
	out, err := exec.Command("go", "build", "-o", file, "github.com/leveretmq/leveret/cmd/leveret").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build leveret: %w\n%s", err, out)
	}
	return file, nil
})

// prepare makes the command; it inherits no setting from the environment.
func prepare(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LEVERET_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "LEVERET_MANAGEMENT_LISTEN=off") // its port may be another's
	return cmd
}

// start runs a broker on a free port and returns when it says that it is up.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startCommand(t, prepare(t, append([]string{"--listen", "127.0.0.1:0", "--data-dir", dir}, args...)...))
}

var listenerLine = regexp.MustCompile(`started TCP listener on ([0-9.:]+)`)

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{T: t, cmd: cmd, drained: make(chan struct{})}
	cmd.Stderr = &p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended already in most tests
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the broker's standard error: %s", p.stderr.String())
		}
	})
	up := make(chan string, 1)
	go p.follow(out, up)
	p.addr = receive(t, up)
	if p.addr == "" {
		_ = cmd.Wait() // for stderr; the code does not matter
		t.Fatalf("the broker did not start: %s%s", p.lines(), p.stderr.String())
	}
	return p
}

// follow reads the output to its end and sends the address once the broker is
// up, or "" if it ends before.
func (p *process) follow(out io.Reader, up chan<- string) {
	defer close(p.drained)
	addr := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		p.took(line)
		if m := listenerLine.FindStringSubmatch(line); m != nil {
			addr = m[1]
		}
		if strings.Contains(line, "Server startup complete") {
			up <- addr
			up = make(chan string, 1)
		}
	}
	up <- ""
}

func (p *process) took(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
	for text, done := range p.awaited {
		if strings.Contains(line, text) {
			done()
			delete(p.awaited, text)
		}
	}
}

// await waits for a line with this text, unless there was one.
func (p *process) await(text string) {
	p.Helper()
	receive(p.T, p.awaiting(text))
}

// awaiting returns what tells of the first line with this text; of one text at a time.
func (p *process) awaiting(text string) <-chan bool {
	came := make(chan bool, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.log, func(line string) bool { return strings.Contains(line, text) }) {
		came <- true
	} else {
		p.awaited = map[string]func(){text: func() { came <- true }}
	}
	return came
}

// lines is what it has printed so far.
func (p *process) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n") + "\n"
}

// wait waits for its end and returns the exit code, -1 if a signal ended it.
func (p *process) wait() int {
	p.Helper()
	receive(p.T, p.drainedOnce())
	err := p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// drainedOnce turns the closing of drained into a value.
func (p *process) drainedOnce() <-chan struct{} {
	ch := make(chan struct{}, 1)
	go func() {
		<-p.drained
		ch <- struct{}{}
	}()
	return ch
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// kill ends it without warning.
func (p *process) kill() {
	p.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

// stop ends it in order and checks that it went well.
func (p *process) stop() {
	p.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.Errorf("exit code %d after SIGTERM, want 0: %s%s", code, p.lines(), p.stderr.String())
	}
}

// client connects to the process.
func (p *process) client() *client {
	p.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + p.addr + "/")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close() }) // the process may be gone
	c := &client{T: p.T, conn: conn}
	c.reopen()
	return c
}

// runToEnd runs leveret with arguments that make it end by itself.
func runToEnd(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := prepare(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // fails if it has ended
	defer stop()
	err := cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Administrators see what the program was started with.
func TestSettingsInForce(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "--profile", "tiny")
	socket := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "admin.sock"))
	}}
	defer socket.CloseIdleConnections()
	resp, err := (&http.Client{Transport: socket}).Get("http://broker/api/config/effective")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if want := "\nprofile = tiny  # --profile\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, %v:\n%s\nlacks %q", resp.Status, err, text, want)
	}
	p.stop()
}

func TestOrderlyStop(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			p := start(t, t.TempDir())
			c := p.client()
			closed := c.watchConnection()
			q := c.privateQueue(nil)
			c.publish("", q, "held")
			c.get(q, false)
			p.signal(s)
			c.wantClosed(closed, amqp.ConnectionForced, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d, want 0: %s%s", code, p.lines(), p.stderr.String())
			}
			if p.stderr.Len() > 0 {
				t.Errorf("on stderr: %s", p.stderr.String())
			}
		})
	}
}

// One undisturbed round is enough: on a machine that halts for a moment the
// orderly stop may be over before the second signal, or the echo come late.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	for range 5 {
		p := start(t, t.TempDir())
		r := dialRawTo(t, p.addr)
		r.handshake(usualTune)
		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGTERM) // at once after the first: taken for an echo of it
		f, err := r.read()        // and never answers it
		began := time.Now()
		p.signalUntilEnd()
		took, code := time.Since(began), p.wait()
		if err == nil && f.is(connectionClose) && code == 1 && took < 3*time.Second {
			return
		}
		t.Logf("got %v (%v), then exit code %d after %v", f, err, code, took)
	}
	t.Error("want a close, and after the second signal exit code 1 at once")
}

// signalUntilEnd sends SIGTERM again and again until the process has ended.
func (p *process) signalUntilEnd() {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-p.drained:
			return
		case <-again.C:
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
		}
	}
}

func TestDataDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	code, _, stderr := runToEnd(t, "--listen", "127.0.0.1:0", "--data-dir", dir)
	want := "leveret: data directory in use: another broker works in " + dir +
		"; stop that one or name another folder with --data-dir (LEVERET_DATA_DIR)\n"
	if code != 1 || stderr != want {
		t.Errorf("exit code %d, stderr %q, want 1, %q", code, stderr, want)
	}
	q := c.privateQueue(nil) // the first is undisturbed
	c.publish("", q, "m")
	c.wantReady(q, "m")
	p.stop()
	start(t, dir).stop() // and the directory free again
}

func TestPortInUse(t *testing.T) {
	p := start(t, t.TempDir())
	code, _, stderr := runToEnd(t, "serve", "--listen", p.addr, "--data-dir", t.TempDir())
	want := "leveret: port in use: " + p.addr + " is taken, perhaps by another broker; stop that one or choose another address with --listen (LEVERET_LISTEN)\n"
	if code != 1 || stderr != want {
		t.Errorf("exit code %d, stderr %q, want 1, %q", code, stderr, want)
	}
}

func TestWrongCommandLine(t *testing.T) {
	const usage = "\nUsage: leveret [flags]\n`leveret --help` has more.\n"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "here"}, 1, "leveret: --listen \"here\": want host:port, as in 127.0.0.1:5672\n"},
		{[]string{"--no-such-flag"}, 64, "leveret: unknown flag: --no-such-flag\n" + usage},
		{[]string{"no-such-command"}, 64, "leveret: unknown command \"no-such-command\"\n" + usage},
		{[]string{"--listen", "192.0.2.1:0", "--in-memory"}, 1, "leveret: cannot listen on 192.0.2.1:0: listen tcp 192.0.2.1:0: bind: " +
			"cannot assign requested address; choose another address with --listen (LEVERET_LISTEN)\n"},
	} {
		code, _, stderr := runToEnd(t, tt.args...)
		if code != tt.code || stderr != tt.want {
			t.Errorf("%q: exit code %d, stderr %q, want %d, %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	cmd := prepare(t)
	cmd.Env = append(cmd.Env, "LEVERET_LISTEN=127.0.0.1:0", "LEVERET_IN_MEMORY=true", "LEVERET_LOG_FORMAT=json",
		"LEVERET_DEFAULT_USER=alice", "LEVERET_DEFAULT_PASS=secret")
	cmd.Dir = t.TempDir()
	p := startCommand(t, cmd)
	conn, err := amqp.Dial("amqp://alice:secret@" + p.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	p.stop()
	for line := range strings.Lines(p.lines()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("a line of the log is not JSON: %s", line)
		}
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("in memory, but there are files: %v, %v", left, err)
	}
}

func TestVersionCommand(t *testing.T) {
	code, stdout, _ := runToEnd(t, "version")
	if code != 0 || !strings.HasPrefix(stdout, "leveret ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d, %q, want 0 and one line", code, stdout)
	}
}
