package conn

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/shaper"
)

// dscpConfig sends ef to the class voice, what goes to port 9 to discard, and all else to rest.
func dscpConfig(t testing.TB) Config {
	cfg := withClasses(forwardTo(serve(t, echo)), 0,
		shaper.Class{Name: "voice"}, shaper.Class{Name: "rest", Default: true})
	cfg.Rules.List = []classify.Rule{rule("voice", classify.Match{DSCP: []classify.DSCP{46}})}
	return cfg
}

// dialMarked connects with a TOS octet on the SYN.
func dialMarked(t testing.TB, addr netip.AddrPort, tos int) net.Conn {
	t.Helper()
	d := net.Dialer{Control: func(network, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			if network == "tcp6" {
				set(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos)
			} else {
				set(int(fd), unix.IPPROTO_IP, unix.IP_TOS, tos)
			}
		})
	}}
	c, err := d.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestClassFollowsTheClientsDSCP(t *testing.T) {
	cfg := dscpConfig(t)
	cfg.Listen = []netip.AddrPort{loopback, netip.MustParseAddrPort("[::1]:0"), netip.MustParseAddrPort("[::]:0")}
	r := start(t, cfg)
	addrs := r.Addrs()
	mapped := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), addrs[2].Port()) // IPv4 client of a dual-stack listener
	for i, addr := range []netip.AddrPort{addrs[0], addrs[1], mapped} {
		c := dialMarked(t, addr, 46<<2|2) // with an ECN bit: only the upper six count
		write(t, c, []byte("x"))
		readFull(t, c, 1)
		st := r.Stats()
		if got := st.Upload.Classes[0]; got.Name != "voice" || got.Bytes != uint64(i+1) {
			t.Fatalf("%s: class %s has %d bytes, want %d", addr, got.Name, got.Bytes, i+1)
		}
	}
	c := dialTo(t, r)
	write(t, c, []byte("x"))
	readFull(t, c, 1)
	if st := r.Stats(); st.Upload.Classes[1].Bytes != 1 || st.DSCPUnknown != 0 {
		t.Fatalf("unmarked client: %+v", st)
	}
}

func TestDSCPOfASYNThatWasNotSaved(t *testing.T) {
	for _, listenOn := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		t.Run(listenOn, func(t *testing.T) {
			ln, err := listen(netip.MustParseAddrPort(listenOn), false) // TCP_SAVE_SYN is not set
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(ln.fd)
			to := ln.bound
			if listenOn == "[::]:0" {
				to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
			}
			dialMarked(t, to, 46<<2)
			var peer unix.RawSockaddrAny
			size := uint32(unix.SizeofSockaddrAny)
			fd, e := sysAccept(ln.fd, &peer, &size)
			if e != 0 {
				t.Fatal(e)
			}
			defer unix.Close(fd)
			if d, ok := clientDSCP(fd, to.Addr().Is4(), make([]byte, 512)); !ok || d != 46 {
				t.Fatalf("DSCP %d, %v; want 46 from the handshake's last packet", d, ok)
			}
		})
	}
}

func TestClassFollowsTheDestinationOfASocksRequest(t *testing.T) {
	host, port := hostPort(t, serve(t, echo))
	_, other := hostPort(t, serve(t, echo))
	cfg := withClasses(socksRelay(), 0, shaper.Class{Name: "named"}, shaper.Class{Name: "rest", Default: true})
	cfg.Rules.List = []classify.Rule{rule("named", classify.Match{DPort: []classify.PortRange{{First: port, Last: port}}})}
	r := start(t, cfg)
	for i, p := range []uint16{port, other} {
		c := dialTo(t, r)
		if code := openSocks(t, c, host, p); code != replyOK {
			t.Fatalf("reply %#x", code)
		}
		write(t, c, []byte("abc"))
		readFull(t, c, 3)
		if st := r.Stats(); st.Upload.Classes[i].Bytes != 3 || st.Download.Classes[i].Bytes != 3 {
			t.Fatalf("class %d: %+v", i, st.Upload.Classes)
		}
	}
}

func TestMarksOfTheClassAreSetOnBothSockets(t *testing.T) {
	// The upstream is a listener that keeps SYNs: it sees the mark as the network would.
	up, err := listen(loopback, false)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(up.fd)
	if err := saveSYN(up.fd); err != nil {
		t.Fatal(err)
	}
	set(up.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, 0)
	if err := unix.SetNonblock(up.fd, false); err != nil {
		t.Fatal(err)
	}
	cs1 := classify.DSCP(8)
	cfg := withClasses(forwardTo(up.bound.String()), 0, shaper.Class{Name: "bulk", Default: true})
	cfg.Marks = map[string]Mark{"bulk": {DSCP: &cs1, Fwmark: 7, Priority: 7}}
	r := start(t, cfg)
	dialTo(t, r)
	fd, _, err := unix.Accept(up.fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if d, ok := clientDSCP(fd, true, make([]byte, 512)); !ok || d != cs1 {
		t.Fatalf("the upstream's SYN has DSCP %d, %v; want %d", d, ok, cs1)
	}
	until(t, r, "connected", func(st Stats) bool { return st.Connected == 1 })
	inspect(t, r, func(s *session) {
		for side, fd := range map[string]int{"client": s.client, "upstream": s.server} {
			for opt, want := range map[int]int{unix.SO_MARK: 7, unix.SO_PRIORITY: 2} {
				if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, opt); err != nil || got != want {
					t.Errorf("%s socket: option %d is %d, %v; want %d", side, opt, got, err, want)
				}
			}
			if got, err := unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS); err != nil || got != int(cs1)<<2 {
				t.Errorf("%s socket: TOS %#x, %v", side, got, err)
			}
		}
	})
}

func TestVanishedPeersAreLookedFor(t *testing.T) {
	r := start(t, forwardTo(serve(t, echo)))
	dialTo(t, r)
	until(t, r, "connected", func(st Stats) bool { return st.Connected == 1 })
	inspect(t, r, func(s *session) {
		s.since -= (keepIdle + 1) * time.Second // as if it had lasted
		r.loop.checkIdle(s)
		for side, fd := range map[string]int{"client": s.client, "upstream": s.server} {
			for name, o := range map[string][3]int{
				"SO_KEEPALIVE": {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
				"TCP_KEEPIDLE": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle},
				"TCP_NODELAY":  {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			} {
				if got, err := unix.GetsockoptInt(fd, o[0], o[1]); err != nil || got != o[2] {
					t.Errorf("%s socket: %s = %d, %v; want %d", side, name, got, err, o[2])
				}
			}
		}
	})
}

func TestNoDescriptorOutlivesItsSession(t *testing.T) {
	if !asChild(t) { // no other test's descriptors come and go
		inChild(t, nil)
		return
	}
	r := start(t, forwardTo(serve(t, echo)))
	before := descriptors(t)
	const sessions = 40
	var list []*net.TCPConn
	for range sessions {
		c := dialTo(t, r)
		write(t, c, []byte("x"))
		readFull(t, c, 1)
		list = append(list, c)
	}
	// Each costs the test two more: the client's end and the server's.
	if got, want := descriptors(t)-before, 4*sessions; got != want {
		t.Errorf("%d idle sessions hold %d descriptors, want %d", sessions, got, want)
	}
	for _, c := range list {
		c.Close()
	}
	until(t, r, "all ended", func(st Stats) bool { return st.Sessions == 0 })
}

func TestPipesAreHeldOnlyWhileBytesMove(t *testing.T) {
	payload := random(8, 8<<20)
	r := start(t, forwardTo(serve(t, echo)))
	c := dialTo(t, r)
	go func() { _, _ = c.Write(payload); _ = c.CloseWrite() }()
	if got := readFull(t, c, len(payload)); string(got) != string(payload) {
		t.Fatal("bytes changed on the way")
	}
	wantEOF(t, c)
	r.do(func() {
		if p := &r.loop.pipes; p.made == 0 || len(p.free) != p.made {
			t.Errorf("%d pipes made, %d back in the pool", p.made, len(p.free))
		}
	})
}

func TestBulkIsCopiedWhenThereAreNoPipes(t *testing.T) {
	payload := random(11, 8<<20)
	r := start(t, forwardTo(serve(t, echo)))
	r.do(func() { r.loop.pipes.made = maxPipes })
	c := dialTo(t, r)
	go func() { _, _ = c.Write(payload); _ = c.CloseWrite() }()
	if got := readFull(t, c, len(payload)); string(got) != string(payload) {
		t.Fatal("bytes changed on the way")
	}
	wantEOF(t, c)
}

func TestBytesAreCountedAsTheyMove(t *testing.T) {
	r := start(t, forwardTo(serve(t, echo)))
	c := dialTo(t, r)
	for i := 1; i <= 3; i++ {
		write(t, c, make([]byte, 1000))
		readFull(t, c, 1000)
		if st := r.Stats(); st.Upload.Bytes != uint64(i)*1000 || st.Download.Bytes != uint64(i)*1000 {
			t.Fatalf("after %d kB: %d up, %d down", i, st.Upload.Bytes, st.Download.Bytes)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	r, err := New(forwardTo("127.0.0.1:1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(forwardTo("127.0.0.1:1")); err == nil {
		t.Fatal("an ended relay took an update")
	}
}
