package main

import (
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// notifyStarted tells systemd that the broker serves clients, and from now on, if
// the unit has a watchdog, that it makes progress, which beat says. Without systemd
// it does nothing. The function it returns says that the broker stops.
func notifyStarted(log *zap.Logger, beat func() error) (stopping func()) {
	notify(log, daemon.SdNotifyReady)
	end := make(chan struct{})
	var wg sync.WaitGroup
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served, as its variables are wrong: look at WatchdogSec= in the unit", zap.Error(err))
	} else if interval > 0 {
		wg.Go(func() { watchdog(log, interval/2, beat, end) })
	}
	return func() {
		close(end)
		wg.Wait()
		notify(log, daemon.SdNotifyStopping)
	}
}

// watchdog tells systemd at every interval that the broker makes progress, until
// end is closed. If it makes none systemd is not told, and starts it anew.
func watchdog(log *zap.Logger, interval time.Duration, beat func() error, end <-chan struct{}) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			if err := beat(); err != nil {
				log.Error("the broker is stuck: systemd's watchdog is left to start it anew", zap.Error(err))
				continue
			}
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
		log.Warn("systemd cannot be told the state of the broker: look at NotifyAccess= in the unit", zap.Error(err))
	}
}
