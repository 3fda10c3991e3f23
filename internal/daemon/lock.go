package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFolder is where the lock is: the service's RuntimeDirectory.
const lockFolder = "/run/shaperd"

// A lock is held by the process that writes to the kernel of one network
// namespace: two would undo each other's work. It ends with the process.
type lock struct{ file *os.File }

// lockKernel takes the lock of this network namespace; the error says who has it.
// It is nil, without an error, when nobody has it and this process may not write
// where it is.
func lockKernel() (*lock, error) {
	l, err := lockNamespace(lockFolder)
	if err != nil {
		return nil, fmt.Errorf("lock the kernel datapath: %w", err)
	}
	return l, nil
}

func lockNamespace(folder string) (*lock, error) {
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "kernel-"+strings.Trim(namespace, "net:[]")+".lock")
	_ = os.MkdirAll(folder, 0o755) // else the next step says why not
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS):
		return nil, held(path)
	case err != nil:
		return nil, err
	}
	share(file, folder)
	err = unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = holder(file)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &lock{file}, nil
}

// share gives a lock file that root has made to the folder's owner: the service's
// user must be able to lock it later.
func share(file *os.File, folder string) {
	info, err := os.Stat(folder)
	if owner, ok := info.Sys().(*syscall.Stat_t); err == nil && ok && os.Geteuid() == 0 {
		_ = file.Chown(int(owner.Uid), int(owner.Gid)) // else the service will find it held, or not
	}
}

// held returns an error when somebody has the lock at path, as far as that can be seen.
func held(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	return holder(file)
}

// holder names the process that has the lock; nil for none.
func holder(file *os.File) error {
	has := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &has); err != nil || has.Type == unix.F_UNLCK {
		return err
	}
	return fmt.Errorf("process %d shapes the interfaces here already: end it, or have it reload with \"shaperd reload\"", has.Pid)
}

// Close gives the lock back. A nil lock has nothing to give.
func (l *lock) Close() {
	if l != nil {
		l.file.Close()
	}
}
