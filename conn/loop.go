package conn

import (
	"log/slog"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

const (
	never = time.Duration(math.MaxInt64)
	// grantsPerTurn bounds the grants between two looks at the sockets.
	grantsPerTurn = 32
	scratchSize   = 64 << 10
)

// A loop serves one relay. All of its fields but mail and bound belong to the goroutine in run.
type loop struct {
	logger    *slog.Logger // as given
	log       *slog.Logger // with the relay's name
	poller    *poller
	inherited *Inherited // nil for none
	base      time.Time
	now       time.Duration // read once a turn and after every grant
	policy    *policy
	up, down  *shaper.Tree
	admission *shaper.TokenBucket // new connections per second, nil for no limit
	listeners []*listener
	bound     atomic.Pointer[[]netip.AddrPort] // where listeners are, for other goroutines
	upstreams []*upstream
	resolver  *resolver

	slots    []*session // by slot; those not in use are in free
	free     []*session
	sources  map[netip.Addr]*source
	open     int
	gen      uint32
	nextList uint64 // the next listener's token
	timers   timers
	pipes    pipePool
	turn     uint64
	crowded  uint64        // the turn after the last one that accepted a connection
	resumeAt time.Duration // accepting is paused until then; never when it is not
	draining bool
	deadline time.Duration // of the drain
	err      error

	accepted, connected, paused, dscpUnknown uint64
	held                                     int64
	closed                                   [NumClosings]uint64
	refused                                  [NumRefusals]uint64
	failures                                 map[string]uint64

	peer    unix.RawSockaddrAny
	peerLen uint32
	scratch [scratchSize]byte

	mail struct {
		sync.Mutex
		posts  []func()
		closed bool
	}
}

// A token is listenerBit and a number for a listener, else a generation, a slot and a side.
const listenerBit = uint64(1) << 63

func clientToken(s *session) uint64 { return uint64(s.gen)<<32 | uint64(s.slot)<<1 }
func serverToken(s *session) uint64 { return uint64(s.serverGen)<<32 | uint64(s.slot)<<1 | 1 }

// nextGen returns a number that no live token has; 31 bits, so that listenerBit stays clear.
func (l *loop) nextGen() uint32 {
	l.gen = (l.gen + 1) & math.MaxInt32
	return l.gen
}

// post has f called by the loop; false when the loop has ended.
func (l *loop) post(f func()) bool {
	l.mail.Lock()
	defer l.mail.Unlock()
	if l.mail.closed {
		return false
	}
	l.mail.posts = append(l.mail.posts, f)
	if len(l.mail.posts) == 1 {
		l.poller.wake() // under the lock: the poller is closed after the mail
	}
	return true
}

// run serves until the drain has ended. It keeps its thread: the timer slack is the thread's own.
func (l *loop) run() error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	processors(+1) // it keeps one while it waits (see heldWait), which the others must not miss
	defer processors(-1)
	l.tick()
	for !l.finished() {
		events, err := l.poller.wait(l.timeout())
		if err != nil {
			l.err = err
			break
		}
		l.tick()
		l.turn++
		for i := range events {
			l.dispatch(tokenOf(&events[i]), events[i].Events)
		}
		for s := l.timers.expired(l.now); s != nil; s = l.timers.expired(l.now) {
			l.expire(s)
		}
		if l.resumeAt <= l.now {
			l.resumeAccept()
		}
		l.grant()
	}
	l.shutdown()
	return l.err
}

var processorsLock sync.Mutex

// processors changes the number of threads that run Go code at once.
func processors(delta int) {
	processorsLock.Lock()
	defer processorsLock.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + delta)
}

func (l *loop) tick() { l.now = time.Since(l.base) }

// timeout is how long the loop may sleep; negative means for ever.
func (l *loop) timeout() time.Duration {
	at := min(l.up.Wake(l.now), l.down.Wake(l.now), l.timers.next(), l.resumeAt)
	if l.draining {
		at = min(at, l.deadline)
	}
	if at == never {
		return -1
	}
	return max(0, at-l.now)
}

func (l *loop) dispatch(token uint64, events uint32) {
	switch {
	case token == wakeToken:
		l.receive()
	case token&listenerBit != 0:
		for _, ln := range l.listeners {
			if ln.token == token {
				l.accept(ln)
			}
		}
	default:
		slot, gen := uint32(token)>>1, uint32(token>>32)
		s := l.slots[slot]
		if token&1 == 0 && s.gen == gen {
			l.clientEvent(s, events)
		} else if token&1 == 1 && s.serverGen == gen {
			l.serverEvent(s, events)
		}
	}
}

// receive runs what other goroutines posted.
func (l *loop) receive() {
	l.poller.drainWake()
	l.mail.Lock()
	posts := l.mail.posts
	l.mail.posts = nil
	l.mail.Unlock()
	for _, f := range posts {
		f()
	}
}

func (l *loop) clientEvent(s *session, events uint32) {
	s.up.hup = s.up.hup || events&unix.EPOLLRDHUP != 0 // edge-triggered: it is told once
	switch s.state {
	case handshaking:
		l.readHandshake(s)
	case lingering:
		l.discard(s)
	case relaying:
		l.socketEvent(s, events, &s.up, &s.down)
	}
}

func (l *loop) serverEvent(s *session, events uint32) {
	switch s.state {
	case connecting:
		if events&(unix.EPOLLOUT|socketFailed) != 0 {
			l.connectDone(s, events&socketFailed != 0)
		}
		if s.state == relaying { // a server that speaks first may have done so
			l.socketEvent(s, events, &s.down, &s.up)
		}
	case relaying:
		l.socketEvent(s, events, &s.down, &s.up)
	}
}

const socketFailed = unix.EPOLLERR | unix.EPOLLHUP

// socketEvent takes in what epoll says of the socket that in reads from and out writes to.
func (l *loop) socketEvent(s *session, events uint32, in, out *direction) {
	if in.done && events&unix.EPOLLERR != 0 { // a reset after its end of stream: nothing will read it
		s.markDead(in.upload)
		l.passReset(s, !in.upload)
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|socketFailed) != 0 {
		in.readable = true
		in.hup = in.hup || events&(unix.EPOLLRDHUP|socketFailed) != 0
	}
	if events&(unix.EPOLLOUT|socketFailed) != 0 {
		out.writable = true
	}
	l.activate(in)
	l.activate(out)
}

func (l *loop) tree(d *direction) *shaper.Tree {
	if d.upload {
		return l.up
	}
	return l.down
}

func (l *loop) activate(d *direction) {
	if d.ready() {
		l.tree(d).Activate(&d.queue, l.now)
	}
}

// grant lets both trees hand out turns, alternately, until neither has one
// left or it is time to look at the sockets again.
func (l *loop) grant() {
	for range grantsPerTurn {
		up := l.grantOne(l.up)
		down := l.grantOne(l.down)
		if !up && !down {
			return
		}
	}
}

func (l *loop) grantOne(t *shaper.Tree) bool {
	q, n := t.Next(l.now)
	if q == nil {
		return false
	}
	d := q.User.(*direction)
	s, before := d.s, d.held()
	moved := d.move(l, n)
	l.held += int64(d.held() - before)
	l.tick()
	if moved > 0 {
		s.moved = l.now
		d.sent += uint64(moved)
	}
	t.Charge(q, moved, d.ready(), l.now)
	if d.end != open || d.done {
		l.ended(s, d)
	}
	return true
}

// finished reports whether the relay has nothing left to serve.
func (l *loop) finished() bool {
	return l.err != nil || l.draining && (l.open == 0 || l.now >= l.deadline)
}

// drain stops accepting and lets the sessions end by themselves until the timeout has passed.
func (l *loop) drain(timeout time.Duration) {
	if l.draining {
		return
	}
	l.draining = true
	l.deadline = l.now + timeout
	l.resumeAt = never
	l.closeListeners()
}

func (l *loop) closeListeners() {
	closeAll(l.listeners, l.poller)
	l.listeners = nil
	l.bound.Store(nil)
}

// shutdown resets what is left: an end of stream would tell the peers that all had arrived.
func (l *loop) shutdown() {
	for _, s := range l.slots {
		if s.client >= 0 {
			if s.state == relaying || s.state == resetting {
				l.finish(s, ClosedShutdown, true)
			} else {
				l.refuse(s, RefusedShutdown)
			}
		}
	}
	l.closeListeners()
	l.resolver.close()
	l.mail.Lock()
	l.mail.closed = true
	posts := l.mail.posts
	l.mail.posts = nil
	l.mail.Unlock()
	for _, f := range posts {
		f()
	}
	l.pipes.close()
	l.poller.close()
}
