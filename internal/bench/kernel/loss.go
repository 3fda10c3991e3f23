package main

import (
	"fmt"
	"net/netip"
	"time"

	"shaperd/internal/lab"
	"shaperd/shaper"
)

// loss counts packets that go missing while a class's rate changes under load:
// they are numbered, and fewer than what either rate allows.
func (b *bench) loss() error {
	const load, low, high = 12 * shaper.Mbit, 20 * shaper.Mbit, 30 * shaper.Mbit
	packets := 3600 // three seconds of them
	if b.quick {
		packets = 600
	}
	for _, kind := range []string{hardCap, borrowing, leaky} {
		if err := b.shape(link(kind, low)); err != nil {
			return err
		}
		p, err := b.lab.Packets(lab.UDP{From: sender, To: receiver, Addr: netip.MustParseAddrPort(receiverAddr + ":5400"), Size: 1200, Rate: load})
		if err != nil {
			return err
		}
		changes, err := b.changeWhile(kind, [2]shaper.Rate{high, low}, func() error { return p.Send(b.ctx, packets) })
		lost := 0
		if err == nil {
			lost, err = p.Lost(b.ctx)
		}
		p.Close()
		if err != nil {
			return err
		}
		b.add(fmt.Sprintf("%s, %d changes of rate under load: packets lost of %d", kind, changes, packets), fmt.Sprint(lost), "", "0", lost == 0)
	}
	return nil
}

// changeWhile gives a class now one rate, now the other while load runs, and returns how often.
func (b *bench) changeWhile(kind string, rates [2]shaper.Rate, load func() error) (changes int, err error) {
	done := make(chan error, 1)
	go func() { done <- load() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return changes, err
		case <-tick.C:
		}
		if err := b.shape(link(kind, rates[changes%2])); err != nil {
			return changes, err
		}
		changes++
	}
}
