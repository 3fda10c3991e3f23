package netlink

import (
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// A Field is one parameter of a qdisc or class, as tc writes it.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Why   string `json:"why,omitempty"` // where the value is from, in words
}

// options are the parameters of one kind of qdisc or class.
type options interface {
	kind() string
	encode() attrs // what is in TCA_OPTIONS
	fields() []Field
	// settle returns the options with what the kernel cannot hold exactly
	// replaced by what want has, where both are the same to the kernel.
	settle(want options) options
}

// A qdisc is a queueing discipline, as the plan wants it or as the kernel has it.
type qdisc struct {
	handle, parent Handle
	name           string // what it is for: "queue of voice"
	options        options
	overhead       int32 // bytes added to what the kernel counts of each packet
	why            map[string]string
}

// A class is an HTB class.
type class struct {
	handle, parent Handle
	name           string
	inner          bool // it has classes of its own
	htb            htbClass
	why            map[string]string
}

func (q *qdisc) fields() []Field {
	list := explained(q.options.fields(), q.why)
	if q.overhead != 0 {
		list = append(list, Field{Name: "overhead", Value: decimal(int64(q.overhead)), Why: "what the link adds to what the kernel counts of a packet"})
	}
	return list
}

func explained(list []Field, why map[string]string) []Field {
	for i := range list {
		list[i].Why = why[list[i].Name]
	}
	return list
}

// words joins fields as tc wants them.
func words(list []Field) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(" " + f.Name)
		if f.Value != "" {
			b.WriteString(" " + f.Value)
		}
	}
	return b.String()
}

func (q *qdisc) title() string { return q.options.kind() + " " + q.name }

func (c *class) title() string { return "class " + c.name }

// command is the qdisc as arguments of tc qdisc: verb is add, change, replace or delete.
func (q *qdisc) command(verb, dev string) string {
	where := " parent " + q.parent.String()
	if q.parent == root {
		where = " root"
	}
	s := "qdisc " + verb + " dev " + dev + where
	if verb == "delete" {
		return s
	}
	if q.overhead != 0 {
		s += " handle " + q.handle.String() + " stab overhead " + decimal(int64(q.overhead)) + " linklayer ethernet"
	} else {
		s += " handle " + q.handle.String()
	}
	return s + " " + q.options.kind() + words(q.options.fields())
}

func (c *class) command(verb, dev string) string {
	s := "class " + verb + " dev " + dev
	if verb != "delete" {
		s += " parent " + c.parent.String()
	}
	s += " classid " + c.handle.String()
	if verb == "delete" {
		return s
	}
	return s + " htb" + words(c.htb.fields())
}

// message is the request for the qdisc. With only the overhead to change,
// options stay out: HTB refuses a change of those it has.
func (q *qdisc) message(index int32, flags uint16, withOptions bool) request {
	body := attrs(tcmsg{index: index, handle: q.handle, parent: q.parent}.append(nil))
	body.text(nl.TCA_KIND, q.options.kind())
	if withOptions {
		body.bytes(nl.TCA_OPTIONS, q.options.encode())
	}
	if q.overhead != 0 {
		body.nest(nl.TCA_STAB, sizeTable(q.overhead))
	}
	return request{unix.RTM_NEWQDISC, flags, body}
}

func (q *qdisc) removal(index int32) request {
	return request{unix.RTM_DELQDISC, 0, tcmsg{index: index, handle: q.handle, parent: q.parent}.append(nil)}
}

func (c *class) message(index int32, flags uint16) request {
	body := attrs(tcmsg{index: index, handle: c.handle, parent: c.parent}.append(nil))
	body.text(nl.TCA_KIND, kindHTB)
	body.bytes(nl.TCA_OPTIONS, c.htb.encode())
	return request{unix.RTM_NEWTCLASS, flags, body}
}

func (c *class) removal(index int32) request {
	return request{unix.RTM_DELTCLASS, 0, tcmsg{index: index, handle: c.handle, parent: c.parent}.append(nil)}
}

// sizeTable is struct tc_sizespec without a table: an overhead and nothing else.
func sizeTable(overhead int32) (a attrs) {
	const base = 1
	spec := make([]byte, 24)
	native.PutUint32(spec[4:], uint32(overhead))
	native.PutUint32(spec[8:], linklayerEthernet)
	a.bytes(base, spec)
	return a
}

func overheadOf(stab []byte) (overhead int32) {
	attributes(stab, func(typ uint16, value []byte) {
		if typ == 1 {
			overhead = int32(u32At(value, 4))
		}
	})
	return overhead
}

// A rateSpec is struct tc_ratespec together with the 64-bit rate that replaces its own above 2^32 bytes/s.
const (
	rateSpecLen       = 12
	linklayerEthernet = 1
)

// appendRateSpec writes the rate in bytes per second, which the kernel counts in.
func appendRateSpec(b []byte, r shaper.Rate) []byte {
	b = append(b, 0, linklayerEthernet, 0, 0)
	b = append(b, 0, 0, 0, 0)
	return native.AppendUint32(b, uint32(min(bytesPerSecond(r), 1<<32-1)))
}

func bytesPerSecond(r shaper.Rate) uint64 { return uint64(r) / 8 }

// rate64 adds the 64-bit form where the 32-bit one is too small.
func (a *attrs) rate64(typ uint16, r shaper.Rate) {
	if n := bytesPerSecond(r); n >= 1<<32-1 {
		a.u64(typ, n)
	}
}

// rateAt reads the rate of a tc_ratespec; wide is the 64-bit one or empty.
func rateAt(spec []byte, at int, wide []byte) shaper.Rate {
	n := uint64(u32At(spec, at+8))
	if len(wide) >= 8 {
		n = u64At(wide, 0)
	}
	return shaper.Rate(n * 8)
}
