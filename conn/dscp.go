package conn

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"shaperd/classify"
)

// The client's DSCP is in the headers of its SYN, which the kernel keeps for
// sockets accepted from a listener with TCP_SAVE_SYN. It is missing where the
// connection was made with a SYN cookie or before the option was set; then the
// TOS octet of the packet that completed the handshake will do.

// saveSYN makes the kernel keep the SYN of every connection to the listener fd.
func saveSYN(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_SAVE_SYN, 1)
}

// clientDSCP returns the DSCP that the client of the accepted socket fd uses;
// v4 says that it speaks IPv4, on whatever kind of socket. It asks the kernel
// for the saved SYN, which can be read once.
func clientDSCP(fd int, v4 bool, buf []byte) (classify.DSCP, bool) {
	if n := getsockopt(fd, unix.IPPROTO_TCP, unix.TCP_SAVED_SYN, buf); n > 0 {
		if d, err := classify.HeaderDSCP(buf[:n]); err == nil {
			return d, true
		}
	}
	return handshakeDSCP(fd, v4, buf)
}

// handshakeDSCP reads the TOS octet of the last packet of the handshake.
func handshakeDSCP(fd int, v4 bool, buf []byte) (classify.DSCP, bool) {
	level, receive, options, kind := unix.IPPROTO_IP, unix.IP_RECVTOS, unix.IP_PKTOPTIONS, unix.IP_TOS
	if !v4 {
		level, receive, options, kind = unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, unix.IPV6_2292PKTOPTIONS, unix.IPV6_TCLASS
	}
	set(fd, level, receive, 1)
	return tosMessage(buf[:getsockopt(fd, level, options, buf)], int32(level), int32(kind))
}

// tosMessage finds the control message that carries the TOS octet.
func tosMessage(control []byte, level, kind int32) (classify.DSCP, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == level && m.Header.Type == kind && len(m.Data) > 0 {
			return classify.DSCP(m.Data[0] >> 2), true
		}
	}
	return 0, false
}

// getsockopt fills buf with an option and returns its length, 0 on any error.
// The string variant of the unix package would cut it at the first zero byte.
func getsockopt(fd, level, opt int, buf []byte) int {
	size := uint32(len(buf))
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0
	}
	return int(size)
}
