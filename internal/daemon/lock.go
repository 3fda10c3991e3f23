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

// lockFolder is where the lock is, unless the service manager has made another folder.
const lockFolder = "/run/shaperd"

// A lock is held by the process that writes to the kernel of one network
// namespace: two would undo each other's work. It ends with the process.
type lock struct{ file *os.File }

// lockKernel takes the lock of this network namespace; the error says who has it.
// It is nil, without an error, where the process may not write the lock's folder.
func lockKernel() (*lock, error) {
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("lock the kernel datapath: %w", err)
	}
	folder := lockFolder
	if given, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); given != "" {
		folder = given
	}
	_ = os.MkdirAll(folder, 0o755) // else the next step says why not
	file, err := os.OpenFile(filepath.Join(folder, "kernel-"+strings.Trim(namespace, "net:[]")+".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("lock the kernel datapath: %w", err)
	}
	want := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(file.Fd(), unix.F_SETLK, &want)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		holder := unix.Flock_t{Type: unix.F_WRLCK}
		if err = unix.FcntlFlock(file.Fd(), unix.F_GETLK, &holder); err == nil {
			err = fmt.Errorf("process %d shapes the interfaces here already: end it, or have it reload with \"shaperd reload\"", holder.Pid)
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock the kernel datapath: %w", err)
	}
	return &lock{file}, nil
}

// Close gives the lock back. A nil lock has nothing to give.
func (l *lock) Close() {
	if l != nil {
		l.file.Close()
	}
}
