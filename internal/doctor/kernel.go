package doctor

import (
	"fmt"
	"strings"
)

func checkVersion(f *Facts) []Finding {
	var major, minor int
	if n, _ := fmt.Sscanf(f.read("proc/sys/kernel/osrelease"), "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	const forPacing, forBPF = 5<<8 | 11, 5<<8 | 13
	at := major<<8 | minor
	switch {
	case at < forPacing:
		return all(warning(f.system()+" is older than 5.11", "a relay paces in whole milliseconds; u32 filters classify", "a kernel of 5.13 or later"))
	case at < forBPF && needsClasses(f):
		return all(warning(f.system()+" is older than 5.13", "u32 filters classify: the cost grows with the rules", "a kernel of 5.13 or later"))
	}
	return all(ok("%s is new enough", f.system()))
}

// checkJIT has nothing to say where the setting is not to be seen: in a container, or without root.
func checkJIT(f *Facts) []Finding {
	on, known := f.number("proc/sys/net/core/bpf_jit_enable")
	switch {
	case !needsClasses(f) || !known:
		return nil
	case on == 0:
		return all(warning("eBPF is interpreted", "the classifier takes several times the processor time for each packet", "sysctl net.core.bpf_jit_enable=1"))
	}
	return all(ok("eBPF is compiled"))
}

// checkLockdown is for whom a missing module surprises.
func checkLockdown(f *Facts) []Finding {
	_, rest, _ := strings.Cut(f.read("sys/kernel/security/lockdown"), "[")
	mode, _, _ := strings.Cut(rest, "]")
	switch {
	case !needsInterfaces(f) || mode == "":
		return nil
	case mode == "none":
		return all(ok("the kernel is not locked down"))
	}
	return all(info("the kernel is locked down: "+mode, "modules that are not signed are not loaded; the classifier is", ""))
}
