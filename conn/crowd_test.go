package conn

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// connectAll starts n connections to addr without waiting for any.
func connectAll(t *testing.T, n int, addr netip.AddrPort) []int {
	t.Helper()
	fds := make([]int, n)
	for i := range fds {
		fd, err := streamSocket(addr.Addr())
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		if err := unix.Connect(fd, sockaddr(addr)); err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.ECONNRESET) {
			t.Fatalf("connect %d: %v", i, err)
		}
		fds[i] = fd
	}
	return fds
}

func TestCrowdIsAdmittedUpToTheLimitAndRefusedAtOnceBeyond(t *testing.T) {
	const limit, half = 2000, 10_000 // two processes: one alone may not have enough descriptors
	if have, err := RaiseFileLimit(); err != nil || have < half+2*limit {
		t.Fatalf("this test needs %d descriptors, there are %d (raise ulimit -n), %v", half+2*limit, have, err)
	}
	if asChild(t) {
		connectAll(t, half, netip.MustParseAddrPort(os.Getenv("CONN_TEST_ADDR")))
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent has looked
		return
	}
	host, port := hostPort(t, serve(t, echo))
	cfg := socksRelay()
	cfg.Limits.Sessions = limit
	r := start(t, cfg)
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var child sync.WaitGroup
	child.Go(func() {
		inChild(t, func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, "CONN_TEST_ADDR="+r.Addrs()[0].String())
			cmd.Stdin = hold
		})
	})
	fds := connectAll(t, half, r.Addrs()[0])
	st := until(t, r, "everyone answered", func(st Stats) bool { return st.Accepted == 2*half })
	if st.Sessions != limit || st.Refused[RefusedSessions] != 2*half-limit {
		t.Errorf("%d of %d admitted, %d refused; the limit is %d", st.Sessions, 2*half, st.Refused[RefusedSessions], limit)
	}
	release.Close()
	child.Wait()
	for _, fd := range fds {
		unix.Close(fd)
	}
	until(t, r, "the crowd gone", func(st Stats) bool { return st.Sessions == 0 })
	c := dialTo(t, r)
	if code := openSocks(t, c, host, port); code != replyOK {
		t.Fatalf("reply %#x", code)
	}
}
