//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frozen takes connections for the broker at this address, and passes nothing on
// from when freeze is closed.
func frozen(t *testing.T, to string, freeze <-chan struct{}) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(from, to net.Conn) { // ends with the test or either side
		for b := make([]byte, 32<<10); ; {
			n, err := from.Read(b)
			select {
			case <-freeze:
				<-t.Context().Done()
			default:
			}
			if err != nil || t.Context().Err() != nil {
				break
			}
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
		}
		from.Close()
		to.Close()
	}
	go func() { // ends with the listener
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				return
			}
			go pass(client, broker)
			go pass(broker, client)
		}
	}()
	return l.Addr().String()
}

// Who interrupts a run whose broker does not answer any more is not held up by it:
// the signal that follows the first ends the program.
func TestSecondInterruptEndsTheBench(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	freeze := make(chan struct{})
	addr := frozen(t, strings.TrimPrefix(benchBroker(t), "amqp://guest:guest@"), freeze)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), programVariable+"="+strings.Join([]string{"leveret", "bench", "--uri", "amqp://guest:guest@" + addr,
		"--duration", "1h", "--drain-time", "1h", "--warmup", "0s"}, "\n"))
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(errs).Scan() { // progress: it runs
		t.Error("the run does not begin")
	}
	close(freeze)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, errs)
		_ = cmd.Wait() // what it ended with is in the state
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
			continue
		case <-ended:
		}
		break
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() || ws.Signal() != syscall.SIGINT {
		t.Errorf("the run ended with %v, want the interrupt", cmd.ProcessState)
	}
}
