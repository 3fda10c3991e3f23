package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	// maxConnections is how many may be open at once; others wait in the kernel's queue.
	maxConnections = 64
	// farewell is how long Run waits for scrapes to end.
	farewell = time.Second
)

// A Server serves HTTP on one address.
type Server struct {
	listener net.Listener
	http     http.Server
}

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
	return &Server{limit(listener, maxConnections), http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second, // a scrape each minute keeps its connection
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // of clients' faults
	}}, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() netip.AddrPort {
	return s.listener.Addr().(*net.TCPAddr).AddrPort()
}

// Close releases the address of a server that Run was not called for.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done, gives the scrapes under way a moment to end,
// and returns nil. It returns an error only when it cannot go on serving.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if s.http.Shutdown(limited) != nil {
			s.http.Close()
		}
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		<-ended
		return nil
	}
	s.http.Close()
	return err
}
