package systemd

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready says that the service serves: after its start, or after a reload.
func Ready(status string) error {
	return notify(daemon.SdNotifyReady + "\nSTATUS=" + status)
}

// Reloading says that a reload has begun; the next Ready ends it. It carries
// the time, without which systemd does not believe that the reload is the one
// it asked for.
func Reloading() error {
	return notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

// Stopping says that the service ends, and within which time: systemd then
// waits for that long even where the unit's TimeoutStopSec is less.
func Stopping(status string, within time.Duration) error {
	return notify(fmt.Sprintf("%s\nSTATUS=%s\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyStopping, status, within.Microseconds()))
}

// Alive resets the watchdog, and says how the service is.
func Alive(status string) error { return notify(daemon.SdNotifyWatchdog + "\nSTATUS=" + status) }

// WatchdogInterval is the time without Alive after which systemd takes the
// service for hung; 0 when nobody watches.
func WatchdogInterval() (time.Duration, error) {
	return daemon.SdWatchdogEnabled(false)
}

func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
