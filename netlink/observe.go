package netlink

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A state is what the kernel has at one device.
type state struct {
	qdiscs  []qdisc // ours, and so the classes and filters
	classes []class
	filters []filter
	other   foreign             // the root qdisc, when it is not ours
	prior   foreign             // what was at the root before ours, where that is known
	hook    string              // the kind of qdisc for what arrives: clsact, ingress or none
	shared  int                 // filters of others at the hook
	stats   map[Handle]counters // of qdiscs and classes
}

// A foreign is another's qdisc at the root.
type foreign struct {
	kind    string
	handle  Handle
	options []byte
}

// restorable reports whether what the kernel said of it is all that there was: of a qdisc without classes.
func (f foreign) restorable() bool {
	switch f.kind {
	case kindHTB, "hfsc", "drr", "qfq", "prio", "ets", "cbq", "mqprio", "mq":
		return false
	}
	return !f.kernelsOwn()
}

// message is the request that puts it back.
func (f foreign) message(index int32) request {
	body := attrs(tcmsg{index: index, handle: f.handle, parent: root}.append(nil))
	body.text(nl.TCA_KIND, f.kind)
	if len(f.options) > 0 {
		body.bytes(nl.TCA_OPTIONS, f.options)
	}
	return request{unix.RTM_NEWQDISC, flagsReplace, body}
}

// kernelsOwn reports whether the kernel put it there by itself: nobody's choice, and nothing to lose.
func (f foreign) kernelsOwn() bool { return f.kind == "" || f.handle.major() == 0 }

// An object is one line of a dump of qdiscs, classes or filters.
type object struct {
	tcmsg
	kind                 string
	options, stab, stats []byte
}

func parseObject(body []byte) (o object) {
	var rest []byte
	o.tcmsg, rest = parseTcmsg(body)
	attributes(rest, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_KIND:
			o.kind = textOf(value)
		case nl.TCA_OPTIONS:
			o.options = value
		case nl.TCA_STAB:
			o.stab = value
		case nl.TCA_STATS2:
			o.stats = value
		}
	})
	return o
}

// objects dumps all of one type: qdiscs of the namespace, a device's classes,
// or the filters at one of its qdiscs.
func (s *socket) objects(typ uint16, index int32, parent Handle) ([]object, error) {
	list, err := s.dump(request{typ, 0, tcmsg{index: index, parent: parent}.append(nil)})
	if err != nil {
		return nil, err
	}
	out := make([]object, len(list))
	for i, m := range list {
		out[i] = parseObject(m.body)
	}
	return out, nil
}

// observe reads what the devices have, by their index.
func (s *socket) observe() (map[int32]*state, error) {
	states, err := s.measure()
	if err != nil {
		return nil, err
	}
	for index, st := range states {
		var errs [2]error
		if q := st.root(); q != nil && q.options.kind() == kindHTB {
			errs[0] = s.filters(st, index, htbRoot)
		}
		if st.hook != "" {
			errs[1] = s.filters(st, index, ingressHook)
		}
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// measure reads what the devices have, and its counters, without the filters.
func (s *socket) measure() (map[int32]*state, error) {
	qdiscs, err := s.objects(unix.RTM_GETQDISC, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("list qdiscs: %w", explain(err))
	}
	states := map[int32]*state{}
	for i := range qdiscs {
		st := states[qdiscs[i].index]
		if st == nil {
			st = &state{stats: map[Handle]counters{}}
			states[qdiscs[i].index] = st
		}
		st.addQdisc(&qdiscs[i])
	}
	for index, st := range states {
		if q := st.root(); q != nil && q.options.kind() == kindHTB {
			classes, err := s.objects(unix.RTM_GETTCLASS, index, 0)
			if err != nil {
				return nil, fmt.Errorf("list classes: %w", explain(err))
			}
			for i := range classes {
				st.addClass(&classes[i])
			}
		}
		st.order()
	}
	return states, nil
}

// wanted is the state as something to go back to; its filters are another matter.
func (st *state) wanted() tree { return tree{qdiscs: st.qdiscs, classes: st.classes} }

// root returns our root qdisc, nil when there is none.
func (st *state) root() *qdisc {
	for i := range st.qdiscs {
		if st.qdiscs[i].parent == root {
			return &st.qdiscs[i]
		}
	}
	return nil
}

// filters reads the filters at one of a device's qdiscs: ours, and how many others have.
func (s *socket) filters(st *state, index int32, parent Handle) error {
	list, err := s.objects(unix.RTM_GETTFILTER, index, parent)
	if err != nil {
		return fmt.Errorf("list filters: %w", explain(err))
	}
	others := map[uint16]bool{}
	for i := range list {
		o := &list[i]
		pref := uint16(o.info >> 16)
		if o.handle == noHandle || o.kind == kindU32 && o.handle&0xfff == 0 { // the head of a preference, a hash table
			continue
		}
		if pref < prefFirst || pref > prefLast || parent == ingressHook && redirectsTo(o.options) == 0 {
			others[pref] = true
			continue
		}
		protocol := uint16(o.info)
		if parent == htbRoot && o.kind == kindU32 && o.handle>>20 >= 0x800 { // a slot's first table, which the kernel numbers
			o.handle &= 0xfff
		}
		st.filters = append(st.filters, filter{
			parent: parent, pref: pref, protocol: protocol>>8 | protocol<<8, kind: o.kind, handle: uint32(o.handle), options: o.options,
		})
	}
	if parent == ingressHook {
		st.shared = len(others)
	}
	return nil
}

func (st *state) addQdisc(o *object) {
	switch {
	case o.handle == clsactHandle:
		st.hook = o.kind
	case o.handle.ours():
		q := qdisc{handle: o.handle, parent: o.parent, options: decodeOptions(o.kind, o.options), overhead: overheadOf(o.stab)}
		if q.parent == root {
			q.name = "root"
		}
		st.qdiscs = append(st.qdiscs, q)
		st.stats[o.handle] = parseStats(o.stats)
	case o.parent == root:
		st.other = foreign{o.kind, o.handle, o.options}
	}
}

func decodeOptions(kind string, b []byte) options {
	switch kind {
	case kindTBF:
		return decodeTBF(b)
	case kindHTB:
		return decodeHTB(b)
	case kindFifo:
		return decodeFifo(b)
	case kindFqCodel:
		return decodeFqCodel(b)
	}
	return unknownOptions(kind)
}

// addClass adds an HTB class; TBF and fq_codel list classes too, which are none.
func (st *state) addClass(o *object) {
	if o.handle.major() != rootMajor || o.handle.minor() == 0 || o.kind != kindHTB {
		return
	}
	parent := o.parent
	if parent == root { // how a class below the qdisc itself is listed
		parent = htbRoot
	}
	st.classes = append(st.classes, class{handle: o.handle, parent: parent, htb: decodeHTBClass(o.options)})
	st.stats[o.handle] = parseStats(o.stats)
}

// order puts parents before their children.
func (st *state) order() {
	parents := map[Handle]Handle{}
	for _, c := range st.classes {
		parents[c.handle] = c.parent
	}
	depth := func(h Handle) (n int) {
		for ; n <= maxDepth+2 && parents[h] != 0; h = parents[h] {
			n++
		}
		return n
	}
	slices.SortStableFunc(st.classes, func(a, b class) int { return depth(a.handle) - depth(b.handle) })
	slices.SortStableFunc(st.qdiscs, func(a, b qdisc) int { return qdiscDepth(&a) - qdiscDepth(&b) })
}

func qdiscDepth(q *qdisc) int {
	switch {
	case q.parent == root:
		return 0
	case q.handle.major() < innerMajor:
		return 1
	}
	return 2
}
