package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Lab is a set of hosts. Its methods are for one goroutine at a time.
type Lab struct {
	hosts     map[string]*host
	processes []*exec.Cmd
}

// A host is a namespace with the thread that lives in it.
type host struct {
	work  chan func()
	ended chan struct{}
	ns    *os.File
}

// settings make the hosts alike and their traffic plain: no pacing of a
// congestion control's own, and single packets where the kernel paces.
var settings = map[string]string{
	"net/ipv4/tcp_congestion_control":            "reno",
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
		h := &host{work: make(chan func()), ended: make(chan struct{})}
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
	defer close(h.ended)
	err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_FS)
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: run it as root", err)
	}
	if made <- err; err != nil {
		return
	}
	for do := range h.work {
		do()
	}
}

func (h *host) prepare() (err error) {
	if h.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return withLinks(func(links *vnl.Handle) error { return up(links, "lo") })
}

func withLinks(do func(*vnl.Handle) error) error {
	links, err := vnl.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer links.Close()
	return do(links)
}

func up(links *vnl.Handle, name string, addrs ...string) error {
	link, err := links.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, a := range addrs {
		addr, err := vnl.ParseAddr(a)
		if err == nil {
			addr.Flags = unix.IFA_F_NODAD
			err = links.AddrAdd(link, addr)
		}
		if err != nil {
			return fmt.Errorf("%s: address %s: %w", name, a, err)
		}
	}
	return links.LinkSetUp(link)
}

// An End is one end of a wire: a host's device and its addresses, as "10.0.0.1/24".
type End struct {
	Host, Device string
	Addrs        []string
}

// Join connects two hosts.
func (l *Lab) Join(a, b End) error {
	peer := l.hosts[b.Host]
	err := l.Do(a.Host, func() error {
		return withLinks(func(links *vnl.Handle) error {
			attrs := vnl.NewLinkAttrs()
			attrs.Name, attrs.MTU = a.Device, 1500
			wire := &vnl.Veth{LinkAttrs: attrs, PeerName: b.Device, PeerNamespace: vnl.NsFd(peer.ns.Fd())}
			if err := links.LinkAdd(wire); err != nil {
				return err
			}
			return up(links, a.Device, a.Addrs...)
		})
	})
	if err == nil {
		err = l.Do(b.Host, func() error {
			return withLinks(func(links *vnl.Handle) error { return up(links, b.Device, b.Addrs...) })
		})
	}
	if err != nil {
		return fmt.Errorf("join %s to %s: %w", a.Host, b.Host, err)
	}
	return nil
}

// Route has a host send everything by these gateways.
func (l *Lab) Route(name string, via ...string) error {
	return l.Do(name, func() error {
		return withLinks(func(links *vnl.Handle) error {
			for _, gateway := range via {
				all := "0.0.0.0/0"
				if net.ParseIP(gateway).To4() == nil {
					all = "::/0"
				}
				_, dst, _ := net.ParseCIDR(all)
				if err := links.RouteAdd(&vnl.Route{Dst: dst, Gw: net.ParseIP(gateway)}); err != nil {
					return fmt.Errorf("%s: route by %s: %w", name, gateway, err)
				}
			}
			return nil
		})
	})
}

// Do runs a function in a host's namespace, on its thread, and waits for it.
func (l *Lab) Do(name string, do func() error) error {
	h := l.hosts[name]
	if h == nil {
		return fmt.Errorf("there is no host %s", name)
	}
	done := make(chan error)
	h.work <- func() { done <- do() }
	return <-done
}

// Start starts a process on a host. It is killed with this process and by Close.
func (l *Lab) Start(name string, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := l.Do(name, cmd.Start)
	if err == nil {
		l.processes = append(l.processes, cmd)
	}
	return err
}

// Output runs a command on a host and returns what it prints.
func (l *Lab) Output(name string, command ...string) (string, error) {
	var out []byte
	err := l.Do(name, func() (err error) {
		out, err = exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v on %s: %w: %s", command, name, err, out)
		}
		return err
	})
	return string(out), err
}

// Close ends the processes and the hosts, and with them their devices.
func (l *Lab) Close() {
	for _, cmd := range l.processes {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for _, h := range l.hosts {
		close(h.work)
		<-h.ended
		if h.ns != nil {
			h.ns.Close()
		}
	}
}
