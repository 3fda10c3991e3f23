package u32

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"
)

// A spec is what a node does: it is a hash table, a link to one, or a filter.
type spec struct {
	divisor  uint32 // buckets of a table; 0 for a filter
	keys     []part
	mark     *uint32 // netfilter mark, nil for any
	classid  uint32
	link     uint32 // table to go on in
	variable bool   // the transport header's place follows from the IPv4 header's length
	table    uint32 // that the filter is in; 0 for the slot's own
}

const (
	terminal  = 1 // TC_U32_TERMINAL
	varOffset = 4 // TC_U32_VAROFFSET
	selLen    = 16
)

var native = binary.NativeEndian

// Options is what is in TCA_OPTIONS of the node's message.
func (n *Node) Options() (b []byte) {
	if n.divisor > 0 {
		return number(b, nl.TCA_U32_DIVISOR, n.divisor)
	}
	if n.classid != 0 {
		b = number(b, nl.TCA_U32_CLASSID, n.classid)
	}
	if n.table != 0 {
		b = number(b, nl.TCA_U32_HASH, n.table)
	}
	if n.link != 0 {
		b = number(b, nl.TCA_U32_LINK, n.link)
	}
	b = attribute(b, nl.TCA_U32_SEL, n.selector())
	if n.mark != nil {
		mark := native.AppendUint32(nil, *n.mark)
		mark = native.AppendUint32(mark, 1<<32-1)
		b = attribute(b, nl.TCA_U32_MARK, native.AppendUint32(mark, 0))
	}
	return b
}

// selector is struct tc_u32_sel with its keys.
func (n *Node) selector() []byte {
	s := make([]byte, selLen, selLen+16*len(n.keys))
	if n.classid != 0 {
		s[0] = terminal
	}
	s[2] = byte(max(len(n.keys), 1))
	if n.variable {
		s[0] |= varOffset
		s[1] = 6                                  // shift: words of the length to bytes
		binary.BigEndian.PutUint16(s[4:], 0x0f00) // where the length is, in the word at offoff 0
	}
	keys := n.keys
	if len(keys) == 0 {
		keys = []part{{}}
	}
	for _, k := range keys {
		s = binary.BigEndian.AppendUint32(s, k.mask)
		s = binary.BigEndian.AppendUint32(s, k.value)
		s = native.AppendUint32(s, uint32(k.offset))
		offmask := uint32(0)
		if k.transport {
			offmask = 1<<32 - 1
		}
		s = native.AppendUint32(s, offmask)
	}
	return s
}

func number(b []byte, typ uint16, v uint32) []byte {
	return attribute(b, typ, native.AppendUint32(nil, v))
}

func attribute(b []byte, typ uint16, value []byte) []byte {
	b = native.AppendUint16(b, uint16(4+len(value)))
	b = native.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

// Same reports whether a filter that was dumped with these options is the node:
// the kernel adds counters, and leaves out what is 0.
func (n *Node) Same(dumped []byte) bool {
	var classid, link uint32
	var selector, mark []byte
	for b := dumped; len(b) >= 4; {
		size := int(native.Uint16(b))
		if size < 4 || size > len(b) {
			return false
		}
		value := b[4:size]
		switch native.Uint16(b[2:]) & 0x3fff {
		case nl.TCA_U32_CLASSID:
			classid = native.Uint32(value)
		case nl.TCA_U32_LINK:
			link = native.Uint32(value)
		case nl.TCA_U32_SEL:
			selector = value
		case nl.TCA_U32_MARK:
			mark = value
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	if (n.mark != nil) != (mark != nil) || n.mark != nil && (native.Uint32(mark) != *n.mark || native.Uint32(mark[4:]) != 1<<32-1) {
		return false
	}
	return classid == n.classid && link == n.link && bytes.Equal(selector, n.selector())
}

// IsTable reports whether the node is a hash table, which dumps show too.
func (n *Node) IsTable() bool { return n.divisor > 0 }

// Command is the node as arguments of tc filter add, after the preference.
func (n *Node) Command() string {
	var b strings.Builder
	switch {
	case n.divisor > 0:
		fmt.Fprintf(&b, "handle %x: u32 divisor %d", n.Handle>>20, n.divisor)
		return b.String()
	case n.table != 0:
		fmt.Fprintf(&b, "handle ::%x u32 ht %x:", n.Handle&0xfff, n.table>>20)
	default:
		b.WriteString("u32")
	}
	keys := n.keys
	if len(keys) == 0 {
		keys = []part{{}}
	}
	for _, k := range keys {
		at := fmt.Sprint(k.offset)
		if k.transport {
			at = "nexthdr+" + at
		}
		fmt.Fprintf(&b, " match u32 0x%08x 0x%08x at %s", k.value, k.mask, at)
	}
	if n.mark != nil {
		fmt.Fprintf(&b, " match mark 0x%x 0xffffffff", *n.mark)
	}
	if n.link != 0 {
		fmt.Fprintf(&b, " link %x:", n.link>>20)
	}
	if n.variable {
		b.WriteString(" offset at 0 mask 0x0f00 shift 6")
	}
	if n.classid != 0 {
		fmt.Fprintf(&b, " flowid %x:%x", n.classid>>16, n.classid&0xffff)
	}
	return b.String()
}
