package netlink

import (
	"github.com/vishvananda/netlink/nl"

	"shaperd/shaper"
)

const kindHTB = "htb"

// htb is the root qdisc of a link with classes. What it is made with stays for its life.
type htb struct {
	defaultMinor uint16
	directQlen   uint32 // packets that no class takes; they leave unshaped, and are counted
	direct       uint32 // of the kernel: packets that have left so
}

func (h htb) kind() string { return kindHTB }

func (h htb) fields() []Field {
	return []Field{
		{Name: "default", Value: "0x" + hex(h.defaultMinor)},
		{Name: "direct_qlen", Value: decimal(int64(h.directQlen))},
	}
}

func (h htb) encode() (a attrs) {
	const version = 3
	glob := native.AppendUint32(nil, version)
	glob = native.AppendUint32(glob, 10) // r2q: every class has a quantum of its own
	glob = native.AppendUint32(glob, uint32(h.defaultMinor))
	glob = append(glob, make([]byte, 8)...)
	a.bytes(nl.TCA_HTB_INIT, glob)
	a.u32(nl.TCA_HTB_DIRECT_QLEN, h.directQlen)
	return a
}

func decodeHTB(b []byte) (h htb) {
	attributes(b, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_HTB_INIT:
			h.defaultMinor, h.direct = uint16(u32At(value, 8)), u32At(value, 16)
		case nl.TCA_HTB_DIRECT_QLEN:
			h.directQlen = u32At(value, 0)
		}
	})
	return h
}

func (h htb) settle(options) options { return h }

// htbClass is what an HTB class may send: its rate always, up to its ceil what others leave.
type htbClass struct {
	rate, ceil    shaper.Rate // multiples of 8 bits per second, above 0
	burst, cburst shaper.Size // at once at the rate, at the ceil
	quantum       uint32      // bytes a round among those that borrow
	priority      uint8
}

func (c htbClass) fields() []Field {
	return []Field{
		{Name: "rate", Value: c.rate.String()},
		{Name: "ceil", Value: c.ceil.String()},
		{Name: "burst", Value: sizeText(c.burst)},
		{Name: "cburst", Value: sizeText(c.cburst)},
		{Name: "quantum", Value: decimal(int64(c.quantum))},
		{Name: "prio", Value: decimal(int64(c.priority))},
	}
}

func (c htbClass) encode() (a attrs) {
	buffer, _ := ticks(c.burst, c.rate)
	cbuffer, _ := ticks(c.cburst, c.ceil)
	opt := appendRateSpec(nil, c.rate)
	opt = appendRateSpec(opt, c.ceil)
	opt = native.AppendUint32(opt, buffer)
	opt = native.AppendUint32(opt, cbuffer)
	opt = native.AppendUint32(opt, c.quantum)
	opt = native.AppendUint32(opt, 0) // level: the kernel's
	opt = native.AppendUint32(opt, uint32(c.priority))
	a.bytes(nl.TCA_HTB_PARMS, opt)
	a.rate64(nl.TCA_HTB_RATE64, c.rate)
	a.rate64(nl.TCA_HTB_CEIL64, c.ceil)
	return a
}

func decodeHTBClass(b []byte) (c htbClass) {
	var parms, rate, ceil []byte
	attributes(b, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_HTB_PARMS:
			parms = value
		case nl.TCA_HTB_RATE64:
			rate = value
		case nl.TCA_HTB_CEIL64:
			ceil = value
		}
	})
	const after = 2 * rateSpecLen
	c.rate, c.ceil = rateAt(parms, 0, rate), rateAt(parms, rateSpecLen, ceil)
	c.burst, c.cburst = ticksToSize(u32At(parms, after), c.rate), ticksToSize(u32At(parms, after+4), c.ceil)
	c.quantum, c.priority = u32At(parms, after+8), uint8(u32At(parms, after+16))
	return c
}

// settle is as for options. The kernel leaves an inner class's quantum and priority at what it was made with.
func (c htbClass) settle(want htbClass, inner bool) htbClass {
	if inner {
		c.quantum, c.priority = want.quantum, want.priority
	}
	if c.rate == want.rate && sameBurst(c.burst, want.burst, c.rate) {
		c.burst = want.burst
	}
	if c.ceil == want.ceil && sameBurst(c.cburst, want.cburst, c.ceil) {
		c.cburst = want.cburst
	}
	return c
}
