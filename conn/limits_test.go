package conn

import (
	"net"
	"testing"

	"shaperd/shaper"
)

func TestSessionsBeyondTheLimitAreRefused(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Limits.Sessions = 3
	r := start(t, cfg)
	var open []*net.TCPConn
	for range 3 {
		c := dialTo(t, r)
		write(t, c, []byte("x"))
		readFull(t, c, 1)
		open = append(open, c)
	}
	wantRefused(t, r, "127.0.0.1")
	until(t, r, "one refused", func(st Stats) bool { return st.Refused[RefusedSessions] == 1 && st.Sessions == 3 })
	open[0].Close()
	until(t, r, "a place free", func(st Stats) bool { return st.Sessions == 2 })
	c := dialTo(t, r)
	write(t, c, []byte("y"))
	readFull(t, c, 1)
}

func TestOneSourceCannotTakeAllSessions(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Limits.SessionsPerSource = 2
	r := start(t, cfg)
	from := func(ip string) *net.TCPConn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c, err := d.Dial("tcp", r.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		for range 2 {
			c := from(ip)
			write(t, c, []byte("x"))
			readFull(t, c, 1)
		}
		wantRefused(t, r, ip)
	}
	until(t, r, "each refused once", func(st Stats) bool { return st.Refused[RefusedSource] == 2 && st.Sessions == 4 })
}

func TestNewConnectionsHaveABucketOfTheirOwn(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Limits.NewPerSecond = 1 // a burst of one, the next a second later
	r := start(t, cfg)
	for range 20 {
		if c, err := net.Dial("tcp", r.Addrs()[0].String()); err == nil {
			defer c.Close()
		}
	}
	until(t, r, "most refused", func(st Stats) bool {
		return st.Accepted == 20 && st.Refused[RefusedRate] > 0 && st.Refused[RefusedRate]+st.Connected == 20
	})
}

func TestPerSessionAndPerSourceLimitsReachTheTrees(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Limits.PerSession, cfg.Limits.PerSource = shaper.Mbit, 2*shaper.Mbit
	r := start(t, cfg)
	c := dialTo(t, r)
	payload := random(7, 20_000)
	go func() { _, _ = c.Write(payload) }()
	readFull(t, c, len(payload))
	st := r.Stats()
	// An unlimited link would move this in one or two grants; 1 mbit has chunks of 500 bytes.
	if st.Upload.Classes[0].Chunks < 20_000/500 || st.Download.Classes[0].Chunks < 20_000/500 {
		t.Fatalf("chunks: %d up, %d down", st.Upload.Classes[0].Chunks, st.Download.Classes[0].Chunks)
	}
}
