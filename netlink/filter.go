package netlink

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Preferences of our filters; others' are not touched. Each protocol needs one of its own.
const (
	prefFirst    = 0x5a00
	prefLast     = 0x5a0f
	prefRedirect = prefFirst
)

// clsact's half for what arrives, as a filter's parent.
const (
	clsactHandle Handle = 0xffff0000
	clsactParent Handle = 0xfffffff1 // TC_H_CLSACT, the same as TC_H_INGRESS
	ingressHook  Handle = 0xfffffff2 // TC_H_CLSACT with TC_H_MIN_INGRESS
)

const (
	kindClsact  = "clsact"
	kindIngress = "ingress"
	kindBPF     = "bpf"
	kindU32     = "u32"
)

// A filter sends packets to classes, or to another device.
type filter struct {
	parent   Handle
	pref     uint16
	protocol uint16 // ETH_P_*
	kind     string
	handle   uint32
	options  []byte                   // what is in TCA_OPTIONS
	same     func(dumped []byte) bool // whether a filter with these options is this one
	table    bool                     // a hash table of filters: part of those, and not shown
	name     string
	words    string   // as arguments of tc filter, from the kind, or handle, on
	instead  []filter // what tc can add to the same effect, where it cannot add this
	why      string
}

// key tells a filter from the others at its device.
type filterKey struct {
	parent         Handle
	pref, protocol uint16
	handle         uint32
}

func (f *filter) key() filterKey { return filterKey{f.parent, f.pref, f.protocol, f.handle} }

func (f *filter) title() string { return f.kind + " filter " + f.name }

func (f *filter) command(verb, dev string) string {
	if len(f.instead) > 0 && verb != verbDelete {
		lines := make([]string, 0, len(f.instead)+1)
		for i := range f.instead {
			lines = append(lines, f.instead[i].command(verbAdd, dev))
		}
		return strings.Join(lines, "\ntc ") + "\n# tc cannot load the eBPF classifier: these filters are what it says, as far as u32 can see"
	}
	s := "filter " + verb + " dev " + dev
	if f.parent == ingressHook {
		s += " ingress"
	} else {
		s += " parent " + f.parent.String()
	}
	s += fmt.Sprintf(" protocol %s pref %d", protocolName(f.protocol), f.pref)
	if verb == verbDelete {
		return s
	}
	return s + " " + f.words
}

func protocolName(p uint16) string {
	switch p {
	case unix.ETH_P_ALL:
		return "all"
	case unix.ETH_P_IP:
		return "ip"
	case unix.ETH_P_IPV6:
		return "ipv6"
	case unix.ETH_P_ARP:
		return "arp"
	}
	return fmt.Sprintf("0x%04x", p)
}

func (f *filter) header(index int32) tcmsg {
	return tcmsg{index: index, handle: Handle(f.handle), parent: f.parent, info: uint32(f.pref)<<16 | uint32(f.protocol>>8|f.protocol<<8)}
}

func (f *filter) message(index int32, flags uint16) request {
	body := attrs(f.header(index).append(nil))
	body.text(nl.TCA_KIND, f.kind)
	body.bytes(nl.TCA_OPTIONS, f.options)
	return request{unix.RTM_NEWTFILTER, flags, body}
}

func (f *filter) removal(index int32) request {
	body := attrs(f.header(index).append(nil))
	body.text(nl.TCA_KIND, f.kind)
	return request{unix.RTM_DELTFILTER, 0, body}
}

// redirect is the filter that sends what arrives at a device on to ours.
func redirect(device string, index int32) filter {
	const (
		terminal  = 1
		stolen    = 4
		toEgress  = 1
		actKind   = 1
		actOption = 2
		parms     = 2
	)
	sel := make([]byte, 16+16) // one key that every packet has: 0 of 0
	sel[0], sel[2] = terminal, 1
	var mirred attrs
	act := make([]byte, 20) // tc_gen: index, capab, action, refcnt, bindcnt
	native.PutUint32(act[8:], stolen)
	act = native.AppendUint32(act, toEgress)
	act = native.AppendUint32(act, uint32(index))
	mirred.bytes(parms, act)
	var one, all, out attrs
	one.text(actKind, "mirred")
	one.nest(actOption, mirred)
	all.nest(1, one)
	out.bytes(nl.TCA_U32_SEL, sel)
	out.nest(nl.TCA_U32_ACT, all)
	return filter{
		parent: ingressHook, pref: prefRedirect, protocol: unix.ETH_P_ALL, kind: kindU32, options: out,
		same: func(dumped []byte) bool { return redirectsTo(dumped) == index },
		name: "to " + device, words: "u32 match u32 0 0 action mirred egress redirect dev " + device,
		why: "what arrives can be shaped where it leaves the device that it is sent through",
	}
}

// redirectsTo returns the index of the device that a u32 filter redirects to, 0 for none.
func redirectsTo(options []byte) (index int32) {
	inner := func(want uint16, use func([]byte)) func(uint16, []byte) {
		return func(typ uint16, value []byte) {
			if typ == want {
				use(value)
			}
		}
	}
	attributes(options, inner(nl.TCA_U32_ACT, func(actions []byte) {
		attributes(actions, inner(1, func(action []byte) {
			attributes(action, inner(2, func(mirred []byte) {
				attributes(mirred, inner(2, func(parms []byte) { index = int32(u32At(parms, 24)) }))
			}))
		}))
	}))
	return index
}

// clsact is the qdisc whose ingress half the redirect needs.
func clsact() qdisc {
	return qdisc{handle: clsactHandle, parent: clsactParent, options: unknownOptions(kindClsact), name: "hook for what arrives"}
}
