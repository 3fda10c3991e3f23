package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestNoMoreConnectionsAreHandedOutThanTheLimit(t *testing.T) {
	const most, clients = 2, 6
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(ln, most)
	accepted, ended := make(chan net.Conn, clients), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			l.mu.Lock()
			if n := len(l.open); n > most {
				t.Errorf("%d are open", n)
			}
			l.mu.Unlock()
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
		c.Close()
		c.Close() // makes room once
	}
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close = %v", err)
	}
}

// Close wakes an Accept that has somebody and no place for them.
func TestCloseWakesWhoWaitsForAPlace(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(ln, 1)
	for range 2 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept = %v", err)
	}
}

// Clients that keep their connections idle do not keep others out: the one that
// is idle longest is closed. One with a request under way is not.
func TestAnIdleConnectionMakesRoom(t *testing.T) {
	const places = 4
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	s := New(ln, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-leave
		}
	}), Limits{Connections: places, Read: time.Minute, Write: time.Minute, Idle: time.Hour})
	idled := make(chan struct{}, places)
	s.HTTP.ConnState = func(c net.Conn, state http.ConnState) {
		follow(c, state)
		if state == http.StateIdle {
			idled <- struct{}{}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dial := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c, bufio.NewReader(c)
	}
	send := func(c net.Conn, path string) { io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") }
	answer := func(r *bufio.Reader) {
		t.Helper()
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		<-idled // so that they are idle in this order
	}
	busy, busyIn := dial()
	send(busy, "/slow")
	<-entered
	type client struct {
		net.Conn
		in *bufio.Reader
	}
	var idle []client
	for range places - 1 {
		c, in := dial()
		send(c, "/")
		answer(in)
		idle = append(idle, client{c, in})
	}
	for i := range 3 * places {
		c, in := dial()
		send(c, "/")
		answer(in)
		if _, err := idle[0].in.ReadByte(); !errors.Is(err, io.EOF) {
			t.Fatalf("client %d: the one that was idle longest gets %v, want the end", i, err)
		}
		idle = append(idle[1:], client{c, in})
	}
	for _, c := range idle { // these are still served
		send(c, "/")
		answer(c.in)
	}
	close(leave)
	answer(busyIn)
}
