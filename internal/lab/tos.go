package lab

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// SetTOS sets the octet that a connection's packets carry: the DSCP is in its
// upper six bits.
func SetTOS(c *net.TCPConn, tos int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	level, option := unix.IPPROTO_IP, unix.IP_TOS
	if c.RemoteAddr().(*net.TCPAddr).IP.To4() == nil {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), level, option, tos) }); err != nil {
		return err
	}
	if set != nil {
		return fmt.Errorf("set the DSCP: %w", set)
	}
	return nil
}
