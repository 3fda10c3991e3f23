package measure

import (
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Recorder notes what arrives on any number of connections. It is safe for concurrent use.
type Recorder struct {
	base time.Time
	mu   sync.Mutex
	list []Arrival
}

// NewRecorder returns an empty recorder, whose time begins now.
func NewRecorder() *Recorder { return &Recorder{base: time.Now()} }

// Now is the recorder's time.
func (r *Recorder) Now() time.Duration { return time.Since(r.base) }

// Count notes what arrives on c under the number conn until its stream ends.
func (r *Recorder) Count(conn int, c *net.TCPConn) {
	var looked, empty time.Duration // when c was last read, and before that
	for {
		n, err := discard(c, func() { looked, empty = r.Now(), looked })
		if err != nil {
			return
		}
		a := Arrival{At: r.Now(), After: empty, N: n, Conn: conn}
		r.mu.Lock()
		r.list = append(r.list, a)
		r.mu.Unlock()
	}
}

// Last is when the last bytes arrived.
func (r *Recorder) Last() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return 0
	}
	return r.list[len(r.list)-1].At
}

// Since returns what has arrived from a time on, in order.
func (r *Recorder) Since(from time.Duration) (list []Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.list {
		if a.At >= from {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Arrival) int { return int(a.At - b.At) })
	return list
}

// Bytes is how much has arrived from a time on.
func (r *Recorder) Bytes(from time.Duration) (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.list) - 1; i >= 0 && r.list[i].At >= from; i-- {
		n += int64(r.list[i].N)
	}
	return n
}

var trash = make([]byte, 4<<20)

// Discard waits for bytes and takes them out of the kernel's buffer without
// copying them, which leaves the processor to what is measured. At the end of
// the stream it returns io.EOF.
func Discard(c *net.TCPConn) (n int, err error) { return discard(c, func() {}) }

// discard calls look before each look into the kernel's buffer.
func discard(c *net.TCPConn, look func()) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno error
	err = raw.Read(func(fd uintptr) bool {
		look()
		n, _, errno = syscall.Recvfrom(int(fd), trash, syscall.MSG_TRUNC|syscall.MSG_DONTWAIT)
		return errno != syscall.EAGAIN
	})
	if err == nil {
		err = errno
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}
