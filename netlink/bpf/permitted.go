package bpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Permitted returns nil when the calling thread has the capabilities that Load
// needs, else the error that Load returns, as far as can be known without loading.
func Permitted() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("read this thread's capabilities: %w", err)
	}
	effective := func(c uint) bool { return has[c/32].Effective>>(c%32)&1 == 1 }
	if effective(unix.CAP_SYS_ADMIN) || effective(unix.CAP_PERFMON) && effective(unix.CAP_BPF) {
		return nil
	}
	return describe(unix.EPERM)
}
