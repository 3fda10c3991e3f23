package conn

import (
	"golang.org/x/sys/unix"
)

const (
	// pipeSize is what one splice may carry. A pipe of 64 KiB costs four times the CPU at 5 gbit.
	pipeSize = 1 << 20
	// maxPipes bounds the pool. The kernel gives an unprivileged user about this many pipes of
	// pipeSize (fs.pipe-user-pages-soft) before it hands out tiny ones.
	maxPipes = 64
)

// A pipe carries bulk data between two sockets inside the kernel. The
// direction that holds it owns the bytes in it.
type pipe struct {
	r, w int
	held int // bytes inside
}

// A pipePool lends pipes to the directions of one loop. It keeps what it has
// made; when it may make no more, get returns nil and the caller copies.
type pipePool struct {
	free    []*pipe
	made    int
	refused bool // by the kernel: do not ask again until a session has ended
}

func (pp *pipePool) get() *pipe {
	if n := len(pp.free); n > 0 {
		p := pp.free[n-1]
		pp.free = pp.free[:n-1]
		return p
	}
	if pp.made >= maxPipes || pp.refused {
		return nil
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		pp.refused = true
		return nil
	}
	if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		pp.refused = true
		return nil
	}
	pp.made++
	return &pipe{r: fds[0], w: fds[1]}
}

// put takes a pipe back. One that still holds bytes nobody will read is closed.
func (pp *pipePool) put(p *pipe) {
	if p.held > 0 {
		p.close()
		pp.made--
		return
	}
	pp.free = append(pp.free, p)
}

// close releases the pipes that are not lent.
func (pp *pipePool) close() {
	for _, p := range pp.free {
		p.close()
	}
	pp.made -= len(pp.free)
	pp.free = nil
}

func (p *pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}
