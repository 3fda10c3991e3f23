package conn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// descriptors counts what this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// closedPort is an address that refuses connections.
func closedPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestNextUpstreamIsTriedAndFailuresAreCounted(t *testing.T) {
	away := closedPort(t)
	r := start(t, forwardTo(away, "no-such-host.invalid:80", serve(t, echo)))
	for range 3 {
		c := dialTo(t, r)
		write(t, c, []byte("x"))
		readFull(t, c, 1)
	}
	st := r.Stats()
	if st.UpstreamFailures[away] == 0 || st.UpstreamFailures["no-such-host.invalid:80"] == 0 || st.Connected != 3 {
		t.Fatalf("failures %v, connected %d", st.UpstreamFailures, st.Connected)
	}
}

func TestUpstreamIsUpAfterItsLastAttemptOnly(t *testing.T) {
	addr := closedPort(t)
	r := start(t, forwardTo(addr))
	if up, known := r.Stats().UpstreamUp[addr]; !up || !known {
		t.Errorf("before the first attempt: up %v", up)
	}
	wantRefused(t, r, "127.0.0.1")
	until(t, r, "down", func(st Stats) bool { return !st.UpstreamUp[addr] })
	serveOn(t, addr, echo)
	c := dialTo(t, r)
	write(t, c, []byte("x"))
	readFull(t, c, 1)
	if !r.Stats().UpstreamUp[addr] {
		t.Error("down after it took a connection")
	}
}

func TestUpstreamInBackoffIsTriedLastButIsTried(t *testing.T) {
	r := start(t, forwardTo("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"))
	r.do(func() {
		l := r.loop
		l.tick()
		for i, pause := range []time.Duration{3 * time.Hour, 0, time.Hour} {
			if l.upstreams[i].until = 0; pause > 0 {
				l.upstreams[i].until = l.now + pause
			}
		}
		var order []string
		for _, u := range l.candidates() {
			order = append(order, u.name)
		}
		if got := fmt.Sprint(order); got != "[127.0.0.1:2 127.0.0.1:3 127.0.0.1:1]" {
			t.Errorf("order %s", got)
		}
	})
}

func TestBackoffGrowsWithJitterToItsMaximum(t *testing.T) {
	u := &upstream{}
	var longest time.Duration
	for i := range 40 {
		u.failed(0)
		base := min(backoffMin<<min(i, 16), backoffMax)
		if u.until < base/2 || u.until >= base/2+base {
			t.Fatalf("failure %d: backoff %v, want %v ± 50 %%", i+1, u.until, base)
		}
		longest = max(longest, u.until)
	}
	if longest < backoffMax/2 {
		t.Fatalf("never longer than %v", longest)
	}
	if u.worked(); u.until != 0 || u.failures != 0 {
		t.Fatal("success does not end the backoff")
	}
}

func TestClientIsResetAtOnceWhenNoUpstreamIsLeft(t *testing.T) {
	r := start(t, forwardTo(closedPort(t), closedPort(t)))
	wantRefused(t, r, "127.0.0.1")
	until(t, r, "refused", func(st Stats) bool { return st.Refused[RefusedConnect] == 1 && st.Sessions == 0 })
}

func TestUpstreamNameWithoutAddress(t *testing.T) {
	r := start(t, forwardTo("no-such-host.invalid:80"))
	wantRefused(t, r, "127.0.0.1")
	until(t, r, "refused", func(st Stats) bool { return st.Refused[RefusedResolve] == 1 && st.Sessions == 0 })
}

func TestUpstreamThatDoesNotAnswerIsGivenUp(t *testing.T) {
	// A full accept queue drops SYNs: the kernel's own black hole.
	fd, err := streamSocket(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, sockaddr(loopback)), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	hole := addrPort(name).String()
	for range 3 { // what fits into the queue, and more
		c, err := net.DialTimeout("tcp", hole, 50*time.Millisecond)
		if err == nil {
			defer c.Close()
		}
	}
	cfg := forwardTo(hole)
	cfg.Timeouts.Connect = 30 * time.Millisecond
	r := start(t, cfg)
	wantRefused(t, r, "127.0.0.1")
	until(t, r, "given up", func(st Stats) bool {
		return st.Refused[RefusedConnectTimeout] == 1 && st.UpstreamFailures[hole] == 1 && st.Sessions == 0
	})
	// With another to try, the time is shared and the session gets through.
	cfg.Upstream = append(cfg.Upstream, serve(t, echo))
	cfg.Timeouts.Connect = 10 * time.Second
	if err := r.Update(cfg); err != nil {
		t.Fatal(err)
	}
	c := dialTo(t, r)
	write(t, c, []byte("x"))
	readFull(t, c, 1)
}

func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cfg := forwardTo("127.0.0.1:1")
	cfg.Listen = []netip.AddrPort{loopback, netip.MustParseAddrPort(ln.Addr().String())}
	before := descriptors(t)
	_, err = New(cfg, nil)
	if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), "listen on "+ln.Addr().String()) || !strings.Contains(err.Error(), "ss -ltnp") {
		t.Fatalf("error %v", err)
	}
	if after := descriptors(t); after > before {
		t.Fatalf("%d descriptors leaked", after-before)
	}
}

// asChild reports whether this process is the child that inChild started for the test.
func asChild(t *testing.T) bool { return os.Getenv("CONN_TEST_CHILD") == t.Name() }

// inChild runs the test by itself in a process of its own, prepared by prepare.
func inChild(t *testing.T, prepare func(*exec.Cmd)) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "CONN_TEST_CHILD="+t.Name())
	if prepare != nil {
		prepare(cmd)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
}

func TestPortBelow1024NamesTheCapability(t *testing.T) {
	if !asChild(t) {
		inChild(t, func(cmd *exec.Cmd) {
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
		})
		return
	}
	cfg := forwardTo("127.0.0.1:1")
	cfg.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")}
	_, err := New(cfg, nil)
	if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
		t.Fatalf("error %v", err)
	}
	cfg = forwardTo("127.0.0.1:1")
	cfg.Marks = map[string]Mark{"bulk": {Fwmark: 1}}
	_, err = New(cfg, nil)
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") || !strings.Contains(err.Error(), `"bulk"`) {
		t.Fatalf("error %v", err)
	}
}

func TestOutOfDescriptorsPausesAcceptingAndServesOn(t *testing.T) {
	if !asChild(t) {
		inChild(t, nil)
		return
	}
	r := start(t, forwardTo(serve(t, echo)))
	old := dialTo(t, r)
	write(t, old, []byte("x"))
	readFull(t, old, 1)
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	// Four more descriptors: two clients, which leaves two to the relay and none to the server.
	client := func() *net.TCPConn { return dialTo(t, r) }
	lim.Cur = uint64(descriptors(t)) + 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	waiting := []*net.TCPConn{client(), client()}
	until(t, r, "accepting paused", func(st Stats) bool { return st.AcceptPaused > 0 })
	write(t, old, []byte("y"))
	readFull(t, old, 1)
	lim.Cur = lim.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	for _, c := range waiting {
		write(t, c, []byte("z"))
		readFull(t, c, 1)
	}
	st := r.Stats()
	if st.Connected != 3 || st.AcceptPaused > 50 {
		t.Fatalf("connected %d, accepting paused %d times", st.Connected, st.AcceptPaused)
	}
}
