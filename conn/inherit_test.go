package conn

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/shaper"
)

// A holder has a listening socket, as a service manager does.
type holder struct {
	addr netip.AddrPort
	fd   int
}

func hold(t *testing.T) holder {
	t.Helper()
	ln, err := listen(loopback, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ln.fd) })
	return holder{ln.bound, ln.fd}
}

// file returns the socket as a process that the holder starts gets it.
func (h holder) file(t *testing.T, name string) *os.File {
	t.Helper()
	fd, err := unix.Dup(h.fd)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// inherit makes a relay with the holder's socket.
func (h holder) inherit(t *testing.T, cfg Config) *Relay {
	t.Helper()
	in := Inherit([]*os.File{h.file(t, "test.socket")})
	cfg.Listen = []netip.AddrPort{h.addr}
	r, err := NewInherited(cfg, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if unused := in.Unused(); unused != nil {
		t.Fatalf("the relay did not take the socket: %v", unused)
	}
	in.Close()
	return r
}

func (h holder) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestInheritedListenerKeepsConnectionsThatCameBefore(t *testing.T) {
	h := hold(t)
	early := h.dial(t)
	write(t, early, []byte("early"))
	run(t, h.inherit(t, forwardTo(serve(t, echo))))
	if got := string(readFull(t, early, 5)); got != "early" {
		t.Errorf("echo %q", got)
	}
	early.Close() // or the drain would wait for it
}

func TestConnectionsWaitFromOneRelayToTheNext(t *testing.T) {
	h := hold(t)
	cfg := forwardTo(serve(t, echo))
	for i := range 3 {
		between := h.dial(t)
		write(t, between, []byte("between"))
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		r := h.inherit(t, cfg)
		go func() { ended <- r.Run(ctx) }()
		if got := string(readFull(t, between, 7)); got != "between" {
			t.Errorf("relay %d: echo %q", i, got)
		}
		between.Close()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// A file that has another descriptor stays in the epoll set when one is
// closed, and would wake the loop for ever.
func TestInheritedListenerThatIsGoneIsLeftAlone(t *testing.T) {
	h := hold(t)
	cfg := forwardTo(serve(t, echo))
	r := h.inherit(t, cfg)
	run(t, r)
	watched := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", r.loop.poller.epfd))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "tfd:")
	}
	before := watched()
	if err := r.Update(cfg); err != nil { // it listens on another port now
		t.Fatal(err)
	}
	if after := watched(); after != before {
		t.Errorf("%d descriptors are watched after the change of one listener, before %d", after, before)
	}
	c := h.dial(t)
	fd, _, err := unix.Accept(h.fd)
	for err == unix.EAGAIN {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, -1)
		if err == nil || err == unix.EINTR {
			fd, _, err = unix.Accept(h.fd)
		}
	}
	if err != nil {
		t.Fatalf("the holder's socket: %v", err)
	}
	unix.Close(fd)
	c.Close()
	s := dialTo(t, r)
	write(t, s, []byte("other"))
	readFull(t, s, 5)
}

func TestInheritedListenerGetsTheOptionsOfThePolicy(t *testing.T) {
	h := hold(t)
	option := func(level, opt int) int {
		t.Helper()
		v, err := unix.GetsockoptInt(h.fd, level, opt)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	slow := limited(forwardTo("127.0.0.1:1"), shaper.Mbit)
	slow.Rules.List = []classify.Rule{rule("only", classify.Match{DSCP: []classify.DSCP{46}})}
	h.inherit(t, slow).Close()
	if got, want := option(unix.SOL_SOCKET, unix.SO_RCVBUF), 2*(16<<10); got != want { // the kernel doubles it
		t.Errorf("receive buffer of %d bytes, want %d", got, want)
	}
	if option(unix.IPPROTO_TCP, unix.TCP_SAVE_SYN) != 1 {
		t.Error("SYNs are not saved")
	}
	h.inherit(t, forwardTo("127.0.0.1:1")).Close()
	if option(unix.SOL_SOCKET, unix.SO_BUF_LOCK) != 0 {
		t.Error("the receive buffer is still that of the slow class, which the next relay does not have")
	}
}

func TestInheritedSocketsThatNobodyTakesAreNamed(t *testing.T) {
	h := hold(t)
	udp, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	in := Inherit([]*os.File{h.file(t, "web"), os.NewFile(uintptr(udp), "dns"), pipe})
	var got []string
	for _, err := range in.Unused() {
		got = append(got, err.Error())
	}
	want := []string{
		"inherited socket dns: not a listening TCP socket",
		"inherited socket |0: not a listening TCP socket",
		"inherited socket web: no relay listens on " + h.addr.String(),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	in.Close()
	if err := unix.Listen(h.fd, 1); err != nil {
		t.Errorf("the holder's socket: %v", err)
	}
	in.Close() // again
}
