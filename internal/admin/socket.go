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

// A Listener listens on a control socket.
type Listener struct {
	*net.UnixListener
	path, hidden string
	info         fs.FileInfo // of the socket, once it is in its place
	once         sync.Once
}

// Listen makes the socket, under a name that nobody knows until Place is called.
// What a daemon that is gone has left at its path, or this process itself, will
// be replaced then; a socket that somebody else answers on is an error that says
// who, and anything else there is left alone.
func Listen(s Socket) (*Listener, error) {
	l, err := s.listen()
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", s.Path, err)
	}
	return l, nil
}

func (s Socket) listen() (*Listener, error) {
	folder, name := filepath.Split(s.Path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	info, err := os.Lstat(s.Path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("there is something else at this path: remove it, or set admin.socket to another")
	case err == nil:
		if err := occupied(s.Path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// What is not in its place yet has its mode before anybody can find it.
	l := &Listener{path: s.Path, hidden: filepath.Join(folder, fmt.Sprintf(".%s.%d", name, os.Getpid()))}
	if err := os.Remove(l.hidden); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	in, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	// A socket's path is short; this way the folder's length does not count.
	l.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", in.Fd(), filepath.Base(l.hidden)), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := s.open(l.hidden); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// open gives the socket its owner and mode.
func (s Socket) open(path string) error {
	if s.Group != "" {
		group, err := user.LookupGroup(s.Group)
		if err != nil {
			return err
		}
		gid, err := strconv.Atoi(group.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(path, -1, gid); err != nil {
			return fmt.Errorf("%w (the daemon's user has to be in the group %s: SupplementaryGroups in its unit)", err, s.Group)
		}
	}
	mode := s.Mode
	if mode == 0 {
		mode = defaultMode
	}
	return os.Chmod(path, mode)
}

// occupied returns an error that says who else answers at path.
func occupied(path string) error {
	c, err := net.DialTimeout("unix", path, time.Second)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil // left by one that is gone
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if who := peerAt(c); who.PID != os.Getpid() {
		return fmt.Errorf("%s answers there: end it, or set admin.socket to another path", who)
	}
	return nil
}

// Place puts the socket at its path, where clients find it.
func (l *Listener) Place() error {
	if err := os.Rename(l.hidden, l.path); err != nil {
		return err
	}
	var err error
	l.info, err = os.Lstat(l.path)
	return err
}

// Close implements net.Listener. It removes the socket, unless another has taken
// its place.
func (l *Listener) Close() error {
	l.once.Do(func() {
		if l.info == nil {
			os.Remove(l.hidden)
		} else if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
			os.Remove(l.path)
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

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerAt(c))
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
