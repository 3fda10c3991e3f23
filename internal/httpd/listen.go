package httpd

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// Listen binds addr and serves nothing yet: connections wait in the kernel's
// queue for Run. The caller must call Run or Close.
func Listen(addr netip.AddrPort, h http.Handler, limits Limits) (*Server, error) {
	network := "tcp" // for [::] this is both families
	if addr.Addr().Is4() {
		network = "tcp4" // else 0.0.0.0 would be both too
	}
	listener, err := net.Listen(network, addr.String())
	switch {
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w (a port below 1024 needs CAP_NET_BIND_SERVICE)", err)
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("%w (find its owner with: ss -ltnp 'sport = :%d')", err, addr.Port())
	}
	if err != nil {
		return nil, err
	}
	return New(listener, h, limits), nil
}

// AddrPort is the address that was bound, of a Server that Listen made.
func (s *Server) AddrPort() netip.AddrPort { return s.Addr().(*net.TCPAddr).AddrPort() }
