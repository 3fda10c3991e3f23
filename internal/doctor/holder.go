package doctor

import (
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
)

// A Daemon is what a shaperd that runs says of itself.
type Daemon struct {
	PID     int
	Policy  string           // its name
	Relays  []netip.AddrPort // where its relays accept
	Metrics netip.AddrPort   // the zero one for none
	Admits  netip.AddrPort   // where programs ask for admission; the zero one for nowhere
}

// serves reports whether the daemon has what the policy wants at the address.
func (d *Daemon) serves(a address) bool {
	switch a.subject {
	case metricsSubject:
		return d.Metrics == a.AddrPort
	case admissionSubject:
		return d.Admits == a.AddrPort
	}
	return slices.Contains(d.Relays, a.AddrPort)
}

// A process is one that has a socket.
type process struct {
	name string // "" where that is not to be seen
	pid  int
}

// holder returns who has a socket, and whether that is the daemon that was
// asked. Of several processes that have it, as a service manager's, it is that.
func (f *Facts) holder(s listening) (p process, daemon bool) {
	d := f.Daemon
	all := f.owners(s.inode)
	if i := slices.IndexFunc(all, func(p process) bool { return d != nil && p.pid == d.PID }); i >= 0 {
		return all[i], true
	}
	if i := slices.IndexFunc(all, func(p process) bool { return p.name == "shaperd" }); i >= 0 {
		return all[i], false
	}
	if len(all) > 0 {
		return all[0], false
	}
	if d != nil && (d.Metrics == s.AddrPort || d.Admits == s.AddrPort || slices.Contains(d.Relays, s.AddrPort)) { // it says so
		return process{"shaperd", d.PID}, true
	}
	return process{}, false
}

// inUse is the finding for an address of the policy that another socket has.
func (f *Facts) inUse(a address, other listening) Finding {
	const stop = "stop it, or listen elsewhere"
	by, daemon := f.holder(other)
	switch {
	case daemon:
		return f.inUseByDaemon(a, other)
	case dualStack(a.AddrPort, other.AddrPort):
		who := "another program"
		if by.name != "" {
			who = fmt.Sprintf("%s, pid %d,", by.name, by.pid)
		}
		return warning(fmt.Sprintf("%s listens on %s, beside %s", who, other, a), "unless that is for IPv6 only, shaperd cannot start", stop)
	case by.name == "shaperd" && f.DaemonErr != nil:
		return warning(fmt.Sprintf("%s is held by shaperd, pid %d, and the daemon cannot be asked: %v", a, by.pid, f.DaemonErr),
			"unless that runs this policy, shaperd cannot start", "ask as root, or name its control socket with --socket")
	case by.name == "shaperd" && f.Policy.Admin.Off:
		return warning(fmt.Sprintf("%s is held by shaperd, pid %d, and this policy has no control socket to ask", a, by.pid),
			"unless that runs this policy, shaperd cannot start", stop)
	case by.name == "shaperd" && f.Daemon != nil:
		return problem(fmt.Sprintf("%s is in use by another shaperd, pid %d: the daemon that answers is pid %d, with the policy %s", a, by.pid, f.Daemon.PID, f.Daemon.Policy),
			"shaperd cannot start", stop+", or name its control socket with --socket")
	case by.name == "shaperd":
		return problem(fmt.Sprintf("%s is in use by shaperd, pid %d, which does not answer on the control socket", a, by.pid),
			"shaperd cannot start", stop+", or name its control socket with --socket")
	case by == process{"systemd", 1}:
		return warning(fmt.Sprintf("%s is held by systemd for a service", a), "unless that is shaperd.socket, shaperd cannot start",
			"systemctl list-sockets   # says for which")
	case by.name != "":
		return problem(fmt.Sprintf("%s is in use by %s, pid %d", a, by.name, by.pid), "shaperd cannot start", stop)
	}
	return problem(fmt.Sprintf("%s is in use", a), "shaperd cannot start", fmt.Sprintf("sudo ss -ltnp 'sport = :%d'   # by whom; as root this is said here", a.Port()))
}

// inUseByDaemon is the finding for an address that a socket of the daemon's has.
// A reload keeps what it has where the policy wants the same there. All else
// that is new is bound first, and so collides.
func (f *Facts) inUseByDaemon(a address, other listening) Finding {
	kept := slices.ContainsFunc(f.addresses(), func(x address) bool { return x.AddrPort == other.AddrPort && f.Daemon.serves(x) })
	holds := fmt.Sprintf("%s is held by the daemon, pid %d", a, f.Daemon.PID)
	switch {
	case a.AddrPort != other.AddrPort && kept:
		return ok("%s is beside %s of the daemon", a, other)
	case a.AddrPort != other.AddrPort:
		return warning(fmt.Sprintf("the daemon, pid %d, has %s, which takes %s along", f.Daemon.PID, other, a), "a reload to this policy is refused",
			"systemctl restart shaperd   # instead")
	case !f.Daemon.serves(a):
		return warning(holds+", for something else", "a reload to this policy is refused", "systemctl restart shaperd   # instead")
	case f.Daemon.Policy != f.Policy.Name:
		return info(holds+", which has the policy "+f.Daemon.Policy, "as it should be if this policy is to take its place", "")
	}
	return info(holds, "as it should be while that runs", "")
}

// owners returns the processes that have a socket; none where that is not to be seen.
func (f *Facts) owners(inode string) (all []process) {
	found, _ := fs.Glob(f.System, "proc/[0-9]*/fd/*")
	for _, fd := range found {
		if to, err := fs.ReadLink(f.System, fd); err == nil && to == "socket:["+inode+"]" {
			dir := path.Dir(path.Dir(fd))
			pid, _ := strconv.Atoi(path.Base(dir))
			all = append(all, process{f.read(dir + "/comm"), pid})
		}
	}
	return all
}
