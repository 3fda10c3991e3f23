package conn

import (
	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// ending is how the source of a direction stopped.
type ending uint8

const (
	open  ending = iota
	eof          // FIN: passed on after every byte before it
	reset        // RST or another error: passed on after what came before it
)

// A direction moves bytes from one socket of a session to the other. It holds
// bytes of its own only while the receiver takes less than was read: either in
// stash (copied) or in a pipe (spliced), never in both.
type direction struct {
	queue    shaper.Queue // its place in the link's tree
	s        *session
	pipe     *pipe
	stash    []byte
	sent     uint64 // bytes
	upload   bool   // client to upstream; else upstream to client
	readable bool   // the source may have something, an end included
	writable bool   // the receiver may take something
	hup      bool   // the source's FIN has arrived: a short read does not mean that nothing is left
	end      ending // what the source came to, once read
	done     bool   // nothing more will be moved, and the end has been passed on
	full     uint8  // full reads in a row
}

// bulkReads full reads of the scratch buffer in a row make a direction splice.
const bulkReads = 2

func (d *direction) from() int {
	if d.upload {
		return d.s.client
	}
	return d.s.server
}

func (d *direction) to() int {
	if d.upload {
		return d.s.server
	}
	return d.s.client
}

// held is how many bytes have been read and not yet written.
func (d *direction) held() int {
	if d.pipe != nil {
		return d.pipe.held
	}
	return len(d.stash)
}

// ready reports whether a turn could achieve something.
func (d *direction) ready() bool {
	return d.writable && !d.done && (d.held() > 0 || d.readable && d.end == open)
}

// move moves up to budget bytes and returns how many the receiver took. It
// stops at whatever comes first: the budget, a source that has nothing, a
// receiver that takes nothing, an end.
func (d *direction) move(l *loop, budget int) (moved int) {
	for moved < budget && d.ready() {
		if d.held() == 0 {
			d.fill(l, budget-moved, &moved)
			continue
		}
		moved += d.flush(budget - moved)
	}
	if d.pipe != nil && d.pipe.held == 0 {
		l.pipes.put(d.pipe)
		d.pipe = nil
	}
	return moved
}

// fill reads up to budget bytes. Through the scratch buffer it also writes
// them, and adds to moved; a pipe is left for flush.
func (d *direction) fill(l *loop, budget int, moved *int) {
	if d.full >= bulkReads && budget >= len(l.scratch) && d.fillPipe(l, budget) {
		return
	}
	buf := l.scratch[:min(budget, len(l.scratch))]
	n, e := sysRead(d.from(), buf)
	if e != 0 || n == 0 {
		d.stopped(e)
		return
	}
	if n == len(l.scratch) {
		d.full++
	} else {
		d.full = 0
		d.readable = n == len(buf) || d.hup // a short read has emptied the socket
	}
	w, e := sysWrite(d.to(), buf[:n])
	if e != 0 {
		w = 0
		d.refused(e)
	}
	if w < n && !d.done {
		d.writable = false
		d.stash = append([]byte(nil), buf[w:n]...)
	}
	*moved += w
}

// fillPipe splices up to budget bytes into a pipe; false when there is no pipe to be had.
func (d *direction) fillPipe(l *loop, budget int) bool {
	if d.pipe == nil {
		if d.pipe = l.pipes.get(); d.pipe == nil {
			return false
		}
	}
	n, e := sysSplice(d.from(), d.pipe.w, min(budget, pipeSize))
	if e != 0 || n == 0 {
		d.full = 0
		d.stopped(e)
		return true
	}
	d.pipe.held = n
	return true
}

// flush writes up to budget of the held bytes.
func (d *direction) flush(budget int) (n int) {
	var e unix.Errno
	if d.pipe != nil {
		if n, e = sysSplice(d.pipe.r, d.to(), min(budget, d.pipe.held)); e == 0 {
			d.pipe.held -= n
		}
	} else {
		want := min(budget, len(d.stash))
		if n, e = sysWrite(d.to(), d.stash[:want]); e == 0 {
			d.stash = d.stash[n:]
			d.writable = n == want
		}
		if len(d.stash) == 0 {
			d.stash = nil
		}
	}
	if e != 0 {
		d.refused(e)
		return 0
	}
	return n
}

// stopped takes in that the source had nothing: for now, or for good.
func (d *direction) stopped(e unix.Errno) {
	switch {
	case e == unix.EAGAIN:
		d.readable = false
	case e == unix.EINTR:
	case e != 0:
		d.s.markDead(d.upload)
		d.end = reset
	case d.s.dead(d.upload): // the error was told to a write; what reads as an end is none
		d.end = reset
	default:
		d.end = eof
	}
}

// refused takes in that the receiver took nothing: for now, or for good.
func (d *direction) refused(e unix.Errno) {
	switch e {
	case unix.EAGAIN:
		d.writable = false
	case unix.EINTR:
	default:
		d.s.markDead(!d.upload)
		d.done = true
	}
}
