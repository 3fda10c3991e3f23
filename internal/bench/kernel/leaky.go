package main

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"shaperd/internal/lab"
	"shaperd/shaper"
)

// leaky compares the pace of packets in a steady class and in one that may send
// 64 KB at once. How exact a steady class's rate is, is among the rates.
func (b *bench) leaky() error {
	const rate, window = 10 * shaper.Mbit, 10 * time.Millisecond
	steady, err := b.arrivals(link(leaky, rate))
	if err != nil {
		return err
	}
	token := link(hardCap, rate)
	token.Classes[0].Burst = 68 * shaper.KiB // with its headers the largest offloaded packet fits
	bursts, err := b.arrivals(token)
	if err != nil {
		return err
	}
	own, theirs := spread(steady), spread(bursts)
	b.add("leaky at 10mbit: deviation of the gaps between packets; beside: mode token, 64 KB at once",
		own.Round(time.Microsecond).String(), theirs.Round(time.Microsecond).String(), "a tenth", own*10 <= theirs)
	ofRate := func(list []arrival) float64 {
		return float64(busiest(list, window)) / (float64(rate) / 8 * window.Seconds())
	}
	worst := ofRate(steady)
	b.add("leaky at 10mbit: the most within 10 ms, of the rate; beside: the same", fmt.Sprintf("%.2f×", worst), fmt.Sprintf("%.2f×", ofRate(bursts)), "≤ 1.25×", worst <= 1.25)
	return nil
}

// arrivals returns when a connection's packets arrive that the link lets through, once it is under way.
func (b *bench) arrivals(l shaper.Link) ([]arrival, error) {
	settle, span := time.Second, 3*time.Second
	if b.quick {
		span = time.Second
	}
	if err := b.shape(l); err != nil {
		return nil, err
	}
	s, err := b.lab.Connect(lab.TCP{Client: sender, Server: receiver, Addrs: []netip.AddrPort{netip.MustParseAddrPort(receiverAddr + ":5300")}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.Send()
	if err := b.wait(settle); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var list []arrival
	c, err := b.lab.Capture(receiver, device, func(p lab.Packet) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, arrival{p.At, p.Bytes, p.Count})
	})
	if err != nil {
		return nil, err
	}
	err = b.wait(span)
	c.Close()
	return list, err
}
