package doctor

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/configs"
	"shaperd/internal/store"
	"shaperd/netlink"
	"shaperd/shaper"
)

// Facts are what is known of a host, and the policy it is to carry out.
type Facts struct {
	Policy *configs.Policy
	// System is the root of the file system; what it does not have, or does not show, is not known.
	System fs.FS

	Links         []netlink.LinkInfo
	LinksErr      error
	Features      []netlink.Feature
	FeaturesErr   error // why they could not be tried
	Flowtables    []netlink.Flowtable
	FlowtablesErr error
	Timer         time.Duration // the resolution of timers; 0 is not known
	Redis         *store.Report // of shared classes; nil where there is none
	RedisErr      error         // why it is of no use

	// Daemon is the one that answers on the control socket; nil for none. Whoever
	// gathers the rest asks it, or says why it cannot be asked.
	Daemon    *Daemon
	DaemonErr error
}

// Gather reads the facts of this host, in the network namespace of the calling
// thread, all but the daemon. It takes some tens of milliseconds.
func Gather(p *configs.Policy) *Facts {
	f := &Facts{Policy: p, System: os.DirFS("/")}
	f.Links, f.LinksErr = netlink.Inspect()
	f.Features, f.FeaturesErr = netlink.Probe()
	f.Flowtables, f.FlowtablesErr = netlink.Flowtables()
	var ts unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC, &ts) == nil {
		f.Timer = time.Duration(ts.Nano())
	}
	f.askRedis()
	return f
}

// What findings about other things than interfaces are about.
const (
	relayPrefix    = "relay "
	metricsSubject = "metrics"
)

// read returns a small file's text without the space around it, "" where there is none to read.
func (f *Facts) read(name string) string {
	text, err := fs.ReadFile(f.System, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// number returns the number that a file begins with.
func (f *Facts) number(name string) (n int, known bool) {
	first, _, _ := strings.Cut(f.read(name), "\t")
	n, err := strconv.Atoi(first)
	return n, err == nil
}

// exists reports whether there is such a file or folder.
func (f *Facts) exists(name string) bool {
	_, err := fs.Stat(f.System, name)
	return err == nil
}

// programs returns the processes by their names.
func (f *Facts) programs() map[string][]int {
	out := map[string][]int{}
	found, _ := fs.Glob(f.System, "proc/[0-9]*/comm")
	for _, name := range found {
		pid, err := strconv.Atoi(path.Base(path.Dir(name)))
		if comm := f.read(name); err == nil && comm != "" {
			out[comm] = append(out[comm], pid)
		}
	}
	return out
}

// system is what kernel this is.
func (f *Facts) system() string {
	return strings.TrimSpace("Linux " + f.read("proc/sys/kernel/osrelease"))
}

// A shapedLink is an interface that exists, with what the policy says of it.
type shapedLink struct {
	entry *configs.Interface
	info  *netlink.LinkInfo
}

// shaped returns the interfaces that the policy shapes and that exist.
func (f *Facts) shaped() (list []shapedLink) {
	for i := range f.Links {
		l := &f.Links[i]
		if e := f.entry(l.Name); e != nil && (!l.Loopback || e.Name == l.Name) {
			list = append(list, shapedLink{e, l})
		}
	}
	return list
}

// entry returns what the policy says of an interface, nil for nothing: names
// come before patterns, as in the datapath.
func (f *Facts) entry(device string) *configs.Interface {
	all := f.Policy.Interfaces
	at := slices.IndexFunc(all, func(e configs.Interface) bool { return e.Name == device })
	if at < 0 {
		at = slices.IndexFunc(all, func(e configs.Interface) bool {
			match, err := path.Match(e.Name, device)
			return match && err == nil
		})
	}
	if at < 0 {
		return nil
	}
	return &all[at]
}

// awaited returns the names and patterns of the policy that no interface has.
func (f *Facts) awaited() (names []string) {
	if f.LinksErr != nil {
		return nil
	}
	there := map[*configs.Interface]bool{}
	for _, l := range f.shaped() {
		there[l.entry] = true
	}
	for i := range f.Policy.Interfaces {
		if e := &f.Policy.Interfaces[i]; !there[e] {
			names = append(names, e.Name)
		}
	}
	return names
}

// shapes reports whether the policy has interfaces, and what it wants of them.
func (f *Facts) shapes() (some, arriving, classes bool) {
	for i := range f.Policy.Interfaces {
		e := &f.Policy.Interfaces[i]
		some = true
		arriving = arriving || e.Ingress.Rate > 0
		for _, l := range links(e) {
			classes = classes || len(l.Classes) > 1 || len(l.Classes) == 1 && l.Classes[0].Ceil != l.Rate
		}
	}
	return some, arriving, classes
}

// forAll calls find for each interface that is shaped, and adds what it finds.
func (f *Facts) forAll(find func(l shapedLink) []Finding) (list []Finding) {
	for _, l := range f.shaped() {
		for _, x := range find(l) {
			list = append(list, x.of(l.info.Name))
		}
	}
	return list
}

// leaves calls use with each class of a link that holds packets.
func leaves(classes []shaper.Class, use func(*shaper.Class)) {
	for i := range classes {
		if c := &classes[i]; c.Leaf() {
			use(c)
		} else {
			leaves(c.Children, use)
		}
	}
}

// links returns the directions of an interface that are shaped.
func links(e *configs.Interface) (list []*shaper.Link) {
	for _, l := range []*shaper.Link{&e.Egress, &e.Ingress} {
		if l.Rate > 0 {
			list = append(list, l)
		}
	}
	return list
}
