package conn

import (
	"net/netip"
	"time"
)

// Session is a snapshot of one session that has reached its destination.
type Session struct {
	Client, Upstream netip.AddrPort
	Class            string
	Age              time.Duration // since it was connected
	Upload, Download uint64        // bytes moved
	Waiting          bool          // it has something to send, and waits for its turn
}

// Sessions returns those that fit. It waits for the loop's current turn; bytes
// wait while fits is called, so it should be quick. None once Run has returned.
func (r *Relay) Sessions(fits func(*Session) bool) (all []Session) {
	r.do(func() { all = r.loop.sessions(fits) })
	return all
}

func (l *loop) sessions(fits func(*Session) bool) (all []Session) {
	for _, s := range l.slots {
		if s.client < 0 || s.state != relaying {
			continue
		}
		out := Session{
			Client: s.src, Upstream: s.dst, Class: s.leaf.name, Age: l.now - s.since,
			Upload: s.up.sent, Download: s.down.sent, Waiting: s.waiting(),
		}
		if fits(&out) {
			all = append(all, out)
		}
	}
	return all
}
