package conn

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// attemptMin is the least time that one of several addresses gets before the next is tried.
	attemptMin = 250 * time.Millisecond
	// descriptorRetry is how long an attempt waits for a free descriptor.
	descriptorRetry = 50 * time.Millisecond
)

// A dial is the search for an upstream that answers.
type dial struct {
	upstreams []*upstream  // still to try; the first is being tried
	addrs     []netip.Addr // its addresses still to try; the first is being tried
	began     time.Duration
	attempt   time.Duration // the time at which the attempt under way is given up
	last      error         // the last attempt's
}

// startDial looks for an upstream for s in the order given.
func (l *loop) startDial(s *session, order []*upstream) {
	s.dial = &dial{upstreams: order, began: l.now}
	l.tryUpstream(s)
}

// tryUpstream tries the first upstream on the list.
func (l *loop) tryUpstream(s *session) {
	if len(s.dial.upstreams) == 0 {
		l.giveUp(s)
		return
	}
	u := s.dial.upstreams[0]
	if l.now < u.fresh {
		s.dial.addrs = u.addrs
		l.tryAddress(s)
		return
	}
	s.state, s.since = resolving, l.now
	l.arm(s, l.policy.Timeouts.Connect-(l.now-s.dial.began))
	u.waiting = append(u.waiting, waiter{s, s.gen})
	if len(u.waiting) == 1 {
		l.resolver.lookup(u.host, func(addrs []netip.Addr, err error) { l.resolved(u, addrs, err) })
	}
}

// resolved takes in the outcome of a lookup. Addresses that are known already
// outlive a resolver that is away.
func (l *loop) resolved(u *upstream, addrs []netip.Addr, err error) {
	l.tick()
	if err == nil {
		u.addrs, u.fresh = addrs, l.now+resolveFresh
	}
	waiting := u.waiting
	u.waiting = nil
	for _, w := range waiting {
		if s := w.s; s.gen == w.gen && s.state == resolving {
			s.dial.addrs = u.addrs
			if err != nil {
				s.dial.last = err
			}
			l.tryAddress(s)
		}
	}
}

// tryAddress tries the first address on the list.
func (l *loop) tryAddress(s *session) {
	d := s.dial
	for len(d.addrs) > 0 {
		s.dst = netip.AddrPortFrom(d.addrs[0], d.upstreams[0].port)
		err := l.connect(s)
		if err == nil {
			return
		}
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			l.pauseAccept()
			s.state = connecting
			d.attempt = l.now + descriptorRetry
			l.arm(s, descriptorRetry)
			return
		}
		l.attemptFailed(s, err)
	}
	l.upstreamFailed(s)
	d.upstreams = d.upstreams[1:]
	l.tryUpstream(s)
}

// attemptFailed moves on to the next address.
func (l *loop) attemptFailed(s *session, err error) {
	d := s.dial
	d.last = err
	d.addrs = d.addrs[1:]
	if s.server >= 0 {
		unix.Close(s.server)
		s.server = -1
	}
	l.log.Debug("connect to upstream", "upstream", d.upstreams[0].name, "address", s.dst, "error", err)
}

// connect starts a connection to s.dst, marked for the class that takes it.
func (l *loop) connect(s *session) error {
	fd, err := streamSocket(s.dst.Addr())
	if err != nil {
		return err
	}
	s.server, s.serverGen = fd, l.nextGen()
	s.leaf = l.policy.classify(s.src, s.dst, s.dscp)
	set(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	s.leaf.mark.apply(fd, s.dst.Addr().Is6())
	if b := earlyBuffer(s.leaf.download); b > 0 {
		set(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, b)
	}
	if err := unix.Connect(fd, sockaddr(s.dst)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if err := l.poller.add(fd, edgeEvents, serverToken(s)); err != nil {
		return err
	}
	s.state, s.since = connecting, l.now
	s.dial.attempt = l.now + l.attemptTime(s)
	l.arm(s, s.dial.attempt-l.now)
	return nil
}

// attemptTime is this attempt's share of the time that is left.
func (l *loop) attemptTime(s *session) time.Duration {
	limit := l.policy.Timeouts.Connect
	if limit == 0 {
		return never - l.now
	}
	left := limit - (l.now - s.dial.began)
	attempts := len(s.dial.addrs) + len(s.dial.upstreams) - 1
	return min(left, max(left/time.Duration(attempts), attemptMin))
}

// connectDone takes in the outcome of the attempt under way.
func (l *loop) connectDone(s *session, failed bool) {
	if failed {
		code, err := unix.GetsockoptInt(s.server, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil {
			err = unix.Errno(code)
		}
		l.attemptFailed(s, err)
		l.tryAddress(s)
		return
	}
	if u := s.dial.upstreams[0]; u.failures > 0 {
		u.worked()
		l.log.Info("upstream is back", "upstream", u.name)
	}
	if l.policy.Kind == SOCKS5 && !l.answer(s, replyOK) {
		l.refuse(s, RefusedHandshake)
		return
	}
	l.established(s)
}

// dialExpired gives up the attempt under way, or the whole dial when its time is over.
func (l *loop) dialExpired(s *session) {
	limit := l.policy.Timeouts.Connect
	if limit > 0 && l.now-s.dial.began >= limit {
		s.dial.last = unix.ETIMEDOUT
		l.upstreamFailed(s)
		l.giveUp(s)
		return
	}
	if s.state == resolving {
		l.arm(s, limit-(l.now-s.dial.began))
		return
	}
	if left := s.dial.attempt - l.now; left > 0 {
		l.arm(s, left)
		return
	}
	if s.server >= 0 { // else it waited for a descriptor
		l.attemptFailed(s, unix.ETIMEDOUT)
	}
	l.tryAddress(s)
}

// upstreamFailed records that the upstream being tried took no connection.
func (l *loop) upstreamFailed(s *session) {
	u := s.dial.upstreams[0]
	if u.failures == 0 && u.name != clientsChoice {
		l.log.Warn("upstream is away", "upstream", u.name, "error", s.dial.last)
	}
	u.failed(l.now)
	l.failures[u.name]++
}

// giveUp tells the client that there is no upstream: SOCKS5 has a reply for it, else by a reset.
func (l *loop) giveUp(s *session) {
	why, code := RefusedConnect, byte(replyFailure)
	var lookup *lookupError
	switch err := s.dial.last; {
	case errors.As(err, &lookup):
		why, code = RefusedResolve, replyHostUnreachable
	case errors.Is(err, unix.ETIMEDOUT):
		why, code = RefusedConnectTimeout, replyHostUnreachable
	case errors.Is(err, unix.ECONNREFUSED):
		code = replyRefused
	case errors.Is(err, unix.ENETUNREACH):
		code = replyNetUnreachable
	case errors.Is(err, unix.EHOSTUNREACH):
		code = replyHostUnreachable
	}
	l.log.Debug("no upstream", "client", s.src, "error", s.dial.last)
	if l.policy.Kind == SOCKS5 && l.answer(s, code) {
		l.linger(s, why)
		return
	}
	l.refuse(s, why)
}
