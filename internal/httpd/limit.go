package httpd

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// silence is how long a new connection may say nothing before it counts as idle.
const silence = 100 * time.Millisecond

// A limited listener hands out so many connections at once. When all are taken
// and somebody else comes, the one that has been idle longest is closed for
// them; where none is idle they wait, and others in the kernel's queue.
type limited struct {
	net.Listener
	most   int
	base   time.Time
	closed chan struct{}
	once   sync.Once

	wanted atomic.Bool   // somebody waits for a place
	room   chan struct{} // there may be one

	mu   sync.Mutex
	open map[*counted]struct{}
}

func limit(l net.Listener, connections int) *limited {
	return &limited{
		Listener: l, most: connections, base: time.Now(), closed: make(chan struct{}), room: make(chan struct{}, 1),
		open: make(map[*counted]struct{}, connections),
	}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{Conn: inner, of: l}
	for !l.add(c) {
		idle, in := l.longestIdle()
		if idle != nil && in <= 0 {
			idle.Close()
			continue
		}
		var ripe <-chan time.Time
		if idle != nil {
			ripe = time.After(in)
		}
		select {
		case <-ripe:
		case <-l.room:
		case <-l.closed:
			inner.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// add gives a connection a place if there is one. If not, room will be told of one.
func (l *limited) add(c *counted) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.open) >= l.most
	l.wanted.Store(full)
	if !full {
		l.open[c] = struct{}{}
	}
	return !full
}

// longestIdle returns the connection that has waited longest for its next request,
// or that will be the first to be idle, and in how long.
func (l *limited) longestIdle() (longest *counted, in time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	least := int64(0)
	for c := range l.open {
		if since := c.idle.Load(); since > 0 && (longest == nil || since < least) {
			longest, least = c, since
		}
	}
	return longest, time.Duration(least) - time.Since(l.base)
}

// tell wakes Accept if it waits for a place.
func (l *limited) tell() {
	if l.wanted.Load() {
		select {
		case l.room <- struct{}{}:
		default: // it has been told
		}
	}
}

// Close implements net.Listener. It wakes Accept.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A counted connection makes room for another when it is closed.
type counted struct {
	net.Conn
	of   *limited
	idle atomic.Int64 // since when, or from when on, on the listener's clock; 0 while it has a request
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		delete(c.of.open, c)
		c.of.mu.Unlock()
		c.of.tell()
	})
	return err
}

// NetConn returns the connection itself, for those who have to know what it is.
func (c *counted) NetConn() net.Conn { return c.Conn }

// follow is the server's ConnState: it says what is idle.
func follow(conn net.Conn, s http.ConnState) {
	c, ok := conn.(*counted)
	switch {
	case !ok:
	case s == http.StateNew:
		c.idle.Store(int64(time.Since(c.of.base) + silence))
	case s == http.StateIdle:
		c.idle.Store(max(int64(time.Since(c.of.base)), 1))
		c.of.tell()
	default:
		c.idle.Store(0)
	}
}
