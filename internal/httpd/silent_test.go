package httpd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// serveTest runs a server until the test ends.
func serveTest(t *testing.T, places int, h http.HandlerFunc) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(ln, h, Limits{Connections: places, Read: time.Hour, Write: time.Hour, Idle: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func dialTest(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func get(c net.Conn) error {
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		a.Body.Close()
	}
	return err
}

// Clients that say nothing keep nobody out, though they may be silent for an hour.
func TestASilentConnectionMakesRoom(t *testing.T) {
	const places = 4
	addr := serveTest(t, places, func(http.ResponseWriter, *http.Request) {})
	for range 3 * places {
		dialTest(t, addr)
	}
	if err := get(dialTest(t, addr)); err != nil {
		t.Errorf("one who speaks: %v", err)
	}
}

// Many who come at once and speak are all served: none is taken for silent.
func TestManyWhoComeAtOnceAreServed(t *testing.T) {
	const places = 4
	addr := serveTest(t, places, func(http.ResponseWriter, *http.Request) {})
	var all sync.WaitGroup
	for range 50 * places {
		c := dialTest(t, addr)
		all.Go(func() {
			defer c.Close()
			if err := get(c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
