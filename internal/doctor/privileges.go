package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const byUnit = "sudo, or the systemd unit, which grants it"

// capable reports which capabilities this process has in effect.
func (f *Facts) capable() (has func(capability uint) bool, known bool) {
	_, rest, _ := strings.Cut(f.read("proc/thread-self/status"), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return func(c uint) bool { return set>>c&1 == 1 }, err == nil
}

func checkNetAdmin(f *Facts) (list []Finding) {
	marked := ""
	for class, m := range f.Policy.Marks {
		if m.Fwmark != 0 && (marked == "" || class < marked) {
			marked = class
		}
	}
	shapes, relays := needsInterfaces(f), marked != "" && len(f.Policy.Relays) > 0
	has, known := f.capable()
	switch {
	case !known:
		return all(info("the capabilities of this process are not known", "", ""))
	case has(unix.CAP_NET_ADMIN):
		return all(ok("CAP_NET_ADMIN is there"))
	case shapes:
		list = append(list, problem("this process has no CAP_NET_ADMIN", "the kernel takes no shaping from it", byUnit).stopping(allInterfaces))
	}
	if relays {
		list = append(list, problem("this process has no CAP_NET_ADMIN", fmt.Sprintf("the fwmark of class %s cannot be set", marked), byUnit).stopping(allRelays))
	}
	if list == nil {
		list = all(ok("CAP_NET_ADMIN is not needed"))
	}
	return list
}

// checkBPFCapabilities is about CAP_PERFMON too: without it the verifier gives
// up on a program of the classifier's size.
func checkBPFCapabilities(f *Facts) []Finding {
	has, known := f.capable()
	if !known {
		return nil
	}
	var missing []string
	for _, c := range []struct {
		name   string
		number uint
	}{{"CAP_BPF", unix.CAP_BPF}, {"CAP_PERFMON", unix.CAP_PERFMON}} {
		if !has(c.number) && !has(unix.CAP_SYS_ADMIN) {
			missing = append(missing, c.name)
		}
	}
	switch {
	case len(missing) == 0:
		return all(ok("CAP_BPF and CAP_PERFMON are there"))
	case !needsClasses(f):
		return all(ok("CAP_BPF and CAP_PERFMON are not needed"))
	}
	found := "this process has no " + missing[0]
	if len(missing) > 1 {
		found = "this process has neither CAP_BPF nor CAP_PERFMON"
	}
	return all(warning(found, "u32 filters classify: the cost grows with the rules", byUnit))
}

func checkBindService(f *Facts) (list []Finding) {
	first, known := f.number("proc/sys/net/ipv4/ip_unprivileged_port_start")
	if !known {
		first = 1024
	}
	has, known := f.capable()
	for _, a := range f.addresses() {
		if int(a.Port()) >= first {
			continue
		}
		switch {
		case !known:
			return nil
		case has(unix.CAP_NET_BIND_SERVICE):
			return all(ok("CAP_NET_BIND_SERVICE is there"))
		}
		list = append(list, problem(fmt.Sprintf("%s is below port %d, and this process has no CAP_NET_BIND_SERVICE", a, first),
			"shaperd cannot start", fmt.Sprintf("%s; or sysctl net.ipv4.ip_unprivileged_port_start=%d", byUnit, a.Port())).of(a.subject))
	}
	if list == nil {
		list = all(ok("no port below %d", first))
	}
	return list
}
