package netlink

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Kernel is what a plan has to know of the kernel.
type Kernel struct {
	FqCodel bool // it has the fair queue
}

var thisKernel = sync.OnceValue(func() Kernel { return Kernel{FqCodel: hasQdisc("fq_codel")} })

// hasQdisc reports whether the running kernel has a kind of qdisc or can load
// it, without asking it to: as a module, or among its own functions.
func hasQdisc(kind string) bool {
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		dir := filepath.Join("/lib/modules", unix.ByteSliceToString(u.Release[:]))
		for _, list := range []string{"modules.builtin", "modules.dep"} {
			if text, err := os.ReadFile(filepath.Join(dir, list)); err == nil && bytes.Contains(text, []byte("/sch_"+kind+".ko")) {
				return true
			}
		}
	}
	symbols, err := os.Open("/proc/kallsyms")
	if err != nil {
		return false
	}
	defer symbols.Close()
	for lines := bufio.NewScanner(symbols); lines.Scan(); {
		if bytes.Contains(lines.Bytes(), []byte(" "+kind+"_init")) {
			return true
		}
	}
	return false
}
