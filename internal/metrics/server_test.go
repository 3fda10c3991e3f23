package metrics

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// healthy is the health of a daemon that has nothing to complain of.
var healthy = Health{
	Alive: func(context.Context) error { return nil },
	Ready: func(context.Context) error { return nil },
}

// serve runs a server for h until the test ends and returns its URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s, err := Listen(anyPort, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}

func get(t *testing.T, base, path string, wantStatus int) string {
	t.Helper()
	resp, err := http.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != wantStatus {
		t.Errorf("GET %s: status %d, %v, want %d", path, resp.StatusCode, err, wantStatus)
	}
	return string(body)
}

func TestListenTakesTheAddressBeforeRun(t *testing.T) {
	s, err := Listen(anyPort, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(s.AddrPort(), http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "address already in use (find its owner with: ss -ltnp ") {
		t.Errorf("second Listen = %v, want address already in use, and how to find who has it", err)
	}
	s.Close()
	again, err := Listen(s.AddrPort(), http.NotFoundHandler())
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	again.Close()
}

func TestIPv4WildcardLeavesIPv6Alone(t *testing.T) {
	s, err := Listen(netip.MustParseAddrPort("0.0.0.0:0"), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	six, err := net.Listen("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), s.AddrPort().Port()).String())
	if err != nil {
		t.Fatalf("port is taken on IPv6 too: %v", err)
	}
	six.Close()
}

func TestRunEndsWhileAClientHoldsItsConnection(t *testing.T) {
	s, err := Listen(anyPort, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	client, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(client)
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
