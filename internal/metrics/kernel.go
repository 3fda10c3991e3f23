package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// Kernel is a snapshot of the kernel datapath.
type Kernel struct {
	Links      []KernelLink
	Interfaces []KernelInterface
	ReadErrors uint64 // times that the rest could not be read
}

// A KernelLink is one direction of one interface. Rates are in bits per second, 0 is none.
type KernelLink struct {
	Name          string
	Rate, Applied shaper.Rate // of the policy; of the kernel
	Achieved      float64     // bits per second
	Bytes         uint64
	Packets       uint64
	Drops         uint64 // packets
	Overlimits    uint64
	Unshaped      uint64 // packets that no class took
	Classes       []KernelClass
}

// A KernelClass is a class of a link with its queue. Rates are in bits per second, 0 is none.
type KernelClass struct {
	Name                      string
	Rate, Ceil                shaper.Rate // of the policy
	AppliedRate, AppliedCeil  shaper.Rate // of the kernel
	Burst                     shaper.Size
	Achieved                  float64 // bits per second
	Bytes, Packets            uint64
	Drops, Overlimits         uint64
	BacklogBytes, Backlog     uint64 // waiting now: bytes, packets
	LentPackets               uint64 // sent within the class's own rate
	BorrowedPackets           uint64 // sent with what others left
	TokensBytes, CeilTokBytes int64  // what it could send at once now, at its rate and at its ceil
}

// A KernelInterface is an interface that the policy names.
type KernelInterface struct {
	Name    string
	Present bool
	Drift   bool   // it is not as the policy wants it
	Repairs uint64 // of what others changed
}

func collectKernel(ch chan<- prometheus.Metric, k *Kernel) {
	ch <- kernelReadErrors.value(float64(k.ReadErrors))
	for _, i := range k.Interfaces {
		out := sink{ch, []string{i.Name}}
		out.value(interfacePresent, truth(i.Present))
		out.value(interfaceDrift, truth(i.Drift))
		out.counter(interfaceRepairs, i.Repairs)
	}
	for i := range k.Links {
		l := &k.Links[i]
		out := sink{ch, []string{"kernel", l.Name}}
		out.counter(linkSent, l.Bytes)
		out.rate(linkRate, l.Rate)
		out.value(linkAchieved, l.Achieved/8)
		out.rate(linkApplied, l.Applied)
		out.counter(linkPackets, l.Packets)
		out.counter(linkDrops, l.Drops)
		out.counter(linkOverlimits, l.Overlimits)
		out.counter(linkUnshaped, l.Unshaped)
		for i := range l.Classes {
			collectKernelClass(ch, l.Name, &l.Classes[i])
		}
	}
}

func collectKernelClass(ch chan<- prometheus.Metric, link string, c *KernelClass) {
	out := sink{ch, []string{"kernel", link, c.Name}}
	out.counter(classSent, c.Bytes)
	out.rate(classRate, c.Rate)
	out.rate(classCeil, c.Ceil)
	out.value(classBurst, float64(c.Burst))
	out.value(classAchieved, c.Achieved/8)
	out.rate(classAppliedRate, c.AppliedRate)
	out.rate(classAppliedCeil, c.AppliedCeil)
	out.counter(classPackets, c.Packets)
	out.counter(classDrops, c.Drops)
	out.counter(classOverlimits, c.Overlimits)
	out.value(classBacklog, float64(c.BacklogBytes))
	out.value(classBacklogPkts, float64(c.Backlog))
	out.counter(classLent, c.LentPackets)
	out.counter(classBorrowedPkt, c.BorrowedPackets)
	out.value(classTokens, float64(c.TokensBytes))
	out.value(classCeilTokens, float64(c.CeilTokBytes))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
