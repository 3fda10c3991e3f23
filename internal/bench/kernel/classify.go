package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/bpf"
)

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

// classify measures what it costs to find a packet's class, ours beside a list
// of u32 filters as tc makes it. The packet matches the last rule.
func (b *bench) classify() error {
	sizes := []int{1, 100, 1000, 10000}
	programs := make([]*bpf.Program, len(sizes))
	for i, n := range sizes {
		t, err := bpf.Compile(classify.Rules{List: ports(n, func(int) string { return "c" }), Default: "c"}, map[string]uint16{"c": 3}, 2)
		if err != nil {
			return err
		}
		if programs[i], err = bpf.Load(t); err != nil {
			return err
		}
		defer programs[i].Close()
	}
	costs := make([]float64, len(sizes)) // the least of all rounds: what disturbs only adds
	for range 9 {
		for i, n := range sizes {
			each, err := programs[i].Cost(segment(n), 300_000)
			if err != nil {
				return err
			}
			if ns := float64(each.Nanoseconds()); costs[i] == 0 || ns < costs[i] {
				costs[i] = ns
			}
		}
	}
	linear := 0.
	for i, n := range sizes {
		peer := "not measured"
		if n <= 1000 {
			var err error
			if linear, err = b.linear(n); err != nil {
				return err
			}
			peer = fmt.Sprintf("%.0f ns", linear)
		}
		b.add(fmt.Sprintf("classification, %d rules; beside: linear u32", n), fmt.Sprintf("%.0f ns", costs[i]), peer, "", true)
	}
	flat := slices.Max(costs) / slices.Min(costs)
	b.add("classification, dearest of these to cheapest", fmt.Sprintf("%.2f×", flat), "", "≤ 1.3×", flat <= 1.3)
	b.add("classification, 1000 rules, u32 to shaperd", fmt.Sprintf("%.0f×", linear/costs[2]), "", "≥ 20×", linear >= 20*costs[2])
	return nil
}

// linear returns what n u32 filters add to a packet's way through HTB, in ns.
func (b *bench) linear(n int) (float64, error) {
	if err := b.tc("qdisc", "replace", "dev", "lo", "root", "handle", "1:", "htb", "default", "1"); err != nil {
		return 0, err
	}
	defer func() { _ = b.tc("qdisc", "del", "dev", "lo", "root") }()
	if err := b.tc("class", "add", "dev", "lo", "parent", "1:", "classid", "1:1", "htb", "rate", "100gbit", "burst", "10mb", "quantum", "60000"); err != nil {
		return 0, err
	}
	base, err := b.flood(n)
	if err != nil {
		return 0, err
	}
	var batch strings.Builder
	for i := range n {
		fmt.Fprintf(&batch, "filter add dev lo parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport %d 0xffff flowid 1:1\n", i+1)
	}
	if err := b.batch(batch.String()); err != nil {
		return 0, err
	}
	with, err := b.flood(n)
	return with - base, err
}

// batch has tc read commands.
func (b *bench) batch(commands string) error {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("bench-kernel-%d", os.Getpid()))
	defer os.Remove(file)
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		return err
	}
	return b.tc("-batch", file)
}

// flood sends packets to the port on the sender's loopback, where nobody takes
// them, and returns ns for each: the least of several rounds.
func (b *bench) flood(port int) (least float64, err error) {
	err = b.lab.Do("sender", func() error {
		lo, err := net.InterfaceByName("lo")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		frame, to := segment(port), &unix.SockaddrLinklayer{Ifindex: lo.Index, Halen: 6}
		for range 7 {
			const packets = 20000
			begin := time.Now()
			for range packets {
				if err := unix.Sendto(fd, frame, 0, to); err != nil {
					return err
				}
			}
			if each := float64(time.Since(begin).Nanoseconds()) / packets; least == 0 || each < least {
				least = each
			}
		}
		return nil
	})
	return least, err
}
