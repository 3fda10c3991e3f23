package conn

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// maxDiscard is how much a refused client may still send while it is told so.
const maxDiscard = 64 << 10

// readHandshake reads what a SOCKS5 client has sent and goes on as far as it leads.
// What comes after the request belongs to the session and is kept.
func (l *loop) readHandshake(s *session) {
	for s.state == handshaking {
		n := copy(l.scratch[:], s.pending)
		m, e := sysRead(s.client, l.scratch[n:])
		switch {
		case e == unix.EAGAIN:
			return
		case e == unix.EINTR:
			continue
		case e != 0 || m == 0:
			l.refuse(s, RefusedHandshake)
			return
		}
		l.takeHandshake(s, l.scratch[:n+m])
	}
}

// takeHandshake advances by every complete message in buf.
func (l *loop) takeHandshake(s *session, buf []byte) {
	for {
		step, next := socksNext(s.stage, buf, l.policy.Users)
		if step.reply != nil && !l.tell(s, step.reply) {
			l.refuse(s, RefusedHandshake)
			return
		}
		if step.refused != NotRefused {
			l.linger(s, step.refused)
			return
		}
		buf = buf[step.used:]
		s.stage = next
		if step.complete() {
			l.takeRequest(s, &step, buf)
			return
		}
		if step.used == 0 {
			s.pending = append(s.pending[:0:0], buf...)
			return
		}
	}
}

// takeRequest dials the destination that the client asked for.
func (l *loop) takeRequest(s *session, step *socksStep, early []byte) {
	s.pending = nil
	if len(early) > 0 {
		s.up.stash = append([]byte(nil), early...)
		l.held += int64(len(early))
	}
	u := &upstream{name: clientsChoice, host: step.host, port: step.port}
	if step.addr.IsValid() {
		u.addrs, u.fresh = []netip.Addr{step.addr}, never
	}
	l.startDial(s, []*upstream{u})
}

// clientsChoice stands for the destinations of SOCKS5 clients where upstreams are counted by name.
const clientsChoice = "client's choice"

// answer sends the reply to the client's request.
func (l *loop) answer(s *session, code byte) bool {
	var bound netip.AddrPort
	if s.server >= 0 && code == replyOK {
		if name, err := unix.Getsockname(s.server); err == nil {
			bound = addrPort(name)
		}
	}
	return l.tell(s, socksReply(code, bound))
}

// tell sends a short message of the handshake. A client whose window has no
// room for it is not worth waiting for.
func (l *loop) tell(s *session, message []byte) bool {
	n, e := sysWrite(s.client, message)
	return e == 0 && n == len(message)
}

// linger ends a session after a refusal was sent: closing at once would reset
// the connection and could lose the reply.
func (l *loop) linger(s *session, why Refusal) {
	l.refused[why]++
	if s.server >= 0 {
		unix.Close(s.server)
		s.server = -1
	}
	l.drop(&s.up)
	s.dial = nil
	s.state, s.since = lingering, l.now
	if unix.Shutdown(s.client, unix.SHUT_WR) != nil {
		l.release(s)
		return
	}
	l.timers.arm(s, l.now+lingerTime)
	l.discard(s)
}

// discard reads on until the client has taken the refusal and closed, within bounds.
func (l *loop) discard(s *session) {
	for {
		n, e := sysRead(s.client, l.scratch[:])
		switch {
		case e == unix.EAGAIN:
			return
		case e == unix.EINTR:
			continue
		case e != 0 || n == 0:
			l.release(s)
			return
		}
		if s.discarded += int32(n); s.discarded > maxDiscard {
			l.release(s)
			return
		}
	}
}
