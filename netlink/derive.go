package netlink

import (
	"cmp"
	"fmt"
	"time"

	"shaperd/shaper"
)

// What the policy leaves open follows from the rate and the device. The times
// and sizes are measured: see docs/benchmarks.md, and docs/kernel.md for why.
const (
	ethernetHeader = 14
	// smallBurst and largeBurst: a burst is what the rate earns in shortTime, up
	// to steadyBurst; from there on what it earns in steadyTime. Less is inexact,
	// since the kernel's timers are late; more would be felt.
	burstTime   = 10 * time.Millisecond
	steadyBurst = 128 * shaper.KiB
	steadyTime  = 2 * time.Millisecond
	leakyTime   = time.Millisecond
	minPackets  = 2 // in a burst

	queueTime    = 50 * time.Millisecond
	queuePackets = 20
	queueMost    = 32 * shaper.MiB

	// A class with all of the link may send this in its round among borrowers: the most that HTB takes without a warning.
	maxQuantum = 200000

	// HTB takes no guarantee of 0, and keeps a burst as a time that must fit.
	minRate = 8 * shaper.Kbit

	directQlen = 1000

	// Below this rate of the link offloaded packets of classes that borrow are
	// cut: HTB gives each packet a turn, also one of 64 KiB. From there on they come too
	// seldom to be felt, and cutting costs too much. cake draws the line there too.
	cutBelow = shaper.Gbit
	cutRate  = 100 * shaper.Gbit
)

// packet is the largest packet on the wire, as the kernel counts it.
func (d *Device) packet() shaper.Size { return shaper.Size(d.MTU + ethernetHeader) }

// earned is what the rate earns in the time, in bytes.
func earned(r shaper.Rate, d time.Duration) shaper.Size {
	return shaper.Size(float64(r) / 8 * d.Seconds())
}

// burst returns the burst for a rate, and why. Given is the policy's, 0 for none.
func (d *Device) burst(given shaper.Size, r shaper.Rate, mode shaper.Mode) (shaper.Size, string) {
	least := minPackets * d.packet()
	if mode == shaper.Leaky {
		if n := earned(r, leakyTime); n > least {
			return n, "steady: what the rate earns in 1 ms, the least that the kernel's timers keep up with"
		}
		return least, fmt.Sprintf("steady: %d packets of %d bytes", minPackets, d.packet())
	}
	if given > 0 {
		return given, "from the policy"
	}
	n, why := earned(r, burstTime), "what the rate earns in 10 ms"
	if n > steadyBurst {
		n, why = steadyBurst, "enough for exactness up to 500mbit"
		if more := earned(r, steadyTime); more > n {
			n, why = more, "what the rate earns in 2 ms"
		}
	}
	if n < least {
		n, why = least, fmt.Sprintf("%d packets of %d bytes", minPackets, d.packet())
	}
	return n, why
}

// queue returns how many bytes may wait at a rate, and why.
func (d *Device) queue(r shaper.Rate) (shaper.Size, string) {
	length := cmp.Or(d.queueTime, queueTime)
	n := earned(r, length)
	switch {
	case n > queueMost:
		return queueMost, fmt.Sprintf("32 MiB, the most: less than %d ms at the ceil", length.Milliseconds())
	case n > queuePackets*d.packet():
		return n, fmt.Sprintf("%d ms at the ceil", length.Milliseconds())
	}
	return queuePackets * d.packet(), fmt.Sprintf("%d packets of %d bytes", queuePackets, d.packet())
}

// fqCodel returns a fair queue for a rate, and why it is as it is. Where one
// packet takes longer than the usual 5 ms, waiting that long is no congestion.
func (d *Device) fqCodel(r shaper.Rate) (fqCodel, map[string]string) {
	const usual = 5 * time.Millisecond
	q := fqCodel{
		limit: 10240, target: usual, interval: 20 * usual,
		quantum: uint32(d.packet()), ecn: true,
	}
	why := map[string]string{"limit": "the kernel's default: the waiting time is bounded by target", "quantum": "one packet"}
	if t := time.Duration(float64(d.packet()) * 8 * 1.5 / float64(r) * secondsNs); t > usual {
		q.target, q.interval = t.Truncate(time.Microsecond), (20 * t).Truncate(time.Microsecond)
		why["target"] = "one and a half packets at the ceil"
	}
	return q, why
}

// quantum returns the bytes a round among borrowers: the class's part of the
// link, so that one class's rate is no other's business.
func (d *Device) quantum(r, link shaper.Rate) (uint32, string) {
	if q := uint32(float64(r) / float64(link) * maxQuantum); q > uint32(d.packet()) {
		return min(q, maxQuantum), "in proportion to the rate"
	}
	return uint32(d.packet()), "one packet, the least"
}

// whole cuts a rate to whole bytes per second, which the kernel counts in.
func whole(r shaper.Rate) shaper.Rate { return r &^ 7 }
