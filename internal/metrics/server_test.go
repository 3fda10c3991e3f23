package metrics

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// serve runs a server for m until the test ends and returns its URL. A nil
// ready is true.
func serve(t *testing.T, m *Metrics, ready func() bool) string {
	t.Helper()
	if ready == nil {
		ready = func() bool { return true }
	}
	s, err := Listen(anyPort, m.Handler(ready))
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

func TestHealthFollowsReadiness(t *testing.T) {
	var ready atomic.Bool
	base := serve(t, New(Build{}, twoClasses, kernelOfTwo), ready.Load)
	get(t, base, "/healthz", http.StatusServiceUnavailable)
	ready.Store(true)
	get(t, base, "/healthz", http.StatusOK)
	ready.Store(false)
	get(t, base, "/healthz", http.StatusServiceUnavailable)
}

func TestIndexNamesWhatIsServed(t *testing.T) {
	base := serve(t, New(Build{}, twoClasses, kernelOfTwo), nil)
	page := get(t, base, "/", http.StatusOK)
	for _, path := range []string{"/metrics", "/healthz"} {
		if !strings.Contains(page, `href="`+path+`"`) {
			t.Errorf("index does not link to %s", path)
		}
		get(t, base, path, http.StatusOK)
	}
	get(t, base, "/other", http.StatusNotFound)
}

func TestListenTakesTheAddressBeforeRun(t *testing.T) {
	s, err := Listen(anyPort, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(s.Addr(), http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("second Listen = %v, want address already in use", err)
	}
	s.Close()
	again, err := Listen(s.Addr(), http.NotFoundHandler())
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
	six, err := net.Listen("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), s.Addr().Port()).String())
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
