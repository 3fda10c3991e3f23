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
// no relay. New takes those that its configuration listens on; Close drops the
// rest. Any goroutine may use it; nil has no sockets.
//
// What must be set before a connection arrives is set when a relay takes the
// socket. Connections that were there before have the kernel's receive buffer
// and no saved SYN (clientDSCP then looks at the handshake's last packet).
type Inherited struct {
	mu      sync.Mutex
	free    []inherited
	refused []error
}

type inherited struct {
	name string
	*listener
}

// Inherit takes files over and closes them. A file that is no listening TCP
// socket is not an error yet: Close returns it.
func Inherit(files []*os.File) *Inherited {
	in := &Inherited{}
	for _, f := range files {
		ln, err := adopt(f)
		if err != nil {
			in.refused = append(in.refused, fmt.Errorf("inherited socket %s: %w", f.Name(), err))
		} else {
			in.free = append(in.free, inherited{f.Name(), ln})
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

// take returns the socket that listens on addr, nil for none.
func (in *Inherited) take(addr netip.AddrPort) *listener {
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	i := slices.IndexFunc(in.free, func(s inherited) bool { return s.bound == addr })
	if i < 0 {
		return nil
	}
	ln := in.free[i].listener
	in.free = slices.Delete(in.free, i, i+1)
	return ln
}

// Close closes the sockets that no relay has taken and says why, one error for
// each.
func (in *Inherited) Close() []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	unused := in.refused
	for _, s := range in.free {
		unix.Close(s.fd)
		unused = append(unused, fmt.Errorf("inherited socket %s: no relay listens on %s", s.name, s.bound))
	}
	in.free, in.refused = nil, nil
	return unused
}
