package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Lab is a set of hosts. Do may be called from any goroutine; the other
// methods are for one at a time.
type Lab struct {
	hosts     map[string]*host
	processes []*process
	closed    sync.Once
}

// A host is a namespace with the thread that lives in it.
type host struct {
	work  chan func()
	quit  chan struct{} // closed to end the thread
	lives chan struct{} // closed when it has its thread
	ended chan struct{} // closed when it has
	ns    *os.File
}

// settings make the hosts alike and their traffic plain: no pacing of a
// congestion control's own, small packets where a socket paces, and nothing
// that one connection learns from another.
var settings = map[string]string{
	"net/ipv4/tcp_congestion_control":            "reno",
	"net/ipv4/tcp_tso_rtt_log":                   "0",
	"net/ipv4/tcp_no_metrics_save":               "1",
	"net/ipv4/ip_forward":                        "1",
	"net/ipv6/conf/all/forwarding":               "1",
	"net/ipv6/conf/default/dad_transmits":        "0",
	"net/ipv6/conf/default/accept_dad":           "0",
	"net/ipv6/conf/default/router_solicitations": "0",
}

// New makes the hosts. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
func New(names ...string) (*Lab, error) {
	l := &Lab{hosts: map[string]*host{}}
	for _, name := range names {
		h := &host{work: make(chan func()), quit: make(chan struct{}), lives: make(chan struct{}), ended: make(chan struct{})}
		made := make(chan error)
		go h.live(made)
		if err := <-made; err != nil {
			l.Close()
			return nil, fmt.Errorf("make host %s: %w", name, err)
		}
		l.hosts[name] = h
		if err := l.Do(name, h.prepare); err != nil {
			l.Close()
			return nil, fmt.Errorf("make host %s: %w", name, err)
		}
	}
	return l, nil
}

// live is the host's thread. It ends without being unlocked, and so its namespace does too.
func (h *host) live(made chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() { // this thread's namespace passes for the whole process's
		go h.live(made)
		<-h.lives
		runtime.UnlockOSThread()
		return
	}
	close(h.lives)
	defer close(h.ended)
	err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_FS)
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: run it as root", err)
	}
	if made <- err; err != nil {
		return
	}
	for {
		select {
		case do := <-h.work:
			do()
		case <-h.quit:
			return
		}
	}
}

func (h *host) prepare() (err error) {
	if h.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	for name, value := range settings {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // older kernels lack some
			return err
		}
	}
	return withLinks(func(links *vnl.Handle) error { return up(links, "lo") })
}

// Do runs a function in a host's namespace, on its thread, and waits for it.
// The function must not call Do for the same host, and must return.
func (l *Lab) Do(name string, do func() error) error {
	h := l.hosts[name]
	if h == nil {
		return fmt.Errorf("there is no host %q", name)
	}
	done := make(chan error, 1)
	select {
	case h.work <- func() { done <- do() }:
	case <-h.ended:
		return fmt.Errorf("host %q is closed", name)
	}
	select {
	case err := <-done:
		return err
	case <-h.ended:
		return fmt.Errorf("host %q: what ran on it ended its thread (no t.Fatal there)", name)
	}
}

// Close ends the processes and the hosts, and with them their devices. Sockets
// that Do has opened keep their namespace until they are closed.
func (l *Lab) Close() {
	l.closed.Do(func() {
		for _, p := range l.processes {
			p.kill()
		}
		for _, h := range l.hosts {
			close(h.quit)
			<-h.ended
			if h.ns != nil {
				h.ns.Close()
			}
		}
	})
}
