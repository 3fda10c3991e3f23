package conn

import "shaperd/shaper"

// Stats is a snapshot of one relay. Counters only grow.
type Stats struct {
	Name             string
	Upload, Download shaper.LinkStats
	Sessions         int                 // open now
	Accepted         uint64              // client connections taken from the kernel
	Connected        uint64              // sessions that reached their destination
	Held             int64               // bytes read and not yet written on
	Closed           [NumClosings]uint64 // ended sessions that had been connected, by Closing
	Refused          [NumRefusals]uint64 // clients that never got connected, by Refusal
	UpstreamFailures map[string]uint64   // failed attempts by upstream; those of SOCKS5 destinations under "client's choice"
	UpstreamUp       map[string]bool     // whether the last attempt to connect succeeded, by upstream; true before the first
	AcceptPaused     uint64              // times that accepting stopped for want of descriptors
	DSCPUnknown      uint64              // sessions whose client's DSCP the rules needed and the kernel did not know
}

// A Closing is how a connected session ended.
type Closing uint8

// The ways a connected session ends.
const (
	ClosedDone     Closing = iota // both sides ended their stream
	ClosedClient                  // the client reset the connection, or vanished
	ClosedUpstream                // the upstream did
	ClosedIdle                    // nothing moved for the idle timeout
	ClosedHalf                    // one direction had ended, and nothing moved in the other for its timeout
	ClosedShutdown                // still open when the drain's time was over
	NumClosings    = iota
)

// String returns the value of the metric's reason label.
func (c Closing) String() string {
	return [NumClosings]string{"done", "client_reset", "upstream_reset", "idle", "half_closed", "shutdown"}[c]
}

// A Refusal is why a client was not connected. The zero value means that it was not refused.
type Refusal uint8

// Why clients are refused.
const (
	NotRefused            Refusal = iota
	RefusedSessions               // limits.sessions
	RefusedSource                 // limits.sessions_per_source
	RefusedRate                   // limits.new_per_second
	RefusedProtocol               // what the client sent is not SOCKS5
	RefusedLogin                  // no acceptable login method, or wrong name or password
	RefusedRequest                // a SOCKS5 command or address type that is not served
	RefusedHandshake              // the client left, or stalled past the handshake's timeout
	RefusedResolve                // the destination's name has no address
	RefusedConnect                // no upstream took the connection
	RefusedConnectTimeout         // the connect timeout passed before one did
	RefusedShutdown               // not connected yet when the relay ended
	NumRefusals           = iota
)

// String returns the value of the metric's reason label.
func (r Refusal) String() string {
	return [NumRefusals]string{"none", "sessions", "sessions_per_source", "new_per_second", "protocol", "login", "request",
		"handshake", "resolve", "connect", "connect_timeout", "shutdown"}[r]
}
