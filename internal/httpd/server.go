package httpd

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// farewell is how long Run waits for requests under way.
const farewell = time.Second

// Limits bound what clients may take.
type Limits struct {
	Connections int           // open at once
	Read, Write time.Duration // of a request with its body; of an answer
	Idle        time.Duration // between two requests of a connection, less when others want its place; 0 allows one request only
}

// A Server serves one listener. Its fields may be changed before Run.
type Server struct {
	HTTP     http.Server
	listener net.Listener
}

// New makes a server of a listener, which it takes over. The caller must call
// Run or Close.
func New(l net.Listener, h http.Handler, limits Limits) *Server {
	s := &Server{listener: limit(l, limits.Connections), HTTP: http.Server{
		Handler:           h,
		ReadHeaderTimeout: limits.Read,
		ReadTimeout:       limits.Read,
		WriteTimeout:      limits.Write,
		IdleTimeout:       limits.Idle,
		MaxHeaderBytes:    16 << 10,
		ConnState:         follow,
		ErrorLog:          log.New(io.Discard, "", 0), // of clients' faults

		DisableGeneralOptionsHandler: true, // OPTIONS * is a request as any other
	}}
	s.HTTP.SetKeepAlivesEnabled(limits.Idle > 0)
	return s
}

// Addr is the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close releases the listener of a server that Run was not called for.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done, gives the requests under way a moment to end,
// and returns nil. It returns an error only when it cannot go on serving.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if s.HTTP.Shutdown(limited) != nil {
			s.HTTP.Close()
		}
	})
	err := s.HTTP.Serve(s.listener)
	if !stop() {
		<-ended
		return nil
	}
	s.HTTP.Close()
	return err
}
