package conn

import (
	"net/netip"
	"time"

	"shaperd/classify"
	"shaperd/shaper"
)

// Kind is how a relay learns where a session goes.
type Kind uint8

const (
	// Forward connects every session to the first upstream that answers.
	Forward Kind = iota
	// SOCKS5 lets the client name the destination (RFC 1928, RFC 1929).
	SOCKS5
)

// Config is everything a Relay needs. A Relay keeps what it is given; the
// caller must not change it afterwards.
type Config struct {
	Name     string
	Kind     Kind
	Listen   []netip.AddrPort
	Upstream []string          // host:port in order of preference; Forward only
	Users    map[string]string // user name to password; SOCKS5 only, empty asks for none
	Upload   shaper.Link       // client to upstream
	Download shaper.Link       // upstream to client
	Rules    classify.Rules
	Marks    map[string]Mark // by leaf class
	Limits   Limits
	Timeouts Timeouts
}

// Mark is what the sockets of a class are marked with.
type Mark struct {
	DSCP     *classify.DSCP // outgoing DSCP; nil leaves it alone
	Fwmark   uint32         // SO_MARK, needs CAP_NET_ADMIN; 0 leaves it alone
	Priority uint8          // the class's priority, 0 (first) to 7; see soPriority
}

// Limits bound what one session or one client address may take; 0 means no limit.
type Limits struct {
	PerSession        shaper.Rate // each direction of each session
	PerSource         shaper.Rate // each direction of all sessions of one client address
	Sessions          int
	SessionsPerSource int
	NewPerSecond      int // accepted connections per second, over the whole relay
}

// Timeouts bound how long a session may stay in each of its states.
// Time spent throttled never counts as idle.
type Timeouts struct {
	Handshake  time.Duration // the client's SOCKS5 handshake
	Connect    time.Duration // reaching an upstream, all attempts together
	Idle       time.Duration // nothing moved in either direction
	HalfClosed time.Duration // one direction ended, nothing moved in the other
	Drain      time.Duration // how long Run waits for sessions to end after its context is done
}
