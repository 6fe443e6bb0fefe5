//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveSelf is the program in a process of its own, as a broker with this folder.
func serveSelf(t *testing.T, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), programVariable+"="+strings.Join(append([]string{"leveret", "serve", "--listen", "127.0.0.1:0",
		"--data-dir", dir, "--management-listen", "off", "--prometheus-listen", "off", "--config", "none"}, flags...), "\n"))
	return cmd
}

// A terminal that is closed, or a reload at the wrong moment, ends no broker that
// starts, and lets one that stops do so in order.
func TestHangupWhileStartingAndStopping(t *testing.T) {
	cmd := serveSelf(t, t.TempDir())
	cmd.Env = append(cmd.Env, "LEVERET_HEARTBEET=5s")
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

// A start that waits, here for somebody to write the definitions, can be ended: by
// the second signal, as a stop that takes too long.
func TestSecondSignalWhileStarting(t *testing.T) {
	dir := t.TempDir()
	definitions := filepath.Join(dir, "definitions.json")
	if err := syscall.Mkfifo(definitions, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := serveSelf(t, filepath.Join(dir, "data"), "--load-definitions", definitions)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	writer, err := os.OpenFile(definitions, os.O_WRONLY, 0) // returns when the broker reads it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // nothing is written
	for range 100 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("the broker ended with %v, want the code 1", cmd.ProcessState)
			}
			return
		case <-time.After(echo / 3): // so that some come after the echo of the first
		}
	}
	_ = cmd.Process.Kill()
	t.Error("the broker starts on after 100 signals")
}

// A second start with the same folder fails, and leaves the file with the number of
// the process that runs.
func TestPidFileOfABrokerThatRuns(t *testing.T) {
	dir := shortDir(t)
	pidFile := filepath.Join(dir, "pid")
	t.Setenv("LEVERET_PID_FILE", pidFile)
	startSelf(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--management-listen", "off", "--prometheus-listen", "off")
	before, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := serveSelf(t, dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("a second start: %v, %s, want that the folder is in use", err, out)
	}
	if after, err := os.ReadFile(pidFile); err != nil || string(after) != string(before) {
		t.Errorf("the file has %q, error %v, want %q", after, err, before)
	}
	// The end of startSelf wants the code 0 without the file, too.
	if err := os.Remove(pidFile); err != nil {
		t.Error(err)
	}
}
