// Package systemd tells systemd how the daemon is doing, and holds its unit:
//
//	systemd.Ready("serving 2 relays")   // READY=1
//	systemd.Reloading()                 // RELOADING=1, until the next Ready
//	systemd.Stopping("draining", limit) // STOPPING=1, and do not kill before limit
//	if d := systemd.WatchdogInterval(); d > 0 {
//		systemd.Alive(status) // more often than d
//	}
//	for _, socket := range systemd.Listeners() { … } // from shaperd.socket
//
// Everything here reads the environment that systemd gives a service
// (NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM, LISTEN_FDS; see sd_notify(3) and
// sd_listen_fds(3)) and does nothing, without an error, where there is none.
// Nothing is kept open but what Listeners returns, which is the caller's.
package systemd
