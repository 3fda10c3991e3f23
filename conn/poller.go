package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller is an epoll instance with an eventfd to wake it. Every descriptor
// is registered once with a token that comes back with its events; a token is
// never used twice, so an event that was queued for a closed descriptor cannot
// reach the one that got its number.
type poller struct {
	epfd, wakefd int
	events       [256]unix.EpollEvent
	timeout      kernelTimespec
	coarse       bool // the kernel has no epoll_pwait2 (before 5.11): milliseconds only
}

const (
	edgeEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	wakeToken  = uint64(math.MaxUint64)
)

func newPoller() (*poller, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll instance: %w", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epfd)
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	p := &poller{epfd: epfd, wakefd: wakefd}
	if err := p.add(wakefd, unix.EPOLLIN, wakeToken); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) close() {
	unix.Close(p.epfd)
	unix.Close(p.wakefd)
}

func setToken(ev *unix.EpollEvent, token uint64) {
	ev.Fd, ev.Pad = int32(uint32(token)), int32(uint32(token>>32))
}

func tokenOf(ev *unix.EpollEvent) uint64 {
	return uint64(uint32(ev.Pad))<<32 | uint64(uint32(ev.Fd))
}

// add registers fd; closing fd removes it, unless the file has another descriptor.
func (p *poller) add(fd int, events uint32, token uint64) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, events, token)
}

// remove ends what add began, for a file with another descriptor.
func (p *poller) remove(fd int) error {
	return p.control(unix.EPOLL_CTL_DEL, fd, 0, 0)
}

// modify changes the events of a registered fd.
func (p *poller) modify(fd int, events uint32, token uint64) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, events, token)
}

func (p *poller) control(op, fd int, events uint32, token uint64) error {
	ev := unix.EpollEvent{Events: events}
	setToken(&ev, token)
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epfd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	if e != 0 {
		return fmt.Errorf("register descriptor with epoll: %w", e)
	}
	return nil
}

// wake makes a wait in progress, or the next one, return. Any goroutine may call it.
func (p *poller) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.wakefd, one[:]) // EAGAIN: it is full of wake-ups already
}

// heldWait is how long a wait keeps Go's processor before it gives it back.
// Giving it back costs a hand-over to the runtime's monitor thread and again
// on return, more than a short wait does; keeping it for long would make the
// runtime's own stops wait for a signal. While bytes move, events and turns
// are nearer than this.
const heldWait = 5 * time.Millisecond

// wait blocks for up to d (for ever when negative) and returns what is ready.
// The slice is valid until the next call.
func (p *poller) wait(d time.Duration) ([]unix.EpollEvent, error) {
	short := d
	if d < 0 || d > heldWait {
		short = heldWait
	}
	n, e := p.epollWait(unix.RawSyscall6, short)
	if n == 0 && e == 0 && short != d {
		if d > 0 {
			d -= short
		}
		n, e = p.epollWait(unix.Syscall6, d)
	}
	switch e {
	case 0:
		return p.events[:n], nil
	case unix.EINTR: // the runtime's preemption
		return nil, nil
	}
	return nil, fmt.Errorf("wait for events: %w", e)
}

type syscall6 func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, e unix.Errno)

// epollWait asks for nanoseconds where the kernel can (5.11), else it rounds up to milliseconds.
func (p *poller) epollWait(call syscall6, d time.Duration) (int, unix.Errno) {
	evs, size := uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events))
	if !p.coarse && d != 0 {
		var timeout uintptr
		if d > 0 {
			p.timeout = kernelTimespec{sec: int64(d / time.Second), nsec: int64(d % time.Second)}
			timeout = uintptr(unsafe.Pointer(&p.timeout))
		}
		n, _, e := call(unix.SYS_EPOLL_PWAIT2, uintptr(p.epfd), evs, size, timeout, 0, 0)
		if e != unix.ENOSYS && e != unix.EPERM { // EPERM: an old container runtime's filter
			return int(n), e
		}
		p.coarse = true
	}
	ms := -1
	if d >= 0 {
		ms = int(min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
	}
	n, _, e := call(unix.SYS_EPOLL_PWAIT, uintptr(p.epfd), evs, size, uintptr(ms), 0, 0)
	return int(n), e
}

// drainWake empties the eventfd.
func (p *poller) drainWake() {
	var b [8]byte
	if _, err := unix.Read(p.wakefd, b[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		panic("read eventfd: " + err.Error()) // the descriptor is ours: a bug
	}
}
