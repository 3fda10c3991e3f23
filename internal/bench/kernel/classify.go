package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/bpf"
	"shaperd/shaper"
)

// ruleCounts are how many port rules there are, of which a packet matches the last.
var ruleCounts = []int{1, 100, 1000, 10000}

const (
	ownSink = "own0"  // shaped by shaperd, with rules
	tcSink  = "tc0"   // HTB by tc, with u32 filters
	noSink  = "none0" // HTB by tc, without
)

// ports are so many rules, each for a port of TCP, that lead to the classes in turn.
func ports(n int, class func(int) string) (list []classify.Rule) {
	for i := range n {
		list = append(list, classify.Rule{Class: class(i), Match: classify.Match{
			Proto: []classify.Protocol{classify.TCP}, DPort: []classify.PortRange{{First: uint16(i + 1), Last: uint16(i + 1)}},
		}})
	}
	return list
}

// classify measures what it costs to find a packet's class, beside a list of
// u32 filters as tc makes it: the classifier alone, and the whole way of a
// packet through a device that then drops it, in turn.
func (b *bench) classify() error {
	for _, name := range []string{ownSink, tcSink, noSink} {
		if err := b.lab.Sink(sender, name); err != nil {
			return err
		}
	}
	if err := b.batch(fastHTB(noSink)); err != nil {
		return err
	}
	counts := ruleCounts
	if b.quick {
		counts = counts[:3]
	}
	alone, err := b.programCosts(counts)
	if err != nil {
		return err
	}
	linear := map[int]float64{}
	for i, n := range counts {
		own, tc, none, err := b.ways(n)
		if err != nil {
			return err
		}
		linear[n] = tc - none
		b.add(fmt.Sprintf("%d port rules: classification, ns per packet; beside: u32 filters in a row", n), fmt.Sprintf("%.0f", alone[i]), fmt.Sprintf("%.0f", max(linear[n], 0)), "", true)
		b.add(fmt.Sprintf("%d port rules: a packet's whole way through the qdisc, ns; beside: HTB with them", n), fmt.Sprintf("%.0f", own), fmt.Sprintf("%.0f", tc), "", true)
	}
	flat := slices.Max(alone) / slices.Min(alone)
	b.add("classification: dearest of these to cheapest", fmt.Sprintf("%.2f×", flat), "", "≤ 1.3×", flat <= 1.3)
	ratio := linear[1000] / alone[2]
	b.add("classification at 1,000 rules: u32 to shaperd", fmt.Sprintf("%.0f×", ratio), "", "≥ 20×", ratio >= 20)
	return nil
}

// programCosts is what the eBPF program takes for a packet that the last of so
// many rules takes, in ns: the least of several rounds in turn, since whatever
// else the machine does makes it more.
func (b *bench) programCosts(counts []int) (ns []float64, err error) {
	programs := make([]*bpf.Program, len(counts))
	for i, n := range counts {
		t, err := bpf.Compile(classify.Rules{List: ports(n, func(int) string { return "c" }), Default: "c"}, map[string]uint16{"c": 3}, 2)
		if err != nil {
			return nil, err
		}
		if programs[i], err = bpf.Load(t); err != nil {
			return nil, err
		}
		defer programs[i].Close()
	}
	ns = make([]float64, len(counts))
	for round := range 4 * b.rounds {
		for i, n := range counts {
			each, err := programs[i].Cost(segment(n), 200_000)
			if err != nil {
				return nil, err
			}
			if v := float64(each.Nanoseconds()); round == 0 || v < ns[i] {
				ns[i] = v
			}
		}
	}
	return ns, nil
}

// fastHTB is an HTB that holds nothing up.
func fastHTB(device string) string {
	return fmt.Sprintf("qdisc add dev %s root handle 1: htb default 1\nclass add dev %[1]s parent 1: classid 1:1 htb rate 100gbit burst 10mb cburst 10mb quantum 60000\n", device)
}

// ways returns what a packet costs on each way, in ns: through our tree with n
// rules, and through HTB with n filters and without.
func (b *bench) ways(n int) (own, tc, none float64, err error) {
	c := config(shaper.Link{Name: ownSink + " egress", Rate: 100 * shaper.Gbit, Classes: []shaper.Class{
		{Name: "matched", Rate: 50 * shaper.Gbit, Ceil: 100 * shaper.Gbit}, {Name: "rest", Rate: shaper.Gbit, Ceil: 100 * shaper.Gbit, Default: true},
	}})
	c.Interfaces[0].Name = ownSink
	c.Rules.List = ports(n, func(int) string { return "matched" })
	if _, err := b.path.Apply(c); err != nil {
		return 0, 0, 0, err
	}
	var commands strings.Builder
	commands.WriteString(fastHTB(tcSink))
	for i := range n {
		fmt.Fprintf(&commands, "filter add dev %s parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport %d 0xffff flowid 1:1\n", tcSink, i+1)
	}
	if err := b.batch(commands.String()); err != nil {
		return 0, 0, 0, err
	}
	costs := map[string][]float64{}
	for range 4 * b.rounds {
		for _, sink := range []string{ownSink, tcSink, noSink} {
			each, err := b.flood(sink, n)
			if err != nil {
				return 0, 0, 0, err
			}
			costs[sink] = append(costs[sink], each)
		}
	}
	err = b.tc("qdisc", "del", "dev", tcSink, "root")
	return slices.Min(costs[ownSink]), slices.Min(costs[tcSink]), slices.Min(costs[noSink]), err
}

// segment is a TCP packet to the port in an Ethernet frame.
func segment(port int) []byte {
	f := make([]byte, 14+20+20)
	f[12], f[13] = 8, 0
	f[14], f[17], f[22], f[23] = 0x45, 40, 64, 6
	copy(f[26:], []byte{10, 1, 0, 1, 10, 1, 0, 9})
	f[36], f[37] = byte(port>>8), byte(port)
	f[46] = 0x50
	return f
}

// flood sends packets to the port out of a device, and returns ns for each.
func (b *bench) flood(name string, port int) (each float64, err error) {
	packets := 10000
	if port > 1000 {
		packets = 1000 // linear filters take a fifth of a millisecond each
	}
	err = b.lab.Do(sender, func() error {
		dev, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		frame, to := segment(port), &unix.SockaddrLinklayer{Ifindex: dev.Index, Halen: 6}
		begin := time.Now()
		for range packets {
			if err := unix.Sendto(fd, frame, 0, to); err != nil {
				return fmt.Errorf("send to %s: %w", name, err)
			}
		}
		each = float64(time.Since(begin).Nanoseconds()) / float64(packets)
		return nil
	})
	return each, err
}
