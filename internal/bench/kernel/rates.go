package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"

	"shaperd/classify"
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
		plain, err := b.iperf(rate)
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
			off, err := b.iperf(rate)
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

// iperf measures a TCP connection for 5 s, after one that does not count, and
// returns how far it is off the rate, in percent, with all headers.
func (b *bench) iperf(rate shaper.Rate) (off float64, err error) {
	server := exec.CommandContext(b.ctx, "iperf3", "-s", "-1", "-p", "5201")
	if err := b.lab.Start("receiver", server); err != nil {
		return 0, fmt.Errorf("iperf3: %w (apt-get install iperf3)", err)
	}
	var out string
	for range 50 { // until the server listens
		if out, err = b.lab.Output("sender", "iperf3", "-c", "10.1.0.2", "-p", "5201", "-t", "5", "-O", "1", "-J"); err == nil {
			break
		}
	}
	_ = server.Wait()
	if err != nil {
		return 0, err
	}
	var result struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		return 0, fmt.Errorf("iperf3: %w", err)
	}
	return 100 * (result.End.Received.Rate*wirePerPayload/float64(rate) - 1), nil
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
