package conn

import (
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// acceptsPerTurn bounds the connections taken between two looks at the others.
	acceptsPerTurn = 64
	// acceptPause is how long accepting stops when the kernel has no descriptor left, unless a session ends first.
	acceptPause = 100 * time.Millisecond
)

// accept takes the connections that wait at ln: one, unless the turn before
// took one as well and more are likely to wait.
func (l *loop) accept(ln *listener) {
	most := 1
	if l.turn == l.crowded {
		most = acceptsPerTurn
	}
	l.crowded = l.turn + 1
	for range most {
		l.peerLen = uint32(unsafe.Sizeof(l.peer))
		fd, e := sysAccept(ln.fd, &l.peer, &l.peerLen)
		switch e {
		case 0:
			l.accepted++
			l.admit(fd, rawAddrPort(&l.peer))
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			l.pauseAccept()
			return
		default: // the connection is gone already, or a firewall refused it
		}
	}
}

// admit starts a session for an accepted socket, if the limits allow it.
func (l *loop) admit(fd int, src netip.AddrPort) {
	lim := &l.policy.Limits
	from := l.sources[src.Addr()]
	switch {
	case lim.Sessions > 0 && l.open >= lim.Sessions:
		l.reject(fd, RefusedSessions)
		return
	case lim.SessionsPerSource > 0 && from != nil && from.sessions >= lim.SessionsPerSource:
		l.reject(fd, RefusedSource)
		return
	case l.admission != nil && !l.admission.AllowAt(l.base.Add(l.now), 1):
		l.reject(fd, RefusedRate)
		return
	}
	s := l.newSession(fd, src)
	if l.policy.needDSCP {
		l.learnDSCP(s)
	}
	if l.policy.Kind == SOCKS5 {
		s.state = handshaking
		if !l.register(s) {
			return
		}
		l.arm(s, l.policy.Timeouts.Handshake)
		l.readHandshake(s) // often there already
		return
	}
	l.startDial(s, l.candidates())
}

// reject resets a connection that gets no session.
func (l *loop) reject(fd int, why Refusal) {
	l.refused[why]++
	abort(fd)
	unix.Close(fd)
}

func (l *loop) newSession(fd int, src netip.AddrPort) *session {
	var s *session
	if n := len(l.free); n > 0 {
		s = l.free[n-1]
		l.free = l.free[:n-1]
		*s = session{slot: s.slot}
	} else {
		s = &session{slot: int32(len(l.slots))}
		l.slots = append(l.slots, s)
	}
	s.gen, s.timer, s.client, s.server, s.src = l.nextGen(), -1, fd, -1, src
	s.up.s, s.up.upload, s.down.s = s, true, s
	s.up.queue.User, s.down.queue.User = &s.up, &s.down
	if s.source = l.sources[src.Addr()]; s.source == nil {
		s.source = &source{addr: src.Addr()}
		l.sources[src.Addr()] = s.source
	}
	s.source.sessions++
	s.since = l.now
	l.open++
	return s
}

// learnDSCP finds out the client's DSCP.
func (l *loop) learnDSCP(s *session) {
	if s.dscp, s.dscpKnown = clientDSCP(s.client, s.src.Addr().Is4(), l.scratch[:512]); !s.dscpKnown {
		l.dscpUnknown++
	}
}

// register puts the client's socket into the epoll set; on failure the session has ended.
func (l *loop) register(s *session) bool {
	if err := l.poller.add(s.client, edgeEvents, clientToken(s)); err != nil {
		l.log.Error("session refused", "client", s.src, "error", err)
		l.refuse(s, RefusedConnect)
		return false
	}
	s.registered = true
	return true
}

// pauseAccept leaves new connections in the kernel's queue until descriptors are free again.
func (l *loop) pauseAccept() {
	if l.resumeAt != never || l.draining {
		return
	}
	l.paused++
	l.resumeAt = l.now + acceptPause
	for _, ln := range l.listeners {
		_ = l.poller.modify(ln.fd, 0, ln.token)
	}
	l.log.Warn("out of descriptors: accepting paused", "sessions", l.open)
}

func (l *loop) resumeAccept() {
	l.resumeAt = never
	for _, ln := range l.listeners {
		_ = l.poller.modify(ln.fd, unix.EPOLLIN, ln.token)
	}
}

// rawAddrPort reads what accept4 filled in; IPv4 in IPv6 comes out as IPv4.
func rawAddrPort(sa *unix.RawSockaddrAny) netip.AddrPort {
	port := func(p *uint16) uint16 {
		b := (*[2]byte)(unsafe.Pointer(p))
		return uint16(b[0])<<8 | uint16(b[1])
	}
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), port(&in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), port(&in.Port))
	}
	return netip.AddrPort{}
}
