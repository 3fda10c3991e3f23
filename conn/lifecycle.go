package conn

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lingerTime is how long a refused SOCKS5 client may take to read the reply.
	lingerTime = 2 * time.Second
	// resetTime is how long the bytes before a reset may take to reach the receiver.
	resetTime = 5 * time.Second
	// resetLook is how often that is looked at.
	resetLook = 20 * time.Millisecond
)

// arm makes the loop look at s when d has passed; 0 means no limit.
func (l *loop) arm(s *session, d time.Duration) {
	if d > 0 {
		l.timers.arm(s, l.now+d)
	}
}

// established starts to move bytes: the upstream has answered.
func (l *loop) established(s *session) {
	l.connected++
	if !s.registered && !l.register(s) {
		return
	}
	s.dial = nil
	s.state, s.since, s.moved = relaying, l.now, l.now
	v6 := s.src.Addr().Is6()
	s.leaf.mark.apply(s.client, v6)
	fitBuffers(s.client, s.leaf.upload, s.leaf.download)
	fitBuffers(s.server, s.leaf.download, s.leaf.upload)
	l.up.Add(&s.up.queue, s.leaf.name, s.src.Addr(), l.now)
	l.down.Add(&s.down.queue, s.leaf.name, s.src.Addr(), l.now)
	s.up.writable, s.down.writable = true, true
	s.up.readable = true // the client has often sent something already
	l.activate(&s.up)
	l.arm(s, keepIdle*time.Second)
	if idle := l.policy.Timeouts.Idle; idle > 0 {
		l.arm(s, idle)
	}
}

// ended takes in that d came to an end: passes it on when nothing is left to
// deliver before it, and ends the session when both directions have ended.
func (l *loop) ended(s *session, d *direction) {
	other := s.other(d)
	switch {
	case d.done: // the receiver is beyond delivery
		if other.done {
			l.passReset(s, d.upload)
		}
		// Else the receiver may have sent something before it went: the other direction comes to its end.
		return
	case d.held() > 0:
		return
	case d.end == reset:
		l.passReset(s, !d.upload)
		return
	}
	d.done = true
	if other.done {
		l.finish(s, ClosedDone, false) // close sends the end of stream
		return
	}
	if e := unix.Shutdown(d.to(), unix.SHUT_WR); e != nil {
		s.markDead(!d.upload)
	}
	l.arm(s, l.policy.Timeouts.HalfClosed)
}

// passReset resets the surviving side once the kernel has delivered what was
// written to it before: a reset discards what is still queued.
func (l *loop) passReset(s *session, toClient bool) {
	fd := s.server
	if toClient {
		fd = s.client
	}
	if s.state != resetting {
		s.state, s.since = resetting, l.now
		l.leave(s)
	}
	if unsent(fd) > 0 && !s.dead(toClient) && l.now < s.since+resetTime {
		l.timers.arm(s, l.now+resetLook)
		return
	}
	if toClient {
		l.finish(s, ClosedUpstream, true)
	} else {
		l.finish(s, ClosedClient, true)
	}
}

// leave takes both directions out of the trees.
func (l *loop) leave(s *session) {
	l.up.Remove(&s.up.queue, l.now)
	l.down.Remove(&s.down.queue, l.now)
}

// drop forgets what a direction holds.
func (l *loop) drop(d *direction) {
	l.held -= int64(d.held())
	d.stash = nil
	if d.pipe != nil {
		l.pipes.put(d.pipe)
		d.pipe = nil
	}
}

// finish ends a session that had been connected.
func (l *loop) finish(s *session, how Closing, reset bool) {
	if s.state == relaying {
		l.leave(s)
	}
	l.closed[how]++
	if reset {
		abort(s.client)
		abort(s.server)
	}
	l.release(s)
}

// refuse ends a session that has not been connected.
func (l *loop) refuse(s *session, why Refusal) {
	l.refused[why]++
	abort(s.client)
	l.release(s)
}

// release gives back everything that s has.
func (l *loop) release(s *session) {
	l.timers.disarm(s)
	l.drop(&s.up)
	l.drop(&s.down)
	unix.Close(s.client)
	if s.server >= 0 {
		unix.Close(s.server)
	}
	if s.source.sessions--; s.source.sessions == 0 {
		delete(l.sources, s.source.addr)
	}
	*s = session{slot: s.slot, timer: -1, client: -1, server: -1}
	l.free = append(l.free, s)
	l.open--
	l.pipes.refused = false
	if l.resumeAt != never {
		l.resumeAccept()
	}
}

// expire looks at a session whose timer has run out.
func (l *loop) expire(s *session) {
	t := &l.policy.Timeouts
	switch s.state {
	case handshaking:
		l.refuseAfter(s, t.Handshake, RefusedHandshake)
	case resolving, connecting:
		l.dialExpired(s)
	case lingering:
		l.release(s)
	case resetting:
		l.passReset(s, !s.deadClient)
	case relaying:
		l.checkIdle(s)
	}
}

// refuseAfter refuses s when its state has lasted for limit, else looks again then.
func (l *loop) refuseAfter(s *session, limit time.Duration, why Refusal) {
	if left := s.since + limit - l.now; limit > 0 && left > 0 {
		l.arm(s, left)
	} else if limit > 0 {
		l.refuse(s, why)
	}
}

// checkIdle ends a session in which nothing has moved for too long. One that
// waits for its turn is not idle.
func (l *loop) checkIdle(s *session) {
	if !s.kept && l.now-s.since >= keepIdle*time.Second {
		s.kept = true
		keepAlive(s.server, l.policy.Timeouts.Idle)
	}
	limit, how := l.policy.Timeouts.Idle, ClosedIdle
	if half := l.policy.Timeouts.HalfClosed; s.halfClosed() && half > 0 && (limit == 0 || half < limit) {
		limit, how = half, ClosedHalf
	}
	if limit == 0 {
		return
	}
	if s.waiting() {
		s.moved = l.now
	}
	if left := s.moved + limit - l.now; left > 0 {
		l.arm(s, left)
		return
	}
	l.finish(s, how, true)
}
