package netlink

import (
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// filters compares those at an HTB root. Of two sets that mean the same the one
// that is not there yet is added, and then the other one goes.
func (df *differ) filters() {
	got := df.has.filters
	if df.fresh {
		got = nil
	}
	got = slices.DeleteFunc(slices.Clone(got), func(f filter) bool { return f.parent != htbRoot })
	sets := df.wants.filters
	if sameFilters(got, sets[0]) || sameFilters(got, sets[1]) {
		return
	}
	wants := sets[0]
	if slices.ContainsFunc(got, func(g filter) bool {
		return g.kind == kindU32 && slices.ContainsFunc(wants, func(w filter) bool { return w.kind == kindU32 && w.pref == g.pref })
	}) {
		wants = sets[1]
	}
	there := map[filterKey]bool{}
	for i := range got {
		there[got[i].key()] = true
	}
	for i := range wants {
		f := &wants[i]
		verb, flags := verbAdd, uint16(unix.NLM_F_CREATE|unix.NLM_F_EXCL)
		if there[f.key()] {
			verb, flags = verbReplace, unix.NLM_F_CREATE|unix.NLM_F_REPLACE
		}
		df.change(phaseFilter, verb, f.title(), f.command(verb, df.device.Name), nil, f.why, f.message(df.index(), flags))
	}
	gone := map[filterKey]bool{}
	for i := range got {
		f := filter{parent: got[i].parent, pref: got[i].pref, protocol: got[i].protocol, kind: got[i].kind, name: "of other rules"}
		if gone[f.key()] || slices.ContainsFunc(wants, func(w filter) bool { return w.pref == f.pref }) {
			continue
		}
		gone[f.key()] = true
		df.change(phaseFilter, verbDelete, f.title(), f.command(verbDelete, df.device.Name), nil, "replaced", f.removal(df.index()))
	}
}

// sameFilters reports whether got is wants. Hash tables are not compared: without them there is nothing in them.
func sameFilters(got, wants []filter) bool {
	by := make(map[filterKey]*filter, len(got))
	for i := range got {
		by[got[i].key()] = &got[i]
	}
	n := 0
	for i := range wants {
		f := &wants[i]
		if f.table {
			continue
		}
		n++
		if g := by[f.key()]; g == nil || g.kind != f.kind || !f.same(g.options) {
			return false
		}
	}
	return n == len(got)
}

// hook finds the changes for what arrives at a device: the qdisc that takes
// filters, shared with others, and our one filter in it. To is nil when nothing
// is to be redirected any more.
func hook(d *Device, has *state, to *Device, ours bool) []Change {
	df := differ{device: d, has: has}
	index := df.index()
	var got *filter
	if at := slices.IndexFunc(has.filters, func(f filter) bool { return f.parent == ingressHook }); at >= 0 {
		got = &has.filters[at]
	}
	if to == nil {
		if got != nil {
			f := filter{parent: got.parent, pref: got.pref, protocol: got.protocol, kind: got.kind, name: "of what arrives"}
			df.change(phaseRemove, verbDelete, f.title(), f.command(verbDelete, d.Name), nil, "what arrives is not shaped", f.removal(index))
		}
		if ours && has.hook != "" && has.shared == 0 {
			q := clsact()
			q.options = unknownOptions(has.hook)
			df.change(phaseRemove, verbDelete, q.title(), "qdisc delete dev "+d.Name+" "+has.hook, nil, "nobody else has filters in it", q.removal(index))
		}
		return df.changes
	}
	if has.hook == "" {
		q := clsact()
		body := attrs(tcmsg{index: index, handle: q.handle, parent: q.parent}.append(nil))
		body.text(nl.TCA_KIND, kindClsact)
		df.change(phaseFilter, verbAdd, q.title(), "qdisc add dev "+d.Name+" clsact", nil, "", request{unix.RTM_NEWQDISC, flagsAdd, body})
	}
	f := redirect(to.Name, int32(to.Index))
	switch {
	case got == nil:
		df.change(phaseFilter, verbAdd, f.title(), f.command(verbAdd, d.Name), nil, f.why, f.message(index, flagsAdd))
	case got.kind != f.kind || got.protocol != f.protocol || !f.same(got.options):
		f.handle = got.handle
		df.change(phaseFilter, verbChange, f.title(), f.command(verbChange, d.Name), nil, "it sends elsewhere", f.message(index, flagsReplace))
	}
	return df.changes
}
