package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What the host is like, whatever its interfaces are.

// fastClocks are read without a system call.
var fastClocks = []string{"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen", "riscv_clocksource", "timebase", "stp"}

func checkClockSource(f *Facts) []Finding {
	const dir = "sys/devices/system/clocksource/clocksource0/"
	switch name := f.read(dir + "current_clocksource"); {
	case name == "":
		return nil
	case !slices.Contains(fastClocks, name):
		cure := ""
		for other := range strings.FieldsSeq(f.read(dir + "available_clocksource")) {
			if slices.Contains(fastClocks, other) {
				cure = fmt.Sprintf("echo %s >/%scurrent_clocksource", other, dir)
				break
			}
		}
		return all(warning("the clock is "+name, "each look at it is a system call of about a microsecond: a relay looks at each turn", cure))
	default:
		return all(ok("the clock is %s", name))
	}
}

// coarse is above what high-resolution timers have: then it is a tick of the kernel.
const coarse = 10 * time.Microsecond

func checkTimers(f *Facts) []Finding {
	switch {
	case f.Timer == 0:
		return nil
	case f.Timer > coarse:
		return all(warning(fmt.Sprintf("timers come every %s", f.Timer), "what is shaped leaves in lumps of as long as that", "a kernel with CONFIG_HIGH_RES_TIMERS, without highres=off"))
	}
	return all(ok("timers are fine to %s", f.Timer))
}

func checkCongestionControl(f *Facts) []Finding {
	switch name := f.read("proc/sys/net/ipv4/tcp_congestion_control"); {
	case name == "" || len(f.Policy.Relays) == 0:
		return nil
	case strings.HasPrefix(name, "bbr"):
		return all(info("the congestion control is "+name, "it paces by itself, too: tests over loopback show its rates, not the classes'", "sysctl net.ipv4.tcp_congestion_control=cubic   # to measure"))
	default:
		return all(ok("the congestion control is %s", name))
	}
}

func checkForwarding(f *Facts) []Finding {
	v4, known := f.number("proc/sys/net/ipv4/ip_forward")
	v6, _ := f.number("proc/sys/net/ipv6/conf/all/forwarding")
	switch {
	case !known || len(f.shaped()) == 0:
		return nil
	case v4 == 0 && v6 == 0 && len(f.shaped()) > 1:
		return all(info("this host does not forward", "several interfaces are shaped, and only its own traffic passes them", "sysctl net.ipv4.ip_forward=1   # for a router"))
	case v4 == 0 && v6 == 0:
		return all(ok("this host does not forward: its own traffic is shaped"))
	}
	return all(ok("this host forwards"))
}

func checkIPv6(f *Facts) (list []Finding) {
	off, known := f.number("proc/sys/net/ipv6/conf/all/disable_ipv6")
	if known && off == 0 {
		return all(ok("IPv6 is on"))
	}
	if known || f.exists("proc/sys/net/ipv4") { // else nothing is known of either
		for _, a := range f.addresses() {
			if a.Addr().Is6() && !a.Addr().IsUnspecified() {
				list = append(list, problem(fmt.Sprintf("IPv6 is off, and %s is IPv6", a), "shaperd cannot start", "sysctl net.ipv6.conf.all.disable_ipv6=0, or listen on IPv4").of(a.subject))
			}
		}
		if list == nil {
			list = all(info("IPv6 is off", "rules and listeners of IPv6 see nothing", ""))
		}
	}
	return list
}
