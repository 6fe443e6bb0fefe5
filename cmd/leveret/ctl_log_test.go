package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// programVariable makes the test's program the broker itself; see startSelf.
const programVariable = "LEVERET_TEST_ARGUMENTS"

func TestMain(m *testing.M) {
	if args := os.Getenv(programVariable); args != "" {
		os.Exit(run(context.Background(), strings.Split(args, "\n"), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// startSelf runs the program in a process of its own until the test ends, and waits
// until the broker is up.
func startSelf(t *testing.T, args ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), programVariable+"="+strings.Join(args, "\n"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the broker ended with %v", err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Server startup complete") {
			return
		}
	}
	t.Fatal("the broker did not start")
}

// The level of the program's own log changes while it runs, and log_tail shows the
// end of its file.
func TestLogLevelAndTail(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "broker.log")
	startSelf(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--management-listen", "off", "--prometheus-listen", "off", "--log-file", file)
	ask(t, "")
	t.Setenv("LEVERET_DATA_DIR", dir)
	started := ""
	for !strings.Contains(started, "Server startup complete") { // a moment after the line on standard output
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		started = string(raw)
	}
	_, rest, _ := strings.Cut(started, "started TCP listener on ")
	address := strings.Fields(rest + " none")[0]
	refused := func() string {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("HTTP/1.1")); err != nil {
			t.Fatal(err)
		}
		for err == nil { // until the broker has logged and closed
			_, err = c.Read(make([]byte, 64))
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if before := refused(); !strings.Contains(before, "the client does not speak AMQP") {
		t.Fatalf("the log does not tell of the client: %s", before)
	}
	code, tail, errs := call(t, "", "rabbitmqctl", "log_tail", "-N", "1000", "-q")
	if code != 0 || !strings.Contains(tail, "Server startup complete") {
		t.Errorf("log_tail: exit %d, %s, prints %s", code, errs, tail)
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "set_log_level", "none"); code != 0 {
		t.Fatalf("set_log_level: exit %d, %s", code, errs)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if after := refused(); after != string(raw) {
		t.Errorf("logged at the level none: %s", strings.TrimPrefix(after, string(raw)))
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "set_log_level", "nosuch"); code != exitUnavailable {
		t.Errorf("set_log_level nosuch: exit %d, want %d", code, exitUnavailable)
	}
}
