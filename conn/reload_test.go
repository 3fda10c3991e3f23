package conn

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/shaper"
)

func TestReloadMovesASessionToItsNewClass(t *testing.T) {
	cfg := withClasses(forwardTo(serve(t, echo)), 0, shaper.Class{Name: "a", Default: true}, shaper.Class{Name: "b"})
	r := start(t, cfg)
	c := dialTo(t, r)
	write(t, c, []byte("12"))
	readFull(t, c, 2)
	next := cfg
	next.Rules.List = []classify.Rule{rule("b", classify.Match{Proto: []classify.Protocol{classify.TCP}})}
	cs5 := classify.DSCP(40)
	next.Marks = map[string]Mark{"b": {DSCP: &cs5}}
	if err := r.Update(next); err != nil {
		t.Fatal(err)
	}
	write(t, c, []byte("345"))
	readFull(t, c, 3)
	st := r.Stats()
	for _, link := range []shaper.LinkStats{st.Upload, st.Download} {
		if a, b := link.Classes[0], link.Classes[1]; a.Bytes != 2 || a.Queues != 0 || b.Bytes != 3 || b.Queues != 1 {
			t.Fatalf("%s: a %d bytes in %d queues, b %d in %d", link.Name, a.Bytes, a.Queues, b.Bytes, b.Queues)
		}
	}
	inspect(t, r, func(s *session) {
		if tos, err := unix.GetsockoptInt(s.server, unix.IPPROTO_IP, unix.IP_TOS); err != nil || tos != int(cs5)<<2 {
			t.Errorf("TOS after the reload %#x, %v", tos, err)
		}
	})
}

func TestReloadReachesASessionThatWaits(t *testing.T) {
	payload := random(9, 2<<20)
	cfg := limited(forwardTo(serve(t, func(c *net.TCPConn) {
		_, _ = c.Write(payload)
		c.Close()
	})), 8*shaper.Kbit) // half an hour at this rate
	r := start(t, cfg)
	c := dialTo(t, r)
	readFull(t, c, 256)
	if err := r.Update(limited(cfg, shaper.Gbit)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || len(got) != len(payload)-256 {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
}

func TestReloadTouchesOnlyTheListenersThatChanged(t *testing.T) {
	cfg := forwardTo(serve(t, echo))
	second := netip.MustParseAddrPort("127.0.0.2:0")
	cfg.Listen = []netip.AddrPort{loopback, second}
	r := start(t, cfg)
	before := r.Addrs()
	third := netip.MustParseAddrPort("127.0.0.3:0")
	cfg.Listen = []netip.AddrPort{loopback, third}
	if err := r.Update(cfg); err != nil {
		t.Fatal(err)
	}
	after := r.Addrs()
	if len(after) != 2 || after[0] != before[0] || after[1].Addr() != third.Addr() {
		t.Fatalf("listeners %v, before %v", after, before)
	}
	if c, err := net.Dial("tcp", before[1].String()); err == nil {
		c.Close()
		t.Fatal("the removed listener takes connections")
	}
	for _, addr := range after {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		write(t, c, []byte("x"))
		readFull(t, c, 1)
		c.Close()
	}
}

func TestFailedReloadChangesNothing(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := withClasses(forwardTo(serve(t, echo)), 0, shaper.Class{Name: "a", Default: true}, shaper.Class{Name: "b"})
	r := start(t, cfg)
	before, open := r.Addrs(), descriptors(t)
	bad := cfg
	bad.Rules.List = []classify.Rule{rule("b", classify.Match{})}
	bad.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.4:0"), netip.MustParseAddrPort(taken.Addr().String())}
	if err := r.Update(bad); !errors.Is(err, unix.EADDRINUSE) {
		t.Fatalf("error %v", err)
	}
	if now := descriptors(t); now > open {
		t.Fatalf("%d descriptors before, %d after", open, now)
	}
	if got := r.Addrs(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Fatalf("listeners %v, before %v", got, before)
	}
	c := dialTo(t, r)
	write(t, c, []byte("x"))
	readFull(t, c, 1)
	if st := r.Stats(); st.Upload.Classes[0].Bytes != 1 {
		t.Fatal("the refused rules are in force")
	}
}

// A session of the torture test: what each side sends, and how it ends.
type script struct {
	seed      uint64
	up, down  int  // bytes
	reset     bool // by the client, once everything has arrived
	halfClose bool
}

// Nothing accepted is lost: random data in both directions, in random pieces,
// with half-closes, resets and stalled readers, while the relay reloads.
func TestNothingIsLostWhileReloading(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const sessions = 60
	scripts := make([]script, sessions)
	for i := range scripts {
		scripts[i] = script{
			seed: rng.Uint64(), up: rng.IntN(600_000), down: rng.IntN(600_000),
			reset: rng.IntN(5) == 0, halfClose: rng.IntN(2) == 0,
		}
	}
	// The client's first two bytes name the script.
	addr := serve(t, func(c *net.TCPConn) {
		defer c.Close()
		var id [2]byte
		if _, err := io.ReadFull(c, id[:]); err != nil {
			t.Errorf("server: %v", err)
			return
		}
		s := &scripts[int(id[0])<<8|int(id[1])]
		if err := exchange(c, s.seed+1, s.down, s.seed, s.up, false); err != nil {
			t.Errorf("server of session %d: %v", int(id[0])<<8|int(id[1]), err)
		}
		if _, err := c.Write([]byte("k")); err != nil { // all has arrived
			t.Errorf("server: %v", err)
		}
		if !s.reset {
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		} else if _, err := c.Read(id[:]); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("server of session: %v, want a reset", err)
		}
	})
	slow := shaper.Class{Name: "a", Rate: 80 * shaper.Mbit, Ceil: 300 * shaper.Mbit, Default: true}
	leaky := shaper.Class{Name: "b", Rate: 40 * shaper.Mbit, Ceil: 40 * shaper.Mbit, Mode: shaper.Leaky}
	configs := []Config{
		withClasses(forwardTo(addr), 0, shaper.Class{Name: "all", Default: true}),
		withClasses(forwardTo(addr), 400*shaper.Mbit, slow, leaky),
		withClasses(forwardTo(addr), 200*shaper.Mbit, leaky, slow),
		forwardTo(addr),
	}
	configs[2].Rules.List = []classify.Rule{rule("b", classify.Match{Proto: []classify.Protocol{classify.TCP}})}
	configs[3].Limits.PerSession, configs[3].Limits.PerSource = 90*shaper.Mbit, 350*shaper.Mbit
	r := start(t, configs[0])

	finished := make(chan struct{})
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-finished:
				return
			default:
				if err := r.Update(configs[i%len(configs)]); err != nil {
					t.Errorf("reload: %v", err)
					return
				}
			}
		}
	})
	var clients sync.WaitGroup
	for i := range scripts {
		s := &scripts[i]
		c := dialTo(t, r)
		clients.Go(func() {
			defer c.Close()
			if _, err := c.Write([]byte{byte(i >> 8), byte(i)}); err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			if err := exchange(c, s.seed, s.up, s.seed+1, s.down, true); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			if s.reset {
				_ = c.SetLinger(0)
				return
			}
			if s.halfClose {
				_ = c.CloseWrite()
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("client %d: %v, want an end of stream", i, err)
			}
		})
	}
	clients.Wait()
	close(finished)
	reloads.Wait()
	st := until(t, r, "all ended", func(st Stats) bool { return st.Sessions == 0 })
	if st.Held != 0 || st.Connected != sessions {
		t.Fatalf("held %d, connected %d", st.Held, st.Connected)
	}
}

// exchange sends and receives at once in random pieces, and stalls in reading if
// asked to, and compares the hash of what came with that of what was sent.
func exchange(c net.Conn, sendSeed uint64, send int, wantSeed uint64, want int, stalls bool) error {
	var sent error
	var wg sync.WaitGroup
	wg.Go(func() {
		rng, data := rand.New(rand.NewPCG(sendSeed, 2)), random(sendSeed, send)
		for len(data) > 0 && sent == nil {
			n := min(len(data), 1+rng.IntN(1<<(1+rng.IntN(17))))
			_, sent = c.Write(data[:n])
			data = data[n:]
		}
	})
	rng, hash, buf := rand.New(rand.NewPCG(sendSeed, 3)), sha256.New(), make([]byte, 1<<17)
	var got int
	var err error
	for got < want && err == nil {
		if stalls && got < want/2 && rng.IntN(8) == 0 {
			wg.Wait() // stall: read nothing until everything is sent
		}
		var n int
		n, err = c.Read(buf[:min(want-got, 1+rng.IntN(len(buf)))])
		hash.Write(buf[:n])
		got += n
	}
	wg.Wait()
	if sent != nil || err != nil {
		return fmt.Errorf("after %d of %d bytes: send %w, receive %w", got, want, sent, err)
	}
	if [32]byte(hash.Sum(nil)) != sha256.Sum256(random(wantSeed, want)) {
		return fmt.Errorf("%d bytes arrived changed", want)
	}
	return nil
}
