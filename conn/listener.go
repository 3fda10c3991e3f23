package conn

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// backlog is what the kernel may queue for us; it cuts it to net.core.somaxconn.
const backlog = 1 << 16

// A listener is one listening socket.
type listener struct {
	want  netip.AddrPort // as configured
	bound netip.AddrPort // as the kernel gave it
	fd    int
	token uint64 // 0 until the loop serves it

	shared bool // another process holds the socket too
}

// listen binds addr. A wildcard IPv6 address also takes IPv4 unless v6only.
func listen(addr netip.AddrPort, v6only bool) (*listener, error) {
	fd, err := streamSocket(addr.Addr())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: create socket: %w", addr, err)
	}
	ln, err := bind(fd, addr, v6only)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return ln, nil
}

// close ends the listener, and a socket that nobody else holds.
func (ln *listener) close(p *poller) {
	if ln.shared && ln.token != 0 {
		_ = p.remove(ln.fd)
	}
	unix.Close(ln.fd)
}

func bind(fd int, addr netip.AddrPort, v6only bool) (*listener, error) {
	set(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if addr.Addr().Is6() {
		only := 0
		if v6only {
			only = 1
		}
		set(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
	}
	if err := unix.Bind(fd, sockaddr(addr)); err != nil {
		return nil, bindAdvice(err, addr)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, bindAdvice(err, addr)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	return &listener{want: addr, bound: addrPort(name), fd: fd}, nil
}

// bindAdvice adds the cure to the errors that an operator can cure.
func bindAdvice(err error, addr netip.AddrPort) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%w (find its owner with: ss -ltnp 'sport = :%d')", err, addr.Port())
	case errors.Is(err, unix.EACCES) && addr.Port() < 1024:
		return fmt.Errorf("%w (a port below 1024 needs CAP_NET_BIND_SERVICE, or sysctl net.ipv4.ip_unprivileged_port_start=%d)", err, addr.Port())
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("%w (no interface of this host has the address)", err)
	}
	return err
}

// adjust sets what accepted sockets inherit; it may be called while serving.
func (ln *listener) adjust(p *policy) {
	set(ln.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	keepAlive(ln.fd, p.Timeouts.Idle)
	if p.acceptBuf > 0 {
		set(ln.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, p.acceptBuf)
	} else {
		set(ln.fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) // what another policy, or process, had set before
	}
	if p.needDSCP {
		_ = saveSYN(ln.fd) // else the handshake's last packet tells, or nothing: counted then
	}
}

// v6Only reports whether the wildcard IPv6 address of list must leave IPv4 to another entry.
func v6Only(addr netip.AddrPort, list []netip.AddrPort) bool {
	for _, a := range list {
		if a.Addr().Is4() && a.Port() == addr.Port() && a.Port() != 0 {
			return true
		}
	}
	return false
}

// addrPort converts what the kernel returned; IPv4 in IPv6 comes out as IPv4.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if a.Is6() && sa.ZoneId != 0 {
			a = a.WithZone(zoneName(sa.ZoneId))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}
