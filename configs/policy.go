package configs

import (
	"io/fs"
	"net/netip"
	"time"

	"shaperd/classify"
	"shaperd/shaper"
)

// A Policy is a validated policy file as plain values; nothing of YAML's shape
// is left in it. Callers may keep it and must not change it.
type Policy struct {
	// Name is the file's path, or "built-in".
	Name string
	// Modified is when the file was written; the zero time for what is built in.
	Modified time.Time
	// Rules is the classifier's input, in file order.
	Rules classify.Rules
	// RuleLines holds the line of each of Rules.List in the file.
	RuleLines []int
	// Marks holds what a class's sockets are marked with, by leaf class name.
	// Every leaf class has an entry.
	Marks map[string]Mark
	// Relays and Interfaces are the places of enforcement.
	Relays     []Relay
	Interfaces []Interface
	// Metrics is where Prometheus metrics are served; the zero AddrPort serves none.
	Metrics netip.AddrPort
	// Page serves the web page beside the metrics.
	Page bool
	// KeepOnExit has the kernel go on shaping the interfaces when the daemon ends.
	KeepOnExit bool
	// Admin is the control socket.
	Admin Admin
	// Shared is the cluster whose hosts share the budgets of shared classes.
	Shared Shared
	// Admission is what programs may take of the classes.
	Admission Admission

	times weekly // of all schedules
	file  *file  // what At makes the rates of another time from
}

// A file is what was read.
type file struct {
	spec  *fileSpec
	lines []string // without passwords
}

// Admin says where the control socket is, and who may use it.
type Admin struct {
	Socket string      // path; "" is the default
	Off    bool        // there is none
	Mode   fs.FileMode // 0 is 0660
	Group  string      // that owns it; "" is the daemon's
}

// A Mark is what the relay sets on the sockets of a class.
type Mark struct {
	DSCP     *classify.DSCP // outgoing DSCP; nil leaves it alone
	Fwmark   uint32         // SO_MARK; 0 leaves it alone
	Priority uint8          // the class's priority, 0 (first) to 7
}

// RelayKind is how a relay learns where a session goes.
type RelayKind uint8

const (
	// Forward connects every session to one of the relay's upstreams.
	Forward RelayKind = iota
	// SOCKS5 lets the client name the destination (RFC 1928).
	SOCKS5
)

// String returns the kind as the policy file spells it.
func (k RelayKind) String() string {
	if k == SOCKS5 {
		return "socks5"
	}
	return "forward"
}

// A Relay is a TCP listener with its upstreams and its two links.
type Relay struct {
	Name     string
	Kind     RelayKind
	Line     int // in the policy file
	Listen   []netip.AddrPort
	Upstream []string          // host:port, in order of preference; Forward only
	Users    map[string]string // user name to password; SOCKS5 only, empty asks for none
	Upload   shaper.Link       // client to upstream
	Download shaper.Link       // upstream to client
	Limits   Limits
	Timeouts Timeouts
}

// Limits bound what one session or one client address may take; 0 means no limit.
type Limits struct {
	PerSession        shaper.Rate // each direction of each session
	PerSource         shaper.Rate // each direction of all sessions of one client address
	Sessions          int
	SessionsPerSource int
	NewPerSecond      int // accepted connections per second, over the whole relay
}

// Timeouts bound how long a session may wait in each of its states.
// Time spent throttled never counts as idle.
type Timeouts struct {
	Handshake  time.Duration // the client's SOCKS5 handshake
	Connect    time.Duration // reaching an upstream, all attempts together
	Idle       time.Duration // nothing moved in either direction
	HalfClosed time.Duration // one direction ended, nothing moved in the other
	Drain      time.Duration // how long a shutdown waits for sessions to end
}

// An Interface is a kernel link with its rates; 0 leaves that direction unshaped.
type Interface struct {
	Name     string // or a pattern such as "ppp*"
	Line     int    // in the policy file
	Egress   shaper.Link
	Ingress  shaper.Link
	Overhead int           // bytes that the link adds to each IP packet; 0 leaves it to what the kernel counts
	Queue    time.Duration // how long a packet may wait at its class's ceil; 0 is the kernel datapath's default
	Takeover bool          // replace what another program has put there
}
