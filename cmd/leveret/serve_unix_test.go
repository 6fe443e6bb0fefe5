//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A terminal that is closed, or a reload at the wrong moment, ends no broker that
// starts, and lets one that stops do so in order.
func TestHangupWhileStartingAndStopping(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "LEVERET_HEARTBEET=5s", programVariable+"="+strings.Join([]string{"leveret", "serve",
		"--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--management-listen", "off", "--prometheus-listen", "off", "--config", "none"}, "\n"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended but after a failure
	send := func(s os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}
	var log strings.Builder
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the broker says nothing")
	}
	log.WriteString(lines.Text() + "\n")
	send(syscall.SIGHUP)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		switch {
		case strings.Contains(lines.Text(), "Server startup complete"):
			send(syscall.SIGTERM)
		case strings.Contains(lines.Text(), "shutting down"):
			send(syscall.SIGHUP)
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "did you mean LEVERET_HEARTBEAT?") {
		t.Errorf("the broker ended with %v after\n%s", err, log.String())
	}
}
