package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What bounds a relay.

const (
	perSession = 2   // descriptors
	perRelay   = 200 // its pipes, listeners and the rest
	pipePages  = 256 // of 4 KiB in a pipe of 1 MiB
	maxPipes   = 64  // of one relay
)

// sessions returns how many the relays may have together; some have no limit.
func (f *Facts) sessions() (sum int, unlimited bool) {
	for i := range f.Policy.Relays {
		n := f.Policy.Relays[i].Limits.Sessions
		sum += n
		unlimited = unlimited || n == 0
	}
	return sum, unlimited
}

// checkDescriptors looks at the hard limit: the daemon raises the soft one to it.
func checkDescriptors(f *Facts) []Finding {
	relays := len(f.Policy.Relays)
	_, rest, _ := strings.Cut(f.read("proc/thread-self/limits"), "Max open files")
	c := strings.Fields(rest)
	if relays == 0 || len(c) < 2 {
		return nil
	}
	hard, err := strconv.Atoi(c[1])
	if err != nil {
		return all(ok("open files are not limited"))
	}
	room := max(hard-relays*perRelay, 0) / perSession
	sum, unlimited := f.sessions()
	needed := sum*perSession + relays*perRelay
	const few = 1000
	switch {
	case sum > room:
		return all(warning(fmt.Sprintf("%d open files are room for %d sessions, and the policy has %d", hard, room, sum),
			"accepting pauses when they run out; clients wait", fmt.Sprintf("LimitNOFILE=%d in the unit, or ulimit -Hn %d", needed, needed)))
	case unlimited && room < few:
		return all(warning(fmt.Sprintf("%d open files are room for %d sessions", hard, room),
			"accepting pauses when they run out; clients wait", "LimitNOFILE=65536 in the unit, or ulimit -Hn 65536"))
	}
	return all(ok("room for %d sessions", room))
}

// checkPipes is for relays without root: the kernel bounds what pipes of a user may hold.
func checkPipes(f *Facts) []Finding {
	relays := len(f.Policy.Relays)
	has, known := f.capable()
	soft, limited := f.number("proc/sys/fs/pipe-user-pages-soft")
	switch needed := relays * maxPipes * pipePages; {
	case relays == 0 || !known || !limited:
		return nil
	case has(unix.CAP_SYS_RESOURCE) || has(unix.CAP_SYS_ADMIN):
		return all(ok("pipes are not limited for root; they are for the service's user"))
	case soft != 0 && soft < needed:
		return all(info(fmt.Sprintf("a user may have %d pipes of 1 MiB, and %s may use %d", soft/pipePages, count(relays, "relay"), relays*maxPipes),
			"more bulk sessions at a time are copied: more processor time, the same rates", fmt.Sprintf("sysctl fs.pipe-user-pages-soft=%d", needed)))
	}
	return all(ok("pipes for all relays"))
}

func checkListenQueue(f *Facts) []Finding {
	const little = 1024
	n, known := f.number("proc/sys/net/core/somaxconn")
	switch {
	case !known || len(f.Policy.Relays) == 0:
		return nil
	case n < little:
		return all(warning(fmt.Sprintf("%d clients may wait to be accepted", n), "more at once are dropped by the kernel, and try again after a second", "sysctl net.core.somaxconn=4096"))
	}
	return all(ok("%d clients may wait to be accepted", n))
}

// checkLocalPorts: to one upstream address a host has as many connections as ports.
func checkLocalPorts(f *Facts) (list []Finding) {
	c := strings.Fields(f.read("proc/sys/net/ipv4/ip_local_port_range"))
	if len(c) != 2 {
		return nil
	}
	low, err := strconv.Atoi(c[0])
	high, err2 := strconv.Atoi(c[1])
	if err != nil || err2 != nil {
		return nil
	}
	ports := high - low + 1
	for i := range f.Policy.Relays {
		if r := &f.Policy.Relays[i]; len(r.Upstream) > 0 && r.Limits.Sessions > ports*len(r.Upstream) {
			list = append(list, warning(fmt.Sprintf("relay %s may have %d sessions, and there are %d local ports for each upstream", r.Name, r.Limits.Sessions, ports),
				"no more can be connected, until some end", "sysctl net.ipv4.ip_local_port_range=\"1024 65535\"").of(relayPrefix+r.Name))
		}
	}
	if list == nil && len(f.Policy.Relays) > 0 {
		list = all(ok("%d local ports", ports))
	}
	return list
}

// checkSynCookies: of a SYN that was answered by a cookie the kernel keeps nothing.
func checkSynCookies(f *Facts) []Finding {
	marks := false
	for i := range f.Policy.Rules.List {
		marks = marks || len(f.Policy.Rules.List[i].Match.DSCP) > 0
	}
	mode, known := f.number("proc/sys/net/ipv4/tcp_syncookies")
	switch {
	case !known || !marks || len(f.Policy.Relays) == 0:
		return nil
	case mode > 1:
		return all(info("SYN cookies are always sent", "the DSCP of clients is taken from the handshake's last packet", "sysctl net.ipv4.tcp_syncookies=1"))
	}
	return all(ok("clients' SYNs are kept, and their DSCP"))
}
