package netlink

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A request is one message to the kernel, without its header's sequence number.
type request struct {
	typ   uint16
	flags uint16
	body  []byte
}

// A message is one from the kernel.
type message struct {
	typ   uint16
	flags uint16
	seq   uint32
	port  uint32 // of whom it is about: the socket that caused a notification
	body  []byte
}

// A socket is a route netlink socket. It belongs to the network namespace of
// the thread that opened it, and is not safe for concurrent use.
type socket struct {
	fd  int
	seq uint32
	buf []byte
}

const (
	batchSize   = 32 // messages a send: more gain nothing, and each is acknowledged
	receiveSize = 1 << 16
	answerTime  = 10 * time.Second
	dumpTries   = 5
)

func openSocket() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	s := &socket{fd: fd, buf: make([]byte, receiveSize)}
	// Strict checking makes dumps filter in the kernel; extended acknowledgements say what was wrong. Older kernels have neither.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
	timeout := unix.NsecToTimeval(int64(answerTime))
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	if err != nil {
		s.close()
		return nil, fmt.Errorf("set up netlink: %w", err)
	}
	return s, nil
}

// hear has the socket receive what the kernel tells of links, qdiscs, classes
// and filters, and has receive return after wait without any.
func (s *socket) hear(wait time.Duration) error {
	timeout := unix.NsecToTimeval(int64(wait))
	err := errors.Join(
		unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_LINK),
		unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_TC))
	if err != nil {
		return fmt.Errorf("listen to netlink: %w", err)
	}
	return nil
}

func (s *socket) close() { _ = unix.Close(s.fd) }

// port is the address by which the kernel names this socket in notifications.
func (s *socket) port() uint32 {
	if a, err := unix.Getsockname(s.fd); err == nil {
		if n, ok := a.(*unix.SockaddrNetlink); ok {
			return n.Pid
		}
	}
	return 0
}

// A kernelError is the kernel's answer to one request.
type kernelError struct {
	errno unix.Errno
	text  string // the kernel's own words, where it has some
}

func (e *kernelError) Unwrap() error { return e.errno }
func (e *kernelError) Error() string {
	if e.text != "" {
		return e.errno.Error() + ": " + e.text
	}
	return e.errno.Error()
}

// do sends the requests in order, in batches, and returns what refused makes of
// the first that the kernel refuses, where that is an error. The kernel goes on
// with the rest of the batch; of later batches nothing is sent.
func (s *socket) do(requests []request, refused func(index int, err error) error) error {
	for first := 0; first < len(requests); first += batchSize {
		batch := requests[first:min(first+batchSize, len(requests))]
		answers, err := s.batch(batch)
		if err != nil {
			return err
		}
		for i, err := range answers {
			if err == nil {
				continue
			}
			if err := refused(first+i, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *socket) batch(batch []request) (answers []error, err error) {
	base := s.seq + 1
	var out []byte
	for _, r := range batch {
		out = s.append(out, r, unix.NLM_F_ACK)
	}
	if err := s.send(out); err != nil {
		return nil, err
	}
	answers = make([]error, len(batch))
	for acked := 0; acked < len(batch); {
		messages, err := s.receive()
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if at := m.seq - base; m.typ == unix.NLMSG_ERROR && at < uint32(len(batch)) {
				acked++
				answers[at] = m.refusal()
			}
		}
	}
	return answers, nil
}

// dump asks for all objects that the request describes, again when the kernel
// says that they changed meanwhile.
func (s *socket) dump(r request) (list []message, err error) {
	for range dumpTries {
		if list, err = s.dumpOnce(r); !errors.Is(err, errInterrupted) {
			break
		}
	}
	return list, err
}

var errInterrupted = errors.New("the kernel's tables kept changing while they were read")

func (s *socket) dumpOnce(r request) (list []message, err error) {
	if err := s.send(s.append(nil, r, unix.NLM_F_DUMP)); err != nil {
		return nil, err
	}
	seq, interrupted := s.seq, false
	for {
		messages, err := s.receive()
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.seq != seq {
				continue
			}
			interrupted = interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
			switch m.typ {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				if err := m.refusal(); err != nil {
					return nil, err
				}
				if interrupted {
					return nil, errInterrupted
				}
				return list, nil
			}
			m.body = slices.Clone(m.body)
			list = append(list, m)
		}
	}
}

// refusal returns the error that an acknowledgement carries, or nil.
func (m *message) refusal() error {
	if len(m.body) < 4 {
		return nil
	}
	code := -int32(u32At(m.body, 0))
	if code <= 0 {
		return nil
	}
	e := &kernelError{errno: unix.Errno(code)}
	if m.flags&unix.NLM_F_ACK_TLVS != 0 && m.typ == unix.NLMSG_ERROR && len(m.body) >= 4+unix.NLMSG_HDRLEN {
		at := 4 + unix.NLMSG_HDRLEN
		if m.flags&unix.NLM_F_CAPPED == 0 {
			at = 4 + align(int(u32At(m.body, 4)))
		}
		if at <= len(m.body) {
			attributes(m.body[at:], func(typ uint16, value []byte) {
				if typ == unix.NLMSGERR_ATTR_MSG {
					e.text = textOf(value)
				}
			})
		}
	}
	return e
}

func (s *socket) append(b []byte, r request, flags uint16) []byte {
	s.seq++
	b = native.AppendUint32(b, uint32(unix.NLMSG_HDRLEN+len(r.body)))
	b = native.AppendUint16(b, r.typ)
	b = native.AppendUint16(b, r.flags|flags|unix.NLM_F_REQUEST)
	b = native.AppendUint32(b, s.seq)
	b = native.AppendUint32(b, 0)
	b = append(b, r.body...)
	return append(b, make([]byte, align(len(b))-len(b))...)
}

func (s *socket) send(b []byte) error {
	if err := unix.Sendto(s.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send to netlink: %w", err)
	}
	return nil
}

// receive returns the next messages. Their bodies are valid until it is called again.
func (s *socket) receive() ([]message, error) {
	for {
		n, _, err := unix.Recvfrom(s.fd, s.buf, unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("netlink: %w: no answer in %s", os.ErrDeadlineExceeded, answerTime)
		case err != nil:
			return nil, fmt.Errorf("receive from netlink: %w", err)
		case n > len(s.buf):
			return nil, fmt.Errorf("netlink: a message of %d bytes: larger than %d", n, len(s.buf))
		}
		return split(s.buf[:n]), nil
	}
}

func split(b []byte) (list []message) {
	for len(b) >= unix.NLMSG_HDRLEN {
		n := int(u32At(b, 0))
		if n < unix.NLMSG_HDRLEN || n > len(b) {
			break
		}
		list = append(list, message{
			typ: native.Uint16(b[4:]), flags: native.Uint16(b[6:]), seq: u32At(b, 8), port: u32At(b, 12), body: b[unix.NLMSG_HDRLEN:n],
		})
		b = b[min(align(n), len(b)):]
	}
	return list
}
