package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/leveretmq/leveret/config"
)

// A pidFile is a file with the number of this process, which scripts wait for
// (RabbitMQ 4.0: RABBITMQ_PID_FILE).
type pidFile struct {
	name string // "" is none
	keep bool
}

// writePidFile makes the file that is configured. One that is there is left over
// from a process that was killed.
func writePidFile(cfg config.Config) (pidFile, error) {
	p := pidFile{cfg.PidFile, cfg.KeepPidFile}
	if p.name == "" {
		return p, nil
	}
	err := os.MkdirAll(filepath.Dir(p.name), 0o755)
	if err == nil {
		err = os.WriteFile(p.name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
	}
	if err != nil {
		return p, fmt.Errorf("write the file with the number of the process: %w; name another one with RABBITMQ_PID_FILE (LEVERET_PID_FILE)", err)
	}
	return p, nil
}

// remove takes the file away after an orderly end.
func (p pidFile) remove() error {
	if p.name == "" || p.keep {
		return nil
	}
	return os.Remove(p.name)
}
