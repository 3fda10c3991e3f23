package conn

import (
	"net/netip"
	"time"

	"shaperd/classify"
)

// state is where a session is in its life.
type state uint8

const (
	closed      state = iota // not in use
	handshaking              // reading the client's SOCKS5 request
	resolving                // a resolver goroutine looks the destination's name up
	connecting               // an attempt at a destination is under way
	relaying                 // bytes move
	lingering                // a refusal was sent; waiting for the client to take it
	resetting                // the last bytes drain before a reset is passed on
)

// A session is one relayed connection: two sockets and two directions. The
// loop owns it; sessions are reused, and gen tells one use from the next.
type session struct {
	gen            uint32 // also the client's epoll token
	serverGen      uint32 // the server's epoll token
	slot           int32
	timer          int32 // place in the loop's timers, -1 for none
	client, server int   // descriptors, -1 for none
	state          state
	deadClient     bool // the socket reported an error: nothing can be delivered to it
	deadServer     bool
	registered     bool // the client's descriptor is in the epoll set
	dscpKnown      bool
	kept           bool           // the upstream's socket has keepalive on
	stage          stage          // of the handshake
	discarded      int32          // bytes a refused client has sent since
	dscp           classify.DSCP  // the client's, where it is known
	src            netip.AddrPort // the client
	dst            netip.AddrPort // the upstream tried last, or connected
	leaf           *leaf          // its class
	source         *source
	dial           *dial         // until connected
	pending        []byte        // an unfinished handshake's bytes
	since          time.Duration // the state's begin
	moved          time.Duration // the last time that bytes moved or waited for their turn
	up, down       direction
}

// dead reports whether one of the two sockets is beyond delivery.
func (s *session) dead(client bool) bool {
	if client {
		return s.deadClient
	}
	return s.deadServer
}

func (s *session) markDead(client bool) {
	if client {
		s.deadClient = true
	} else {
		s.deadServer = true
	}
}

// other returns the opposite direction.
func (s *session) other(d *direction) *direction {
	if d == &s.up {
		return &s.down
	}
	return &s.up
}

// halfClosed reports whether one direction has ended.
func (s *session) halfClosed() bool { return s.up.done || s.down.done }

// waiting reports whether a direction only waits for its turn: then the
// session is throttled, not idle.
func (s *session) waiting() bool { return s.up.ready() || s.down.ready() }

// A source is one client address with the sessions it has open.
type source struct {
	addr     netip.Addr
	sessions int
}
