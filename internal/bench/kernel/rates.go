package main

import (
	"fmt"
	"math"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"shaperd/classify"
	"shaperd/internal/measure"
	"shaperd/netlink"
	"shaperd/shaper"
)

// What the kernel counts of a full packet, and what of it is payload.
const wirePerPayload = 1514. / 1448

func config(l shaper.Link) netlink.Config {
	c := netlink.Config{Interfaces: []netlink.Interface{{Name: "eth0", Egress: l}}}
	for i := range l.Classes {
		if l.Classes[i].Default {
			c.Rules.Default = l.Classes[i].Name
		}
	}
	return c
}

// link has one class that gets everything, as kind says, and one that is there to lend.
func link(kind string, rate shaper.Rate) shaper.Link {
	all := shaper.Class{Name: "all", Rate: rate, Ceil: rate, Default: true}
	l := shaper.Link{Name: "eth0 egress", Rate: 2 * rate}
	switch kind {
	case "borrowing":
		all.Rate, l.Rate = rate/4, rate
	case "leaky":
		all.Mode = shaper.Leaky
	}
	l.Classes = []shaper.Class{all, {Name: "quiet", Rate: l.Rate / 4, Ceil: l.Rate}}
	return l
}

// rates measures what classes of each kind let through, and what HTB does as tc makes it.
func (b *bench) rates() error {
	for _, rate := range []shaper.Rate{shaper.Mbit, 10 * shaper.Mbit, 100 * shaper.Mbit, shaper.Gbit, 5 * shaper.Gbit} {
		if err := b.tc("qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1"); err != nil {
			return err
		}
		if err := b.tc("class", "add", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb", "rate", rate.String()); err != nil {
			return err
		}
		plain, err := b.tcp(rate)
		if err != nil {
			return err
		}
		if err := b.tc("qdisc", "del", "dev", "eth0", "root"); err != nil {
			return err
		}
		for _, kind := range []string{"hard cap", "borrowing", "leaky"} {
			if err := b.shape(link(kind, rate)); err != nil {
				return err
			}
			off, err := b.tcp(rate)
			if err != nil {
				return err
			}
			most := 1.
			switch {
			case rate > shaper.Gbit:
				most = 3
			case kind == "leaky" && rate == shaper.Gbit:
				most = 7
			}
			target := fmt.Sprintf("± %.0f %%", most)
			if kind == "leaky" && rate > shaper.Gbit {
				target = ""
			}
			b.add(fmt.Sprintf("%s at %s, rate error over 5 s", kind, rate), fmt.Sprintf("%+.2f %%", off), fmt.Sprintf("%+.2f %%", plain), target, math.Abs(off) <= most)
			if _, err := b.path.Clear(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) tc(args ...string) error {
	_, err := b.lab.Output("sender", append([]string{"tc"}, args...)...)
	return err
}

// tcp measures a TCP connection for 5 s, after what it needs to get going, and
// returns how far it is off the rate, in percent, with all headers. While TCP
// finds its pace, what was lost holds back what comes after it, and then all of
// that arrives at once: at low rates that takes seconds.
func (b *bench) tcp(rate shaper.Rate) (off float64, err error) {
	const span = 5 * time.Second
	settle := time.Second
	if rate <= 10*shaper.Mbit {
		settle = 5 * time.Second
	}
	var listener *net.TCPListener
	if err := b.lab.Do("receiver", func() (err error) {
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(10, 1, 0, 2), Port: 5201})
		return err
	}); err != nil {
		return 0, err
	}
	defer listener.Close()
	var sender, receiver *net.TCPConn
	if err := b.lab.Do("sender", func() (err error) {
		sender, err = net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr))
		return err
	}); err != nil {
		return 0, err
	}
	if receiver, err = listener.AcceptTCP(); err != nil {
		return 0, err
	}
	got := measure.NewRecorder()
	var working errgroup.Group
	working.Go(func() error {
		got.Count(0, receiver)
		return nil
	})
	working.Go(func() error {
		buf := make([]byte, 64<<10)
		for err := error(nil); err == nil; {
			_, err = sender.Write(buf)
		}
		return nil
	})
	select {
	case <-time.After(settle + span + 200*time.Millisecond):
	case <-b.ctx.Done():
	}
	list := got.Since(settle)
	_ = sender.SetLinger(0)
	sender.Close()
	receiver.Close()
	_ = working.Wait()
	payload, _ := measure.Rate(list, span, 1)
	return 100 * (payload*8*wirePerPayload/float64(rate) - 1), b.ctx.Err()
}

// ports are so many rules, each for a port of TCP, that lead to the classes in turn.
func ports(n int, class func(int) string) (list []classify.Rule) {
	for i := range n {
		list = append(list, classify.Rule{Class: class(i), Match: classify.Match{
			Proto: []classify.Protocol{classify.TCP}, DPort: []classify.PortRange{{First: uint16(i + 1), Last: uint16(i + 1)}},
		}})
	}
	return list
}
