package conn

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

const (
	// Keepalive finds a vanished peer of a quiet session after two minutes. It is in force from the
	// start on a client's socket, which inherits it, and after keepIdle on an upstream's: sessions
	// shorter than that need no system calls for it.
	keepIdle, keepInterval, keepCount = 60, 15, 4
	// kernelGivesUp is about when the kernel drops a connection whose data is not acknowledged
	// (net.ipv4.tcp_retries2 = 15).
	kernelGivesUp = 15 * time.Minute
	// notSentLowat bounds what the kernel queues for a receiver that does not read.
	notSentLowat = 128 << 10
)

// streamSocket makes a non-blocking TCP socket. It is never MPTCP, on which the client's SYN cannot be saved.
func streamSocket(addr netip.Addr) (int, error) {
	family := unix.AF_INET
	if addr.Is6() {
		family = unix.AF_INET6
	}
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	sa.ZoneId = zoneID(a.Addr().Zone())
	return sa
}

// keepAlive sets what notices a peer that vanished.
func keepAlive(fd int, idle time.Duration) {
	set(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepInterval)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount)
	// A user timeout also ends a connection whose reader pauses, and overrides the keepalive count,
	// so it is set only where it is the idle timeout and comes before the kernel's own.
	if idle > 0 && idle < kernelGivesUp {
		set(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(idle.Milliseconds()))
	}
}

// set sets an integer option that cannot fail on a TCP socket, or whose
// failure costs comfort only.
func set(fd, level, opt, value int) { _ = unix.SetsockoptInt(fd, level, opt, value) }

// bytesIn is what rate earns in d, in bytes.
func bytesIn(rate shaper.Rate, d time.Duration) int { return int(float64(rate) / 8 * d.Seconds()) }

// earlyBuffer is the receive buffer, in bytes, to set before a connection is
// made for a class of the given rate; 0 leaves it to the kernel. Only a buffer
// set this early keeps the first window small, which matters for slow classes:
// what the kernel takes in beforehand is a queue that the shaper cannot see
// (8 sessions at 1 mbit: 4.2 s with the default, 0.2 s with 16 KiB).
func earlyBuffer(rate shaper.Rate) int {
	if b := bytesIn(rate, 100*time.Millisecond); rate > 0 && b <= 64<<10 {
		return max(16<<10, b)
	}
	return 0
}

// lateBuffer is the receive buffer for a connection that has been made with a
// round-trip time of rtt: two round trips and a chunk's time at the class's
// rate, so that it never slows the class and hides little. 0 leaves it alone.
func lateBuffer(rate shaper.Rate, rtt time.Duration) int {
	if rate <= 0 || earlyBuffer(rate) > 0 {
		return 0
	}
	b := bytesIn(rate, 2*time.Millisecond+2*rtt)
	if b > 4<<20 {
		return 0
	}
	return max(64<<10, b)
}

// fitBuffers sizes a connected socket's buffers for what it will receive at
// most, and bounds what is queued towards it.
func fitBuffers(fd int, receive, send shaper.Rate) {
	if receive > 0 && earlyBuffer(receive) == 0 {
		var rtt time.Duration
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			rtt = time.Duration(info.Rtt) * time.Microsecond
		}
		if b := lateBuffer(receive, rtt); b > 0 {
			set(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, b)
		}
	}
	if send > 0 && send < shaper.Gbit {
		set(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSentLowat)
	}
}

// soPriority maps a class's priority to the kernel's TC_PRIO values
// (linux/pkt_sched.h): interactive, interactive bulk, best effort, bulk. None
// of them needs a capability, and pfifo_fast orders them the same way.
func soPriority(class uint8) int {
	switch {
	case class <= 1:
		return 6
	case class == 2:
		return 4
	case class <= 5:
		return 0
	default:
		return 2
	}
}

// apply marks a socket's outgoing packets. The priority goes last: setting the
// TOS octet changes it.
func (m *Mark) apply(fd int, v6 bool) {
	if m.DSCP != nil {
		tos := int(*m.DSCP) << 2
		if v6 {
			set(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos)
		}
		set(fd, unix.IPPROTO_IP, unix.IP_TOS, tos) // also for IPv4 on a dual-stack socket
	}
	if m.Fwmark != 0 {
		set(fd, unix.SOL_SOCKET, unix.SO_MARK, int(m.Fwmark))
	}
	if p := soPriority(m.Priority); p != 0 || m.DSCP != nil {
		set(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, p)
	}
}

func (m *Mark) equal(o *Mark) bool {
	same := m.DSCP == nil && o.DSCP == nil || m.DSCP != nil && o.DSCP != nil && *m.DSCP == *o.DSCP
	return same && m.Fwmark == o.Fwmark && m.Priority == o.Priority
}

// checkMarks reports marks that this process may not set.
func checkMarks(marks map[string]Mark) error {
	for class, m := range marks {
		if m.Fwmark == 0 {
			continue
		}
		fd, err := streamSocket(netip.IPv4Unspecified())
		if err != nil {
			return fmt.Errorf("create socket: %w", err)
		}
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(m.Fwmark))
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("set fwmark of class %q: %w (needs CAP_NET_ADMIN)", class, err)
		}
	}
	return nil
}

// abort makes the next close of fd send a reset and forget what is queued.
func abort(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// unsent returns the bytes that the peer of fd has not acknowledged.
func unsent(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}
