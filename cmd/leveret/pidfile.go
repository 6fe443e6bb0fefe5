package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// A pidFile is a file with the number of this process, which scripts wait for
// (RabbitMQ 4.0: RABBITMQ_PID_FILE). It belongs to the goroutine of serve.
type pidFile struct {
	name    string // immutable; "" is none
	keep    bool   // immutable
	written bool
}

// write makes the file, when no other broker has the data directory: one that is
// there is left over from a process that was killed.
func (p *pidFile) write() error {
	if p.name == "" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(p.name), 0o755)
	if err == nil {
		err = os.WriteFile(p.name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the file with the number of the process: %w; name another one with RABBITMQ_PID_FILE (LEVERET_PID_FILE)", err)
	}
	p.written = true
	return nil
}

// remove takes the file away before the process ends, unless it is gone or to stay.
func (p *pidFile) remove() error {
	if !p.written || p.keep {
		return nil
	}
	return ignoreMissing(os.Remove(p.name))
}
