package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Socket says where the control socket is, and who may use it.
type Socket struct {
	Path  string
	Mode  fs.FileMode // 0 is 0660
	Group string      // "" leaves the process's
}

const defaultMode fs.FileMode = 0o660

// Listen makes the socket. What a daemon that is gone has left at its path is
// replaced; a socket that somebody answers on is an error that says who, and
// anything else there is left alone.
func Listen(s Socket) (net.Listener, error) {
	l, err := listen(s)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", s.Path, err)
	}
	return l, nil
}

func listen(s Socket) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return nil, err
	}
	info, err := os.Lstat(s.Path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("there is something else at this path: remove it, or set admin.socket to another")
	case err == nil:
		if err := vacate(s.Path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// Nobody gets in between the bind and the mode: it is bound under a name that
	// nobody knows, in the same folder, and moved.
	hidden := s.Path + "." + strconv.Itoa(os.Getpid())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := s.open(hidden); err != nil {
		l.Close()
		os.Remove(hidden)
		return nil, err
	}
	return &socketListener{UnixListener: l, path: s.Path}, nil
}

// open gives the socket its owner and mode, and its name.
func (s Socket) open(hidden string) error {
	if s.Group != "" {
		group, err := user.LookupGroup(s.Group)
		if err != nil {
			return err
		}
		gid, err := strconv.Atoi(group.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(hidden, -1, gid); err != nil {
			return fmt.Errorf("%w (the daemon's user has to be in the group %s)", err, s.Group)
		}
	}
	mode := s.Mode
	if mode == 0 {
		mode = defaultMode
	}
	if err := os.Chmod(hidden, mode); err != nil {
		return err
	}
	return os.Rename(hidden, s.Path)
}

// vacate removes a socket that nobody answers on.
func vacate(path string) error {
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		defer c.Close()
		return fmt.Errorf("%s answers there: end it, or set admin.socket to another path", peerAt(c))
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return err
}

// A socketListener removes its socket when it is closed, unless another has
// taken its place.
type socketListener struct {
	*net.UnixListener
	path string
	once sync.Once
}

func (l *socketListener) Close() error {
	l.once.Do(func() {
		if c, err := net.DialTimeout("unix", l.path, time.Second); err == nil {
			mine := peerAt(c).PID == os.Getpid()
			c.Close()
			if mine {
				os.Remove(l.path)
			}
		}
	})
	return l.UnixListener.Close()
}

// A Peer is the process at the other end of a unix socket.
type Peer struct{ PID, UID, GID int }

// String names the process as far as it can be seen.
func (p Peer) String() string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/comm")
	if err != nil {
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d (%s)", p.PID, name[:max(len(name)-1, 0)])
}

func (p Peer) attrs() []any { return []any{"pid", p.PID, "uid", p.UID, "gid", p.GID} }

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerAt(c))
}

func peerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// peerAt asks the kernel who is at the other end.
func peerAt(c net.Conn) (p Peer) {
	if counted, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = counted.NetConn()
	}
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return p
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p = Peer{int(cred.Pid), int(cred.Uid), int(cred.Gid)}
		}
	})
	return p
}
