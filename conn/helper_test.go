package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/shaper"
)

// loopback is an address whose port the kernel chooses.
var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// patient timeouts never fire in a test that passes.
var patient = Timeouts{Handshake: time.Minute, Connect: time.Minute, Idle: time.Hour, HalfClosed: time.Hour, Drain: time.Minute}

// forwardTo is an unlimited relay to the upstreams.
func forwardTo(upstream ...string) Config {
	return Config{
		Name: "test", Kind: Forward, Listen: []netip.AddrPort{loopback}, Upstream: upstream, Timeouts: patient,
		Upload: shaper.Link{Name: "relay test upload"}, Download: shaper.Link{Name: "relay test download"},
	}
}

// socksRelay is an unlimited SOCKS5 relay.
func socksRelay() Config {
	cfg := forwardTo()
	cfg.Kind = SOCKS5
	return cfg
}

// limited gives both links of cfg one class with a hard cap.
func limited(cfg Config, rate shaper.Rate) Config {
	return withClasses(cfg, rate, shaper.Class{Name: "only", Rate: rate, Ceil: rate, Default: true})
}

// withClasses gives both links of cfg the rate and the classes; the rules send all to the default.
func withClasses(cfg Config, rate shaper.Rate, classes ...shaper.Class) Config {
	cfg.Upload.Rate, cfg.Upload.Classes = rate, classes
	cfg.Download.Rate, cfg.Download.Classes = rate, classes
	for _, c := range classes {
		if c.Default {
			cfg.Rules.Default = c.Name
		}
	}
	return cfg
}

// rule sends what matches to the class.
func rule(class string, m classify.Match) classify.Rule { return classify.Rule{Class: class, Match: m} }

// start runs a relay until the test ends.
func start(t testing.TB, cfg Config) *Relay {
	t.Helper()
	r, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	return r
}

// run serves r until the test ends and returns what ends it earlier: a drain.
func run(t testing.TB, r *Relay) (drain func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		r.loop.post(func() { r.loop.deadline = 0; r.loop.draining = true })
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return cancel
}

// serve accepts connections for as long as the test runs and hands each to handle, which owns it.
func serve(t testing.TB, handle func(*net.TCPConn)) string {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", handle)
}

// serveOn is serve on a given address.
func serveOn(t testing.TB, addr string, handle func(*net.TCPConn)) string {
	t.Helper()
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		var kept []net.Conn // one that is forgotten would be closed
		defer func() {
			for _, c := range kept {
				c.Close()
			}
		}()
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, which a test may bring about
				runtime.Gosched()
				continue
			}
			kept = append(kept, c)
			go handle(c.(*net.TCPConn))
		}
	}()
	return ln.Addr().String()
}

// echo sends back what it gets, and ends its stream after the client's end.
func echo(c *net.TCPConn) {
	defer c.Close()
	_, _ = io.Copy(c, struct{ io.Reader }{c}) // not spliced: that would hold pipes
	_ = c.CloseWrite()
}

// dialTo connects to the relay's first listener.
func dialTo(t testing.TB, r *Relay) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func write(t testing.TB, c net.Conn, p []byte) {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func readFull(t testing.TB, c net.Conn, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(c, p); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	return p
}

// wantEOF demands that the stream ends here, and by an end of stream.
func wantEOF(t testing.TB, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read = %d, %v; want an end of stream", n, err)
	}
}

// wantReset demands that the connection has been, or is going to be, reset.
func wantReset(t testing.TB, c net.Conn) {
	t.Helper()
	p := make([]byte, 64<<10)
	for {
		if _, err := c.Read(p); err != nil {
			if !errors.Is(err, unix.ECONNRESET) {
				t.Fatalf("read: %v; want a reset", err)
			}
			return
		}
	}
}

// wantRefused demands that the relay resets a new connection from the address ip.
func wantRefused(t testing.TB, r *Relay, ip string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.Dial("tcp", r.Addrs()[0].String())
	if errors.Is(err, unix.ECONNRESET) {
		return // before connect returned
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantReset(t, c)
}

// resetNow makes c send a reset.
func resetNow(t testing.TB, c *net.TCPConn) {
	t.Helper()
	if err := c.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// until waits for the relay to be in a state that it must come to by itself.
// It looks again whenever the loop has finished a turn.
func until(t testing.TB, r *Relay, what string, ok func(Stats) bool) Stats {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		st := r.Stats()
		if ok(st) {
			return st
		}
		if time.Now().After(deadline) {
			t.Fatalf("never came to: %s; stats %+v", what, st)
		}
	}
}

// inspect runs f on the relay's only session, in the loop.
func inspect(t testing.TB, r *Relay, f func(*session)) {
	t.Helper()
	found := 0
	r.do(func() {
		for _, s := range r.loop.slots {
			if s.client >= 0 {
				found++
				f(s)
			}
		}
	})
	if found != 1 {
		t.Fatalf("%d sessions, want 1", found)
	}
}
