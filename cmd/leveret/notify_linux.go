package main

import (
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// notifyStarted tells systemd that the broker serves clients, and from now on, if
// the unit has a watchdog, that it is alive. Without systemd it does nothing. The
// function it returns says that the broker stops.
func notifyStarted(log *zap.Logger) (stopping func()) {
	notify(log, daemon.SdNotifyReady)
	end := make(chan struct{})
	var wg sync.WaitGroup
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served: its variables are wrong", zap.Error(err))
	} else if interval > 0 {
		wg.Go(func() { watchdog(log, interval/2, end) })
	}
	return func() {
		close(end)
		wg.Wait()
		notify(log, daemon.SdNotifyStopping)
	}
}

// watchdog tells systemd at every interval that the process is alive, until end
// is closed.
func watchdog(log *zap.Logger, interval time.Duration, end <-chan struct{}) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			notify(log, daemon.SdNotifyWatchdog)
		}
	}
}

// notifyReloading tells systemd that files are read again, and by the function it
// returns that this is done.
func notifyReloading(log *zap.Logger) (done func()) {
	// The time is what tells systemd which READY is the answer.
	notify(log, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	return func() { notify(log, daemon.SdNotifyReady) }
}

// notify sends a state, if there is a systemd to take it.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd cannot be told the state of the broker", zap.Error(err))
	}
}
