package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// Kernel is a snapshot of the kernel datapath.
type Kernel struct {
	Links      []KernelLink
	Interfaces []KernelInterface
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

var (
	interfacePresent = interfaceDesc("present", "Whether the interface exists: 1 or 0.")
	interfaceDrift   = interfaceDesc("drift", "Whether the kernel has something else than the policy wants: 1 or 0.")
	interfaceRepairs = interfaceDesc("repairs_total", "Times that what other programs changed was put right.")

	linkApplied    = linkDesc("applied_rate_bytes_per_second", "Rate that the kernel has for the link; 0 when it does not shape it.")
	linkPackets    = linkDesc("sent_packets_total", "Packets that the link has carried.")
	linkDrops      = linkDesc("dropped_packets_total", "Packets that the link's queues had no room for.")
	linkOverlimits = linkDesc("overlimits_total", "Times that something on the link had to wait.")
	linkUnshaped   = linkDesc("unshaped_packets_total", "Packets that left unshaped, since no class took them.")

	classAppliedRate = classDesc("applied_rate_bytes_per_second", "Guarantee that the kernel has for the class; 0 when it has no such class.")
	classAppliedCeil = classDesc("applied_ceil_bytes_per_second", "Ceil that the kernel has for the class; 0 when it has no such class.")
	classPackets     = classDesc("sent_packets_total", "Packets that the class has sent.")
	classDrops       = classDesc("dropped_packets_total", "Packets that the class's queue had no room for.")
	classOverlimits  = classDesc("overlimits_total", "Times that the class had to wait.")
	classBacklog     = classDesc("backlog_bytes", "Bytes that wait.")
	classBacklogPkts = classDesc("backlog_packets", "Packets that wait.")
	classLent        = classDesc("lent_packets_total", "Packets that the class sent within its own rate.")
	classBorrowedPkt = classDesc("borrowed_packets_total", "Packets that the class sent with what others left.")
	classTokens      = classDesc("tokens_bytes", "Bytes that the class could send at once now at its own rate; below 0 it owes them.")
	classCeilTokens  = classDesc("ceil_tokens_bytes", "Bytes that the class could send at once now at its ceil; below 0 it owes them.")
)

func interfaceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("shaperd_interface_"+name, help, []string{"interface"}, nil)
}

var kernelDescs = []*prometheus.Desc{
	interfacePresent, interfaceDrift, interfaceRepairs,
	linkApplied, linkPackets, linkDrops, linkOverlimits, linkUnshaped,
	classAppliedRate, classAppliedCeil, classPackets, classDrops, classOverlimits, classBacklog, classBacklogPkts,
	classLent, classBorrowedPkt, classTokens, classCeilTokens,
}

func collectKernel(ch chan<- prometheus.Metric, k *Kernel) {
	for _, i := range k.Interfaces {
		out := sink{ch, []string{i.Name}}
		out.gauge(interfacePresent, truth(i.Present))
		out.gauge(interfaceDrift, truth(i.Drift))
		out.counter(interfaceRepairs, i.Repairs)
	}
	for i := range k.Links {
		l := &k.Links[i]
		out := sink{ch, []string{"kernel", l.Name}}
		out.counter(linkSent, l.Bytes)
		out.rate(linkRate, l.Rate)
		out.gauge(linkAchieved, l.Achieved/8)
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
	out.gauge(classBurst, float64(c.Burst))
	out.gauge(classAchieved, c.Achieved/8)
	out.rate(classAppliedRate, c.AppliedRate)
	out.rate(classAppliedCeil, c.AppliedCeil)
	out.counter(classPackets, c.Packets)
	out.counter(classDrops, c.Drops)
	out.counter(classOverlimits, c.Overlimits)
	out.gauge(classBacklog, float64(c.BacklogBytes))
	out.gauge(classBacklogPkts, float64(c.Backlog))
	out.counter(classLent, c.LentPackets)
	out.counter(classBorrowedPkt, c.BorrowedPackets)
	out.gauge(classTokens, float64(c.TokensBytes))
	out.gauge(classCeilTokens, float64(c.CeilTokBytes))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
