// Package systemd tells systemd how the daemon is doing, and holds its unit:
//
//	systemd.Ready("serving 2 relays")   // READY=1
//	systemd.Reloading()                 // RELOADING=1, until the next Ready
//	systemd.Stopping("draining", limit) // STOPPING=1, and do not kill before limit
//	if d := systemd.WatchdogInterval(); d > 0 {
//		systemd.Alive(status) // more often than d
//	}
//
// Everything here reads the environment that systemd gives a service
// (NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM; see sd_notify(3)) and does
// nothing, without an error, where there is none. Nothing is kept open.
//
// Socket activation is not used: a relay binds its own listeners, since the
// options that it needs must be set before the first connection arrives.
package systemd
