package metrics

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"shaperd/internal/httpd"
)

// limits let a scrape each minute keep its connection.
var limits = httpd.Limits{Connections: 64, Read: 5 * time.Second, Write: 30 * time.Second, Idle: 90 * time.Second}

// A Server serves HTTP on one address.
type Server struct{ *httpd.Server }

// Listen binds addr and serves nothing yet: connections wait in the kernel's
// queue for Run. The caller must call Run or Close.
func Listen(addr netip.AddrPort, h http.Handler) (*Server, error) {
	network := "tcp" // for [::] this is both families
	if addr.Addr().Is4() {
		network = "tcp4" // else 0.0.0.0 would be both too
	}
	listener, err := net.Listen(network, addr.String())
	if errors.Is(err, syscall.EACCES) {
		err = fmt.Errorf("%w (a port below 1024 needs CAP_NET_BIND_SERVICE)", err)
	}
	if err != nil {
		return nil, err
	}
	return &Server{httpd.New(listener, h, limits)}, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() netip.AddrPort {
	return s.Server.Addr().(*net.TCPAddr).AddrPort()
}
