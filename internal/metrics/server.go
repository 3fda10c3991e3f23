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

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// maxScrapes is how many scrapes may run at once; others get status 503.
	maxScrapes = 8
	// farewell is how long Run waits for scrapes to end.
	farewell = time.Second
)

const index = `<!doctype html>
<title>shaperd</title>
<h1>shaperd</h1>
<p><a href="/metrics">/metrics</a> for Prometheus</p>
<p><a href="/healthz">/healthz</a> is 200 while traffic is served</p>
`

// Handler serves /metrics, /healthz (200 when ready returns true, else 503)
// and an index page.
func (m *Metrics) Handler(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, index)
	})
	return mux
}

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
	return &Server{listener, http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
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
