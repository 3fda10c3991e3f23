package netlink

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	flagsAdd     = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	flagsReplace = unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	flagsChange  = 0
)

// A differ finds the changes from what one device has to what it is to have.
type differ struct {
	device  *Device
	has     *state
	wants   tree
	changes []Change
	fresh   bool              // the root is made anew, and all below it
	removed map[Handle]bool   // observed classes that go in phaseClear
	got     map[Handle]*class // observed, by handle
	parents map[Handle]bool   // observed classes that have classes
	queued  map[Handle]*qdisc // observed, by parent
	want    map[Handle]*class // planned, by handle
	actual  map[Handle]Handle // the handles of planned queues, which may be in either range
	kept    map[Handle]bool   // queues that stay, and with them what is in them
	late    map[Handle]bool   // planned queues of phaseLate
}

// diff returns the changes, none when there is nothing to do. An empty tree
// wants nothing of ours at the root.
func diff(d *Device, has *state, wants tree) []Change {
	df := differ{
		device: d, has: has, wants: wants, removed: map[Handle]bool{}, actual: map[Handle]Handle{}, kept: map[Handle]bool{}, late: map[Handle]bool{},
		got: map[Handle]*class{}, parents: map[Handle]bool{}, queued: map[Handle]*qdisc{}, want: map[Handle]*class{},
	}
	for i := range has.classes {
		df.got[has.classes[i].handle] = &has.classes[i]
		df.parents[has.classes[i].parent] = true
	}
	for i := range has.qdiscs {
		df.queued[has.qdiscs[i].parent] = &has.qdiscs[i]
	}
	for i := range wants.classes {
		df.want[wants.classes[i].handle] = &wants.classes[i]
	}
	df.root()
	if len(wants.qdiscs) == 0 {
		return df.changes
	}
	df.moved()
	df.classes()
	df.queues()
	df.filters()
	df.removals()
	return df.changes
}

func (df *differ) index() int32 { return int32(df.device.Index) }

func (df *differ) change(p phase, verb, object, command string, fields []FieldChange, why string, send request) {
	df.changes = append(df.changes, Change{
		Device: df.device.Name, Verb: verb, Object: object, Fields: fields, Why: why, Command: "tc " + command, phase: p, send: send,
	})
}

// root compares the root qdisc; HTB's cannot change but for its overhead.
func (df *differ) root() {
	got := df.has.root()
	if len(df.wants.qdiscs) == 0 {
		if got != nil {
			df.deleteRoot(got, "the policy does not shape it", phaseRemove)
			if old := df.has.prior; old.restorable() {
				df.change(phaseRemove, verbAdd, old.kind+" "+old.handle.String(), "qdisc replace dev "+df.device.Name+" root handle "+old.handle.String()+" "+old.kind,
					nil, "what was there before", old.message(df.index()))
			}
		}
		return
	}
	planned := df.wants.qdiscs[0] // a copy: the kernel may have it under its other handle
	want, why := &planned, ""
	switch {
	case got == nil:
		if !df.has.other.kernelsOwn() {
			why = "takes over from " + df.has.other.kind
		}
	case got.options.kind() != want.options.kind():
		why = fmt.Sprintf("it is %s until now", got.options.kind())
		df.deleteRoot(got, why, phaseClear)
	case got.options.kind() == kindHTB:
		if list := differing(got.options.fields(), want.options.fields()); len(list) > 0 {
			why = "HTB cannot change it in place"
			df.deleteRoot(got, why, phaseClear)
			break
		}
		if df.heldByFilters() {
			why = "a class gets another parent, and u32 filters hold it"
			df.deleteRoot(got, why, phaseClear)
			break
		}
		if got.overhead != want.overhead {
			df.change(phaseBuild, verbChange, want.title(), want.command(verbChange, df.device.Name), differing(got.fields(), want.fields()), "",
				want.message(df.index(), flagsChange, false))
		}
		return
	default:
		df.queue(want, got, phaseBuild)
		return
	}
	df.fresh = true
	df.change(phaseBuild, verbAdd, want.title(), want.command(verbReplace, df.device.Name), added(want.fields()), why,
		want.message(df.index(), flagsReplace, true))
}

func (df *differ) deleteRoot(q *qdisc, why string, p phase) {
	df.change(p, verbDelete, q.title(), q.command(verbDelete, df.device.Name), nil, why, q.removal(df.index()))
}

// gotClass returns the class that the kernel has and keeps, nil for none.
func (df *differ) gotClass(h Handle) *class {
	if df.fresh || df.removed[h] {
		return nil
	}
	return df.got[h]
}

// heldByFilters reports whether a class gets another parent while u32 filters
// lead to classes, which then cannot be deleted.
func (df *differ) heldByFilters() bool {
	return slices.ContainsFunc(df.has.filters, func(f filter) bool { return f.parent == htbRoot && f.kind == kindU32 }) &&
		slices.ContainsFunc(df.has.classes, func(c class) bool {
			want := df.want[c.handle]
			return want != nil && want.parent != c.parent
		})
}

// moved removes classes that get another parent, which HTB would ignore, with all that is in them.
func (df *differ) moved() {
	if df.fresh {
		return
	}
	var gone []*class
	for i := range df.has.classes { // parents come first
		c := &df.has.classes[i]
		if want := df.want[c.handle]; df.removed[c.parent] || want != nil && want.parent != c.parent {
			df.removed[c.handle] = true
			gone = append(gone, c)
		}
	}
	for _, c := range slices.Backward(gone) {
		df.change(phaseClear, verbDelete, df.nameOf(c), c.command(verbDelete, df.device.Name), nil, "it gets another parent", c.removal(df.index()))
	}
}

// nameOf is the title of an observed class, by the plan's name where it has it.
func (df *differ) nameOf(c *class) string {
	if want := df.want[c.handle]; want != nil {
		return want.title()
	}
	return "class " + c.handle.String()
}

// hadClasses reports whether the kernel's class is an inner one that stays.
func (df *differ) hadClasses(h Handle) bool { return df.gotClass(h) != nil && df.parents[h] }

func (df *differ) classes() {
	for i := range df.wants.classes {
		want := &df.wants.classes[i]
		got := df.gotClass(want.handle)
		if got == nil {
			df.change(phaseBuild, verbAdd, want.title(), want.command(verbAdd, df.device.Name), added(explained(want.htb.fields(), want.why)), "",
				want.message(df.index(), flagsAdd))
			continue
		}
		p, had := phaseBuild, got.htb.settle(want.htb, want.inner)
		if !want.inner && df.hadClasses(want.handle) {
			p = phaseLate
		}
		if list := differing(had.fields(), explained(want.htb.fields(), want.why)); len(list) > 0 {
			df.change(p, verbChange, want.title(), want.command(verbChange, df.device.Name), list, "", want.message(df.index(), flagsChange))
		}
	}
}

func (df *differ) queues() {
	for i := range df.wants.qdiscs[1:] {
		want := df.wants.qdiscs[i+1] // a copy: its parent may have another handle than planned
		p, parent := phaseBuild, want.parent
		if handle, ok := df.actual[parent&^0xffff]; ok {
			want.parent = handle | Handle(parent.minor())
		}
		if df.late[parent&^0xffff] || parent.major() == rootMajor && df.hadClasses(parent) {
			p = phaseLate
			df.late[want.handle] = true
		}
		var got *qdisc
		if outer := want.parent &^ 0xffff; df.kept[outer] || outer == htbRoot && df.gotClass(parent) != nil {
			got = df.queued[want.parent]
		}
		df.queue(&want, got, p)
	}
}

// queue compares a qdisc that is not HTB's with the one in its place.
func (df *differ) queue(want, got *qdisc, p phase) {
	planned := want.handle
	df.actual[planned] = planned
	if got == nil {
		df.change(p, verbAdd, want.title(), want.command(verbAdd, df.device.Name), added(want.fields()), "", want.message(df.index(), flagsReplace, true))
		return
	}
	if got.handle == planned.sibling() {
		df.actual[planned], want.handle = got.handle, got.handle
	}
	df.kept[got.handle] = true
	df.keepBurst(want, got)
	had := qdisc{options: got.options.settle(want.options), overhead: got.overhead}
	why := ""
	switch list := differing(had.fields(), want.fields()); {
	case got.options.kind() != want.options.kind():
		why = "it is " + got.options.kind() + " until now"
	case got.handle != want.handle:
		why = "its handle is not ours"
	case len(list) == 0:
		return
	case df.wedges(had.options, want.options):
		why = "a burst below one offloaded packet would stop the queue for ever, if it came while one waits"
	default:
		df.change(p, verbChange, want.title(), want.command(verbChange, df.device.Name), list, "", want.message(df.index(), flagsChange, true))
		return
	}
	if got.handle == want.handle { // what is in its place may not have its handle
		want.handle = want.handle.sibling()
		df.actual[planned] = want.handle
	}
	df.kept[got.handle] = false
	df.change(p, verbReplace, want.title(), want.command(verbReplace, df.device.Name), differing(had.fields(), want.fields()), why,
		want.message(df.index(), flagsReplace, true))
}

// keepBurst has the plan take a burst that is up to twice what it needs, where
// to lower it in place could stop a waiting packet for ever, and to replace the
// queue would lose what waits.
func (df *differ) keepBurst(want, got *qdisc) {
	if !df.wedges(got.options, want.options) {
		return
	}
	if w, g := want.options.(tbf), got.options.(tbf); g.burst <= 2*w.burst && !sameBurst(g.burst, w.burst, g.rate) {
		w.burst = g.burst
		want.options = w
	}
}

// wedges reports whether a change in place would leave a waiting packet larger than the bucket.
func (df *differ) wedges(got, want options) bool {
	from, ok := got.(tbf)
	to, both := want.(tbf)
	return ok && both && to.burst < from.burst && int(to.burst) < df.device.GSO
}

// removals deletes classes that the plan does not have, children first; their queues go with them.
func (df *differ) removals() {
	if df.fresh {
		return
	}
	for i := len(df.has.classes) - 1; i >= 0; i-- {
		if c := &df.has.classes[i]; !df.removed[c.handle] && df.want[c.handle] == nil {
			df.change(phaseRemove, verbDelete, df.nameOf(c), c.command(verbDelete, df.device.Name), nil, "no class of the policy", c.removal(df.index()))
		}
	}
}
