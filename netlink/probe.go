package netlink

import (
	"fmt"
	"runtime"

	vnl "github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/bpf"
	"shaperd/shaper"
)

// A Feature is a part of the kernel that the datapath is built of, by the name
// of its module, and what the kernel said to its use.
type Feature struct {
	Name string
	Err  error // nil: it works
}

// Features are the names of what Probe tries, in its order.
var Features = []string{"sch_htb", "sch_tbf", "sch_fq_codel", "sch_ingress", "ifb", "cls_u32", "act_mirred", "cls_bpf"}

// Probe tries each part of the kernel in a network namespace that it makes and
// gives up again: nothing of the host's is touched, but the kernel may load
// modules, as it would for Apply. An error says that no namespace could be made,
// which needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
func Probe() (list []Feature, err error) {
	done := make(chan struct{})
	go probeThread(&list, &err, done)
	<-done
	return list, err
}

// probeThread runs the probe on a thread that ends with it, and with the thread its namespace.
func probeThread(list *[]Feature, err *error, done chan<- struct{}) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() { // this thread's namespace passes for the whole process's
		moved := make(chan struct{})
		go probeThread(list, err, moved)
		<-moved // held until then, so that the other is another thread
		runtime.UnlockOSThread()
		close(done)
		return
	}
	defer close(done)
	*list, *err = probeApart()
}

// probeApart takes the thread to a new namespace, for good, and tries all on the loopback device there.
func probeApart() ([]Feature, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("new network namespace: %w", err)
	}
	d, err := Open(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	lo, err := d.links.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("find lo: %w", err)
	}
	index := int32(lo.Attrs().Index)
	works := map[string]error{"sch_fq_codel": d.tryQdisc(index, fqCodel{limit: 1000, quantum: 1514})}
	works["sch_tbf"] = d.tryQdisc(index, tbf{rate: shaper.Mbit, burst: 3028, limit: 65536})
	works["sch_htb"] = d.tryQdisc(index, htb{defaultMinor: 1, directQlen: directQlen})
	q := clsact()
	body := attrs(tcmsg{index: index, handle: q.handle, parent: q.parent}.append(nil))
	body.text(nl.TCA_KIND, kindClsact)
	works["sch_ingress"] = d.try(request{unix.RTM_NEWQDISC, flagsAdd, body})
	if works["sch_ingress"] == nil {
		f := redirect("lo", index)
		works["act_mirred"] = d.try(f.message(index, flagsAdd))
		works["cls_u32"] = d.try(plainU32(index))
		works["cls_bpf"] = d.tryBPF(index)
	} else { // filters need a place
		for _, name := range []string{"act_mirred", "cls_u32", "cls_bpf"} {
			works[name] = works["sch_ingress"]
		}
	}
	works["ifb"] = d.links.LinkAdd(&vnl.Ifb{LinkAttrs: vnl.LinkAttrs{Name: ifbPrefix + "probe"}})
	list := make([]Feature, len(Features))
	for i, name := range Features {
		list[i] = Feature{name, works[name]}
	}
	return list, nil
}

// try sends one request.
func (d *Datapath) try(r request) error {
	return d.socket.do([]request{r}, func(_ int, err error) error { return err })
}

// tryQdisc puts a qdisc at the root in place of the last one.
func (d *Datapath) tryQdisc(index int32, o options) error {
	q := qdisc{handle: htbRoot, parent: root, options: o}
	_ = d.try(q.removal(index)) // there may be none
	return d.try(q.message(index, flagsAdd, true))
}

// plainU32 adds a u32 filter that does nothing.
func plainU32(index int32) request {
	var out attrs
	sel := make([]byte, 16+16)
	sel[0], sel[2] = 1, 1
	out.bytes(nl.TCA_U32_SEL, sel)
	f := filter{parent: ingressHook, pref: prefU32, protocol: unix.ETH_P_ALL, kind: kindU32, options: out}
	return f.message(index, flagsAdd)
}

// tryBPF loads the classifier, with no rules, and has a filter run it.
func (d *Datapath) tryBPF(index int32) error {
	const only = "only"
	tables, err := bpf.Compile(classify.Rules{Default: only}, map[string]uint16{only: minorDefault}, minorControl)
	if err != nil {
		return err
	}
	p, err := bpf.Load(tables)
	if err != nil {
		return err
	}
	f := bpfFilter(p)
	f.parent = ingressHook
	err = d.try(f.message(index, flagsAdd))
	_ = p.Close() // the filter keeps it
	return err
}
