package bpf

import (
	"os"
	"strconv"
	"strings"
)

// Permitted reports whether this process has the capabilities that Load needs,
// as far as can be known without loading.
func Permitted() bool {
	const sysAdmin, perfmon, bpf = 21, 38, 39
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	has, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && (has>>sysAdmin&1 == 1 || has>>perfmon&1 == 1 && has>>bpf&1 == 1)
}
