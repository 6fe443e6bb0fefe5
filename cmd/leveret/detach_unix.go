//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// detach starts the program once more, with these arguments, in a session of its
// own and without the caller's terminal, and does not wait for it (RabbitMQ 4.0:
// rabbitmq-server -detached). What it logs to standard output is lost.
func detach(args []string, errs io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return exitf(exitFailure, "find the program: %v", err)
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr, cmd.SysProcAttr = nil, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return exitf(exitFailure, "start %s: %v", self, err)
	}
	_, _ = io.WriteString(errs, "leveret runs detached; its log is lost unless log.file names a file. `rabbitmqctl await_startup` waits for it.\n") // there is nobody else to tell
	return cmd.Process.Release()
}
