package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the kernel counts of a packet beside its payload, in bytes.
const (
	ethernetHeader = 14
	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	tcpHeader      = 32 // with timestamps
	mtu            = 1500
)

// ipHeader is the size of the header of packets to an address.
func ipHeader(addr netip.Addr) int {
	if addr.Is4() {
		return ipv4Header
	}
	return ipv6Header
}

// marked sets the DSCP of a socket's packets before its first.
func marked(dscp uint8) func(network, _ string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		level, option := unix.IPPROTO_IP, unix.IP_TOS
		if network[len(network)-1] == '6' {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		var set error
		if err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), level, option, int(dscp)<<2) }); err != nil {
			return err
		}
		if set != nil {
			return fmt.Errorf("set the DSCP: %w", set)
		}
		return nil
	}
}

// network names the protocol with the family of the address.
func network(protocol string, addr netip.Addr) string {
	if addr.Is4() {
		return protocol + "4"
	}
	return protocol + "6"
}

// dial connects from a host.
func (l *Lab) dial(host, protocol string, addr netip.AddrPort, dscp uint8) (c net.Conn, err error) {
	err = l.Do(host, func() error {
		d := net.Dialer{Control: marked(dscp)}
		c, err = d.DialContext(context.Background(), network(protocol, addr.Addr()), addr.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect from %s: %w", host, err)
	}
	return c, nil
}

// listen opens a host's port for TCP.
func (l *Lab) listen(host string, addr netip.AddrPort, dscp uint8) (ln *net.TCPListener, err error) {
	err = l.Do(host, func() error {
		c := net.ListenConfig{Control: marked(dscp)}
		c.SetMultipathTCP(false)
		opened, err := c.Listen(context.Background(), network("tcp", addr.Addr()), addr.String())
		if err == nil {
			ln = opened.(*net.TCPListener)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", host, err)
	}
	return ln, nil
}
