package main

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"shaperd/internal/lab"
	"shaperd/shaper"
)

// kinds are of classes.
const (
	hardCap   = "hard cap"
	borrowing = "borrowing"
	leaky     = "leaky"
)

// link has one class that gets everything, as kind says, and one that is there to lend.
func link(kind string, rate shaper.Rate) shaper.Link {
	all := shaper.Class{Name: "all", Rate: rate, Ceil: rate, Default: true}
	l := shaper.Link{Name: device + " egress", Rate: 2 * rate}
	switch kind {
	case borrowing:
		all.Rate, l.Rate = rate/4, rate
	case leaky:
		all.Mode = shaper.Leaky
	}
	l.Classes = []shaper.Class{all, {Name: "quiet", Rate: l.Rate / 4, Ceil: l.Rate}}
	return l
}

// plain is the same link as one writes it for tc, with tc's own bursts.
func plain(l shaper.Link) string {
	var text strings.Builder
	fmt.Fprintf(&text, "qdisc replace dev %s root handle 1: htb default 10\nclass add dev %[1]s parent 1: classid 1:1 htb rate %s\n", device, l.Rate)
	for i, c := range l.Classes {
		fmt.Fprintf(&text, "class add dev %s parent 1:1 classid 1:1%d htb rate %s ceil %s\n", device, i, c.Rate, c.Ceil)
	}
	return text.String()
}

// A scale is a rate with how far off a class may be of it, in percent.
type scale struct {
	rate shaper.Rate
	off  map[string]float64 // by kind; none where there is no target
}

var scales = []scale{
	{shaper.Mbit, map[string]float64{hardCap: 1, borrowing: 1, leaky: 1}},
	{10 * shaper.Mbit, map[string]float64{hardCap: 1, borrowing: 1, leaky: 1}},
	{100 * shaper.Mbit, map[string]float64{hardCap: 1, borrowing: 1, leaky: 1}},
	{shaper.Gbit, map[string]float64{hardCap: 1, borrowing: 1, leaky: 7}},
	{5 * shaper.Gbit, map[string]float64{hardCap: 3, borrowing: 3}},
}

// rates measures what classes of each kind let through, each beside the same
// link by tc. A leaky class has nothing there to stand beside.
func (b *bench) rates() error {
	for _, s := range scales {
		if b.quick && s.rate != 10*shaper.Mbit && s.rate != shaper.Gbit {
			continue
		}
		for _, kind := range []string{hardCap, borrowing, leaky} {
			l := link(kind, s.rate)
			beside := ""
			if kind != leaky {
				if err := b.batch(plain(l)); err != nil {
					return err
				}
				off, err := b.rateError(s.rate)
				if err != nil {
					return err
				}
				beside = fmt.Sprintf("%+.2f %%", off)
				if err := b.tc("qdisc", "del", "dev", device, "root"); err != nil {
					return err
				}
			}
			if err := b.shape(l); err != nil {
				return err
			}
			off, err := b.rateError(s.rate)
			if err != nil {
				return err
			}
			target, most := "", s.off[kind]
			if most > 0 {
				target = fmt.Sprintf("± %.0f %%", most)
			}
			b.add(fmt.Sprintf("%s at %s: rate error", kind, s.rate), fmt.Sprintf("%+.2f %%", off), beside, target, math.Abs(off) <= most)
			if _, err := b.path.Clear(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rateError measures a TCP connection for 5 s, once it has found its pace, and
// returns how far it is off the rate, in percent, with all headers. Until then
// what was lost holds back what comes after it, and then all of that arrives at
// once: at low rates that takes seconds.
func (b *bench) rateError(rate shaper.Rate) (off float64, err error) {
	settle, span := time.Second, 5*time.Second
	if rate <= 10*shaper.Mbit {
		settle = 5 * time.Second
	}
	if b.quick {
		settle, span = settle/2, time.Second
	}
	s, err := b.lab.Connect(lab.TCP{Client: sender, Server: receiver, Addrs: []netip.AddrPort{netip.MustParseAddrPort(receiverAddr + ":5201")}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	s.Send()
	if err := b.wait(settle); err != nil {
		return 0, err
	}
	from := s.Got.Now()
	if err := b.wait(span + span/10); err != nil {
		return 0, err
	}
	bits, _ := s.Rate(from, span)
	return 100 * (bits/float64(rate) - 1), nil
}
