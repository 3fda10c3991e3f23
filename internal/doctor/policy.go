package doctor

import (
	"fmt"
	"strings"
	"time"

	"shaperd/shaper"
)

// What is legal in a policy, and doubtful on this host.

func checkPresence(f *Facts) (list []Finding) {
	if some, _, _ := f.shapes(); !some {
		return nil
	}
	if f.LinksErr != nil {
		return all(problem("the interfaces cannot be listed: "+f.LinksErr.Error(), "nothing is known of them", "").stopping(allInterfaces))
	}
	for _, name := range f.awaited() {
		if strings.ContainsAny(name, "*?[") {
			list = append(list, info("no interface has a name like "+name, "it is shaped once it comes", "").of(name))
			continue
		}
		list = append(list, warning("there is no interface "+name, "run shapes it once it comes; apply refuses", "ip -br link   # a name of those there are").of(name))
	}
	for _, l := range f.shaped() {
		list = append(list, ok("%s is there", l.info.Name).of(l.info.Name))
	}
	return list
}

// A link that is not the bottleneck shapes nothing: the card's own queue does.
// Of a full Ethernet packet, what the kernel counts is 98.4 % of what the wire carries.
func checkSpeed(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) (list []Finding) {
		const counted = 0.98
		speed, known := f.number("sys/class/net/" + l.info.Name + "/speed")
		if !known || speed <= 0 || !f.exists("sys/class/net/"+l.info.Name+"/device") { // of devices without hardware it is made up
			return nil
		}
		card := shaper.Rate(speed) * shaper.Mbit
		for _, link := range links(l.entry) {
			if float64(link.Rate) <= counted*float64(card) {
				continue
			}
			list = append(list, warning(
				fmt.Sprintf("%s is %s, and the card has %s", link.Name, link.Rate, card),
				"packets queue in the card, where classes mean nothing",
				fmt.Sprintf("write at most %s", shaper.Rate(speed*98/100)*shaper.Mbit)))
		}
		if list == nil {
			list = all(ok("below the card's %s", card))
		}
		return list
	})
}

func checkBursts(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) (list []Finding) {
		for _, link := range links(l.entry) {
			leaves(link.Classes, func(c *shaper.Class) {
				packet := shaper.Size(l.info.MTU + 14) // an Ethernet header
				switch {
				case c.Burst == 0:
				case c.Burst < packet:
					list = append(list, problem(
						fmt.Sprintf("class %s of %s has a burst of %s, and a packet %s", c.Name, link.Name, c.Burst, packet),
						"the interface is refused: the packet would never leave",
						fmt.Sprintf("burst: %s or more, or remove the key", packet)))
				case link.Rate >= shaper.Gbit && c.Burst < shaper.Size(l.info.GSO):
					list = append(list, info(
						fmt.Sprintf("class %s of %s has a burst of %s, and an offloaded packet up to %s", c.Name, link.Name, c.Burst, shaper.Size(l.info.GSO)),
						"such packets are cut in software, at more processor time",
						fmt.Sprintf("burst: %s or more, or remove the key", shaper.Size(l.info.GSO))))
				}
			})
		}
		if list == nil {
			list = all(ok("hold a packet of %d bytes", l.info.MTU+14))
		}
		return list
	})
}

// longBurst is how long the bursts of all classes together may take the link.
const longBurst = 100 * time.Millisecond

func checkBurstSum(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) (list []Finding) {
		for _, link := range links(l.entry) {
			var sum shaper.Size
			leaves(link.Classes, func(c *shaper.Class) { sum += c.Burst })
			if lasts := time.Duration(float64(sum) * 8 / float64(link.Rate) * float64(time.Second)); lasts > longBurst {
				list = append(list, warning(
					fmt.Sprintf("the bursts of %s add up to %s: %s of the link", link.Name, sum, lasts.Round(time.Millisecond)),
					"when classes begin together, all wait for as long as that",
					"lower the bursts, or remove the keys: the derived ones are short"))
			}
		}
		if list == nil {
			list = all(ok("take less than %s of the link", longBurst))
		}
		return list
	})
}

func checkOverhead(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if l.entry.Overhead == 0 {
			return nil
		}
		return all(info(
			fmt.Sprintf("an overhead of %d bytes is added once to each offloaded packet", l.entry.Overhead),
			"rates come out a few percent too high for bulk traffic",
			fmt.Sprintf("ethtool -K %s tso off gso off gro off", l.info.Name)))
	})
}
