package netlink

import (
	"github.com/vishvananda/netlink/nl"

	"shaperd/shaper"
)

const kindTBF = "tbf"

// tbf is a token bucket: it lets bytes out at a rate, after a pause up to a
// burst at once, and cuts an offloaded packet that is larger than the burst.
type tbf struct {
	rate  shaper.Rate // a multiple of 8 bits per second
	burst shaper.Size // never less than a packet: the kernel drops what is larger, silently
	limit shaper.Size // of what waits
}

func (t tbf) kind() string { return kindTBF }

func (t tbf) fields() []Field {
	return []Field{
		{Name: "rate", Value: t.rate.String()},
		{Name: "burst", Value: sizeText(t.burst)},
		{Name: "limit", Value: sizeText(t.limit)},
	}
}

func (t tbf) encode() (a attrs) {
	buffer, _ := ticks(t.burst, t.rate)
	parms := appendRateSpec(nil, t.rate)
	parms = append(parms, make([]byte, rateSpecLen)...) // no peak rate
	parms = native.AppendUint32(parms, uint32(t.limit))
	parms = native.AppendUint32(parms, buffer)
	parms = native.AppendUint32(parms, 0) // mtu, of the peak rate
	a.bytes(nl.TCA_TBF_PARMS, parms)
	a.rate64(nl.TCA_TBF_RATE64, t.rate)
	a.u32(nl.TCA_TBF_BURST, uint32(t.burst)) // exact, where the ticks are not
	return a
}

func decodeTBF(b []byte) tbf {
	var parms, wide []byte
	attributes(b, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_TBF_PARMS:
			parms = value
		case nl.TCA_TBF_RATE64:
			wide = value
		}
	})
	t := tbf{rate: rateAt(parms, 0, wide), limit: shaper.Size(u32At(parms, 2*rateSpecLen))}
	t.burst = ticksToSize(u32At(parms, 2*rateSpecLen+4), t.rate)
	return t
}

func (t tbf) settle(want options) options {
	if w, ok := want.(tbf); ok && w.rate == t.rate && sameBurst(t.burst, w.burst, t.rate) {
		t.burst = w.burst
	}
	return t
}
