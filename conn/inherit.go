package conn

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Inherited are sockets that listened before this process did: whoever started
// it holds them too, so that clients wait in the kernel's queue while there is
// no relay. A relay that listens on an address of theirs takes its socket instead
// of binding another, each time that it comes to listen there. Close lets go of
// them all. Any goroutine may use it; nil has no sockets.
//
// What must be set before a connection arrives is set when a relay takes the
// socket. Connections that were there before have the kernel's receive buffer
// and no saved SYN (clientDSCP then looks at the handshake's last packet).
type Inherited struct {
	mu      sync.Mutex
	all     []inherited
	refused []error
}

type inherited struct {
	name string
	*listener
	taken bool // by some relay, at some time
}

// Inherit takes files over and closes them. A file that is no listening TCP
// socket is not an error yet: Unused returns it.
func Inherit(files []*os.File) *Inherited {
	in := &Inherited{}
	for _, f := range files {
		ln, err := adopt(f)
		if err != nil {
			in.refused = append(in.refused, fmt.Errorf("inherited socket %s: %w", f.Name(), err))
		} else {
			in.all = append(in.all, inherited{name: f.Name(), listener: ln})
		}
		f.Close()
	}
	return in
}

// adopt duplicates f, which Go's own poller has a hold on.
func adopt(f *os.File) (*listener, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var ln *listener
	if e := raw.Control(func(fd uintptr) { ln, err = duplicate(int(fd)) }); e != nil {
		return nil, e
	}
	return ln, err
}

func duplicate(from int) (*listener, error) {
	for _, demand := range []struct{ option, value int }{
		{unix.SO_PROTOCOL, unix.IPPROTO_TCP}, // and so not MPTCP, see streamSocket
		{unix.SO_ACCEPTCONN, 1},
	} {
		if v, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, demand.option); err != nil || v != demand.value {
			return nil, errors.New("not a listening TCP socket")
		}
	}
	name, err := unix.Getsockname(from)
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	addr := addrPort(name)
	return &listener{want: addr, bound: addr, fd: fd, shared: true}, nil
}

// take returns the socket that listens on addr, nil for none. The descriptor is
// the caller's.
func (in *Inherited) take(addr netip.AddrPort) *listener {
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	i := slices.IndexFunc(in.all, func(s inherited) bool { return s.bound == addr })
	if i < 0 {
		return nil
	}
	ln := *in.all[i].listener
	var err error
	if ln.fd, err = unix.FcntlInt(uintptr(ln.fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil // binding it will fail, and say so
	}
	in.all[i].taken = true
	return &ln
}

// Unused says what is wrong with the files, and which sockets no relay has
// taken: one error for each.
func (in *Inherited) Unused() []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	unused := slices.Clone(in.refused)
	for _, s := range in.all {
		if !s.taken {
			unused = append(unused, fmt.Errorf("inherited socket %s: no relay listens on %s", s.name, s.bound))
		}
	}
	return unused
}

// Close lets go of the sockets. Relays keep those that they have taken.
func (in *Inherited) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range in.all {
		unix.Close(s.fd)
	}
	in.all, in.refused = nil, nil
}
