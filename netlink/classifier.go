package netlink

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/bpf"
	"shaperd/netlink/u32"
)

// Preferences of filters at an HTB root: of the one that runs the eBPF
// classifier, and the first of a set of u32 filters.
const (
	prefBPF = prefFirst + 8
	prefU32 = prefFirst + 1
	// filterAlternate is how far the preferences of the two sets of u32 filters are apart.
	filterAlternate = 8
)

// A classifier is what the policy's rules are compiled to, for all links that
// have classes, and the program that is to run them, if that is permitted.
type classifier struct {
	filters [2][]filter // of an HTB root; the second set has other preferences, for u32

	tables  *bpf.Tables
	program *bpf.Program // nil in a plan that finds none in the kernel, and with u32
	old     *bpf.Program // what the filters ran until now, if another
	before  *bpf.Tables  // what the program has until now; nil when it is new, or has these already
	without error        // why u32 has to do
	hidden  bool         // filters run a program whose rules cannot be seen
}

// newClassifier compiles the rules and finds or loads the program for them.
// With dry it only looks: then nothing is loaded.
func (d *Datapath) newClassifier(rules classify.Rules, minors map[string]uint16, sites []*site, dry bool) (*classifier, error) {
	tables, err := bpf.Compile(rules, minors, minorControl)
	if err != nil {
		return nil, err
	}
	c := &classifier{tables: tables, program: d.program}
	if c.program == nil {
		c.program = d.find(sites)
		d.program, d.tables = c.program, nil
	}
	if c.program != nil {
		has, err := c.program.Fingerprint()
		switch {
		case err == nil && has == tables.Fingerprint():
			return c.withBPF(), nil
		case err == nil && d.tables != nil && c.program.Fits(tables):
			c.before = d.tables
			return c.withBPF(), nil
		}
	}
	c.old, c.program = c.program, nil
	switch {
	case dry && c.old == nil && runsBPF(sites):
		return c.unseen(), nil
	case d.withoutBPF != nil:
		c.without = d.withoutBPF
	case dry:
		c.without = bpf.Permitted()
	default:
		c.program, c.without = bpf.Load(tables)
	}
	if c.without != nil {
		return c.withU32(rules, minors)
	}
	if c.withBPF(); dry {
		shown, err := (&classifier{}).withU32(rules, minors)
		if err == nil { // else there are too many for u32, and nothing to show
			c.filters[0][0].instead = shown.filters[0]
		}
	}
	return c, nil
}

// runsBPF reports whether filters of ours run a program.
func runsBPF(sites []*site) bool {
	for _, s := range sites {
		for _, has := range []*state{s.egressHas, s.ingressHas} {
			if slices.ContainsFunc(has.filters, func(f filter) bool { return f.kind == kindBPF && f.pref == prefBPF }) {
				return true
			}
		}
	}
	return false
}

// unseen takes the program that filters run for the right one: the kernel does
// not give it without CAP_SYS_ADMIN.
func (c *classifier) unseen() *classifier {
	c.hidden = true
	f := bpfFilter(nil)
	f.same = func([]byte) bool { return true }
	c.filters = [2][]filter{{f}, {f}}
	return c
}

func (c *classifier) withBPF() *classifier {
	c.filters[0] = []filter{bpfFilter(c.program)}
	c.filters[1] = c.filters[0]
	return c
}

// withU32 makes two sets of filters with nothing in common, so that a new one
// can be there before the old one goes.
func (c *classifier) withU32(rules classify.Rules, minors map[string]uint16) (*classifier, error) {
	for set := range c.filters {
		t, err := u32.Compile(rules, minors, minorControl, rootMajor, []uint32{0x100, 0x400}[set])
		if err != nil {
			return nil, err
		}
		for i := range t.Nodes {
			n := &t.Nodes[i]
			c.filters[set] = append(c.filters[set], filter{
				parent: htbRoot, pref: prefU32 + uint16(set*filterAlternate+n.Slot), protocol: n.Protocol, kind: kindU32, handle: n.Handle,
				options: n.Options(), same: n.Same, name: "of the policy's rules", words: n.Command(), table: n.IsTable(),
			})
		}
	}
	return c, nil
}

// notes are what the classifier cannot see.
func (c *classifier) notes() (list []string) {
	if c.hidden {
		return []string{"an eBPF program classifies; whether it has the policy's rules only root can see"}
	}
	if c.without == nil {
		return nil
	}
	list = append(list, fmt.Sprintf("u32 filters classify, at a cost that grows with the rules: %v", c.without))
	return append(list, u32.Limits...)
}

// find returns the program that filters of ours already run, nil for none or when the kernel does not give it.
func (d *Datapath) find(sites []*site) *bpf.Program {
	for _, s := range sites {
		for _, has := range []*state{s.egressHas, s.ingressHas} {
			for i := range has.filters {
				if f := &has.filters[i]; f.kind == kindBPF && f.pref == prefBPF {
					p, err := bpf.Find(programOf(f.options))
					if err == nil {
						return p
					}
					if !errors.Is(err, unix.EPERM) { // which is as usual for a service: only root is given it
						d.log.Warn("the classifier in the kernel is not taken over", "error", err)
					}
				}
			}
		}
	}
	return nil
}

// programOf returns the number of the program that a dumped filter runs.
func programOf(options []byte) (id uint32) {
	attributes(options, func(typ uint16, value []byte) {
		if typ == nl.TCA_BPF_ID {
			id = u32At(value, 0)
		}
	})
	return id
}

// bpfFilter is the filter that runs the program; of a nil one it can be shown, not sent.
func bpfFilter(p *bpf.Program) filter {
	f := filter{
		parent: htbRoot, pref: prefBPF, protocol: unix.ETH_P_ALL, kind: kindBPF, handle: 1, name: "of the policy's rules",
		why:  "one eBPF program for all rules: the cost does not grow with their number",
		same: func([]byte) bool { return false }, words: "bpf direct-action classid " + htbRoot.String(),
	}
	if p == nil {
		return f
	}
	id := p.ID()
	f.same = func(dumped []byte) bool { return programOf(dumped) == id }
	f.options = bpfOptions(p.FD())
	return f
}

func bpfOptions(fd int) (a attrs) {
	a.u32(nl.TCA_BPF_CLASSID, uint32(htbRoot))
	a.u32(nl.TCA_BPF_FD, uint32(fd))
	a.text(nl.TCA_BPF_NAME, "shaperd")
	a.u32(nl.TCA_BPF_FLAGS, nl.TCA_BPF_FLAG_ACT_DIRECT)
	return a
}

// change is what is to be done to the program itself, nil for nothing.
func (c *classifier) change() []Change {
	if c.before == nil {
		return nil
	}
	return []Change{{
		Device: "all", Verb: verbChange, Object: "classifier", Why: "the rules are others", Command: "# the classifier's rules change: tc cannot", phase: phaseFilter,
	}}
}

// update puts the rules into force, between what they need and what they make needless.
func (c *classifier) update() error {
	if c.before == nil {
		return nil
	}
	return c.program.Update(c.tables)
}

// settle makes c the datapath's classifier.
func (d *Datapath) settle(c *classifier) {
	if c.old != nil {
		_ = c.old.Close()
	}
	d.program, d.tables, d.sets = c.program, c.tables, c.filters
	d.current = &classifier{filters: c.filters, tables: c.tables, program: c.program, without: c.without}
}

// drop undoes what newClassifier and update have done.
func (d *Datapath) drop(c *classifier) error {
	var err error
	if c.before != nil {
		err = c.program.Update(c.before)
	}
	if c.program != nil && c.program != d.program {
		err = errors.Join(err, c.program.Close())
	}
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	return nil
}

// resend makes dumped filters such as can be sent again: a program's number becomes a descriptor.
func (d *Datapath) resend(dumped []filter) (set [2][]filter) {
	filters := slices.DeleteFunc(slices.Clone(dumped), func(f filter) bool { return f.parent != htbRoot })
	if d.sets[0] != nil && sameFilters(filters, d.sets[0]) || d.sets[1] != nil && sameFilters(filters, d.sets[1]) {
		return d.sets // as they were made, with their hash tables
	}
	for i := range filters {
		f := &filters[i]
		if p := d.program; f.kind == kindBPF && p != nil && p.ID() == programOf(f.options) {
			*f = bpfFilter(p)
			continue
		}
		had := f.options
		f.same = func(b []byte) bool { return slices.Equal(b, had) }
	}
	return [2][]filter{filters, filters}
}
