package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// stopPatience is how long an orderly stop waits for connections to end.
// Container runtimes kill after 10 s, and the last commit needs some of them.
const stopPatience = 4 * time.Second

// echo is how long after the first a signal is the same one again: timeout(1)
// and some shells signal a process and then its group.
const echo = 300 * time.Millisecond

// serve runs a broker until a signal says stop. The flags are those given.
func serve(flags map[string]string) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP) // it must not end the process while it starts or stops, either
	values, cfg, err := config.Effective(flags, os.LookupEnv)
	if err != nil {
		return err
	}
	tuneGC(cfg)
	log, err := newLogger(cfg)
	if err != nil {
		return err
	}
	defer log.close()
	for _, remark := range config.Misspelt(os.Environ()) {
		log.Warn(remark)
	}
	if err := log.logMotd(cfg.Motd); err != nil {
		return err
	}
	b := broker.New(cfg, log.Logger)
	b.LogLevel, b.Settings = log.levels.Set, config.Text(values)
	pid := pidFile{name: cfg.PidFile, keep: cfg.KeepPidFile}
	b.Opened = pid.write
	return errors.Join(runBroker(b, log, reload), pid.remove())
}

// runBroker starts a broker and stops it in order when a signal says so.
func runBroker(b *broker.Broker, log *programLog, reload <-chan os.Signal) error {
	stop := stopSignal()
	if _, err := b.Start(); err != nil {
		return err
	}
	tuneProcs(b.SetCalm)
	stopping := notifyStarted(log.Logger, b.Pulse().Beat)
	failure := waitForEnd(b, stop, reload, log)
	stopping()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		return err
	}
	return failure
}

// stopSignal gets the first signal that says stop. A second one ends the process at
// once, whether the start or the orderly stop takes too long: what was confirmed is
// on disk already.
func stopSignal() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	first := make(chan os.Signal, 1)
	go func() { // ends with the process
		first <- <-signals
		came := time.Now()
		for range signals {
			if time.Since(came) > echo {
				os.Exit(1)
			}
		}
	}()
	return first
}

// waitForEnd returns when a signal says stop, or with the reason when the broker
// cannot go on. SIGHUP has it read its certificates again, and open its log file
// anew.
func waitForEnd(b *broker.Broker, stop, reload <-chan os.Signal, log *programLog) error {
	for {
		select {
		case s := <-stop:
			log.Info(signalName(s) + " received - shutting down") // RabbitMQ 4.0's line
			return nil
		case <-reload:
			reloadAll(b, log)
		case err := <-b.Failed():
			log.Error("shutting down: the broker cannot go on; the error says why", zap.Error(err))
			return err
		}
	}
}

func reloadAll(b *broker.Broker, log *programLog) {
	defer notifyReloading(log.Logger)()
	if err := log.reopen(); err != nil {
		log.Error("SIGHUP received: the log goes on in the old file; make its folder writable and send it again", zap.Error(err))
	}
	if err := b.Reload(); err != nil {
		log.Error("SIGHUP received: the certificates in use are kept; put the files right and send it again", zap.Error(err))
		return
	}
	log.Info("SIGHUP received: certificates read again")
}

func signalName(s os.Signal) string {
	if s == syscall.SIGTERM {
		return "SIGTERM"
	}
	return "SIGINT"
}
