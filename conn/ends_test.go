package conn

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"shaperd/shaper"
)

// random returns n bytes that depend on the seed only.
func random(seed uint64, n int) []byte {
	p := make([]byte, n)
	src := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = src.Read(p)
	return p
}

func TestReplyArrivesAfterTheClientsEndOfStream(t *testing.T) {
	reply := random(1, 300_000)
	r := start(t, forwardTo(serve(t, func(c *net.TCPConn) {
		defer c.Close()
		if got, err := io.ReadAll(c); err != nil || string(got) != "question" {
			t.Errorf("server read %q, %v", got, err)
		}
		_, _ = c.Write(reply)
	})))
	c := dialTo(t, r)
	write(t, c, []byte("question"))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, reply) {
		t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(reply))
	}
	until(t, r, "session done", func(st Stats) bool { return st.Closed[ClosedDone] == 1 && st.Sessions == 0 })
}

func TestClientSpeaksOnAfterTheServersEndOfStream(t *testing.T) {
	heard := make(chan []byte, 1)
	r := start(t, forwardTo(serve(t, func(c *net.TCPConn) {
		defer c.Close()
		_ = c.CloseWrite()
		got, _ := io.ReadAll(c)
		heard <- got
	})))
	c := dialTo(t, r)
	wantEOF(t, c)
	said := random(2, 200_000)
	write(t, c, said)
	c.Close()
	if got := <-heard; !bytes.Equal(got, said) {
		t.Fatalf("server read %d bytes, want %d", len(got), len(said))
	}
}

func TestEndOfStreamComesAfterEveryByteOfAThrottledClass(t *testing.T) {
	payload := random(3, 32_768)
	for _, mode := range []shaper.Mode{shaper.Token, shaper.Leaky} {
		t.Run(mode.String(), func(t *testing.T) {
			cfg := withClasses(forwardTo(serve(t, func(c *net.TCPConn) {
				_, _ = c.Write(payload)
				c.Close()
			})), 2*shaper.Mbit, shaper.Class{Name: "slow", Rate: shaper.Mbit, Ceil: shaper.Mbit, Mode: mode, Default: true})
			c := dialTo(t, start(t, cfg))
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, payload) {
				t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(payload))
			}
		})
	}
}

func TestResetIsPassedOnAsReset(t *testing.T) {
	accepted := make(chan *net.TCPConn, 1)
	cfg := forwardTo(serve(t, func(c *net.TCPConn) { accepted <- c }))
	for _, side := range []string{"client", "upstream"} {
		t.Run(side, func(t *testing.T) {
			r := start(t, cfg)
			client := dialTo(t, r)
			write(t, client, []byte("x"))
			server := <-accepted
			defer server.Close()
			readFull(t, server, 1)
			reason := ClosedClient
			if side == "client" {
				resetNow(t, client)
				wantReset(t, server)
			} else {
				resetNow(t, server)
				wantReset(t, client)
				reason = ClosedUpstream
			}
			until(t, r, "session closed", func(st Stats) bool { return st.Closed[reason] == 1 && st.Sessions == 0 })
		})
	}
}

func TestResetAfterEndOfStreamIsPassedOn(t *testing.T) {
	accepted := make(chan *net.TCPConn, 1)
	r := start(t, forwardTo(serve(t, func(c *net.TCPConn) { accepted <- c })))
	client := dialTo(t, r)
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	server := <-accepted
	defer server.Close()
	wantEOF(t, server)
	resetNow(t, client)
	// A server that only waits to write learns of the reset without writing.
	until(t, r, "reset passed on", func(st Stats) bool { return st.Closed[ClosedClient] == 1 })
	if _, err := server.Write([]byte("x")); err == nil {
		t.Fatal("write to a reset connection succeeded")
	}
}

func TestBytesBeforeAResetAreDelivered(t *testing.T) {
	payload := random(4, 400_000)
	release := make(chan struct{})
	got := make(chan []byte, 1)
	r := start(t, forwardTo(serve(t, func(c *net.TCPConn) {
		defer c.Close()
		<-release
		p, _ := io.ReadAll(c)
		got <- p
	})))
	client := dialTo(t, r)
	write(t, client, payload)
	// All of it is with the relay or behind it before the reset.
	until(t, r, "bytes taken", func(st Stats) bool { return int64(st.Upload.Bytes)+st.Held == int64(len(payload)) })
	resetNow(t, client)
	close(release)
	if p := <-got; !bytes.Equal(p, payload) {
		t.Fatalf("server read %d bytes before the reset, want %d", len(p), len(payload))
	}
}

func TestHalfClosedSessionsEndWhenNothingMoves(t *testing.T) {
	cfg := forwardTo(serve(t, func(c *net.TCPConn) { // never ends its side
		_, _ = io.Copy(io.Discard, c)
	}))
	cfg.Timeouts.HalfClosed = 20 * time.Millisecond
	r := start(t, cfg)
	for range 10 {
		c := dialTo(t, r)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, r, "half-closed sessions ended", func(st Stats) bool { return st.Closed[ClosedHalf] == 10 && st.Sessions == 0 })
}

func TestIdleSessionEnds(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Timeouts.Idle = 20 * time.Millisecond
	r := start(t, cfg)
	c := dialTo(t, r)
	wantReset(t, c)
	until(t, r, "idle session ended", func(st Stats) bool { return st.Closed[ClosedIdle] == 1 })
}

func TestThrottledTimeIsNotIdleTime(t *testing.T) {
	payload := random(5, 4_000)
	cfg := limited(forwardTo(serve(t, func(c *net.TCPConn) {
		_, _ = c.Write(payload)
		c.Close()
	})), shaper.Mbit/4)
	cfg.Timeouts.Idle = 30 * time.Millisecond // less than the wait between two of its turns
	r := start(t, cfg)
	var list []*net.TCPConn
	for range 8 {
		list = append(list, dialTo(t, r))
	}
	for _, c := range list {
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(payload))
		}
	}
}

func TestReaderThatNeverReadsHoldsLittleAndIsEnded(t *testing.T) {
	cfg := forwardTo(serve(t, func(c *net.TCPConn) {
		defer c.Close()
		p := make([]byte, 1<<20)
		for {
			if _, err := c.Write(p); err != nil {
				return
			}
		}
	}))
	cfg.Timeouts.Idle = 200 * time.Millisecond
	r := start(t, cfg)
	dialTo(t, r)
	st := until(t, r, "stalled session ended", func(st Stats) bool {
		if st.Held > pipeSize {
			t.Fatalf("the relay holds %d bytes for a reader that never reads", st.Held)
		}
		return st.Closed[ClosedIdle] == 1
	})
	if st.Held != 0 || st.Sessions != 0 {
		t.Fatalf("after its end: held %d, sessions %d", st.Held, st.Sessions)
	}
}

func TestDrainLetsSessionsEnd(t *testing.T) {
	r, err := New(forwardTo(serve(t, echo)), nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := r.Addrs()[0].String()
	drain := run(t, r)
	c := dialTo(t, r)
	write(t, c, []byte("before"))
	readFull(t, c, 6)
	drain()
	until(t, r, "listener closed", func(Stats) bool { return r.Addrs() == nil })
	if late, err := net.Dial("tcp", addr); err == nil {
		late.Close()
		t.Fatal("a draining relay took a connection")
	}
	write(t, c, []byte("during"))
	readFull(t, c, 6)
	c.Close()
	<-r.done
	if st := r.Stats(); st.Closed[ClosedDone] != 1 || st.Sessions != 0 {
		t.Fatalf("after the drain: %+v", st)
	}
}

func TestDrainResetsWhatIsLeftAtItsDeadline(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	cfg.Timeouts.Drain = 0
	r, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	c := dialTo(t, r)
	write(t, c, []byte("hello"))
	readFull(t, c, 5)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantReset(t, c)
	if st := r.Stats(); st.Closed[ClosedShutdown] != 1 {
		t.Fatalf("closed %v", st.Closed)
	}
}

func TestServerThatSpeaksFirstIsHeard(t *testing.T) {
	r := start(t, forwardTo(serve(t, func(c *net.TCPConn) {
		defer c.Close()
		_, _ = c.Write([]byte("220 ready"))
		_, _ = io.Copy(io.Discard, c)
	})))
	for range 200 { // the greeting may come with the event that says connected
		c := dialTo(t, r)
		readFull(t, c, 9)
		c.Close()
	}
}

func TestEndOfStreamBeforeTheUpstreamAnswersIsPassedOn(t *testing.T) {
	said := random(10, 5000)
	heard := make(chan []byte)
	host, port := hostPort(t, serve(t, func(c *net.TCPConn) {
		defer c.Close()
		got, _ := io.ReadAll(c)
		heard <- got
	}))
	r := start(t, socksRelay())
	for range 50 { // request, data and end are there before the relay has dialled
		c := dialTo(t, r)
		write(t, c, append(append([]byte{5, 1, 0}, request5(host, port)...), said...))
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; !bytes.Equal(got, said) {
			t.Fatalf("server read %d bytes, want %d", len(got), len(said))
		}
	}
}
