package conn

import (
	"cmp"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

const (
	// An upstream that fails is tried after the healthy ones for a time that doubles from backoffMin to backoffMax.
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
	// resolveFresh is how long the addresses of an upstream's name are used before it is looked up again.
	resolveFresh = 10 * time.Second
)

// An upstream is one entry of the relay's upstream list.
type upstream struct {
	name     string // as configured, host:port
	host     string
	port     uint16
	addrs    []netip.Addr  // what host was last resolved to
	fresh    time.Duration // addrs need no lookup before then; never for an address
	failures int           // in a row
	until    time.Duration // in backoff until then
	waiting  []waiter      // for the lookup under way
}

// A waiter is a session that waits for a lookup, unless its gen has changed.
type waiter struct {
	s   *session
	gen uint32
}

// newUpstream reads host:port.
func newUpstream(name string) (*upstream, error) {
	host, portText, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	u := &upstream{name: name, host: host, port: uint16(port)}
	if a, err := netip.ParseAddr(host); err == nil {
		u.addrs, u.fresh = []netip.Addr{a.Unmap()}, never
	}
	return u, nil
}

// failed records that no address of u took a connection. The jitter keeps many
// relays from coming back at the same moment.
func (u *upstream) failed(now time.Duration) {
	pause := min(backoffMin<<min(u.failures, 16), backoffMax)
	u.failures++
	u.until = now + pause/2 + rand.N(pause)
}

// worked records that u took a connection.
func (u *upstream) worked() { u.failures, u.until = 0, 0 }

// candidates returns the upstreams in the order to try them: as configured,
// with those in backoff last, the one whose backoff ends first before the others.
func (l *loop) candidates() []*upstream {
	healthy := true
	for _, u := range l.upstreams {
		healthy = healthy && u.until <= l.now
	}
	if healthy {
		return l.upstreams
	}
	order := slices.Clone(l.upstreams)
	slices.SortStableFunc(order, func(a, b *upstream) int {
		return cmp.Compare(max(a.until, l.now), max(b.until, l.now))
	})
	return order
}
