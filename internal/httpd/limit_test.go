package httpd

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
)

// A watched listener objects to being asked for a connection while so many are open.
type watched struct {
	net.Listener
	t    *testing.T
	open atomic.Int32
	most int32
}

func (w *watched) Accept() (net.Conn, error) {
	if n := w.open.Load(); n >= w.most {
		w.t.Errorf("asked for another while %d are open", n)
	}
	c, err := w.Listener.Accept()
	if err == nil {
		w.open.Add(1)
	}
	return c, err
}

func TestNoMoreConnectionsAreAcceptedThanTheLimit(t *testing.T) {
	const most, clients = 2, 6
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Listener: ln, t: t, most: most}
	l := limit(w, most)
	accepted, ended := make(chan net.Conn, clients), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range clients {
		c, err := net.Dial("tcp", ln.Addr().String()) // the kernel takes it, accepted or not
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	for i := range clients {
		c := <-accepted
		if i >= clients-most {
			t.Cleanup(func() { c.Close() })
			continue // it is full now
		}
		w.open.Add(-1)
		c.Close()
		c.Close() // makes room once
	}
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close = %v", err)
	}
}
