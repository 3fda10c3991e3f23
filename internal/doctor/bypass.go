package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// What passes by the qdiscs, and so by the classes.

func checkFlowtables(f *Facts) (list []Finding) {
	switch {
	case !needsInterfaces(f):
		return nil
	case f.FlowtablesErr != nil:
		return all(info("whether nftables has flowtables is not known", "what they forward passes by the classes", "run it as root: then they are listed"))
	}
	for _, l := range f.shaped() {
		for _, t := range f.Flowtables {
			if slices.Contains(t.Devices, l.info.Name) {
				list = append(list, problem(
					fmt.Sprintf("the nftables flowtable %s of table %s has %s", t.Name, t.Table, l.info.Name),
					"what it forwards passes by the classes, unshaped",
					fmt.Sprintf("take %s out of the flowtable's devices", l.info.Name)).of(l.info.Name))
			}
		}
	}
	if list == nil {
		list = all(ok("no nftables flowtable has a shaped interface"))
	}
	return list
}

// accelerators are modules that forward packets without the qdiscs.
var accelerators = []string{"shortcut_fe", "fast_classifier", "qca_nss_drv", "qca_nss_ecm", "hw_nat", "xt_FLOWOFFLOAD"}

func checkAccelerators(f *Facts) (list []Finding) {
	if !needsInterfaces(f) {
		return nil
	}
	loaded := "\n" + f.read("proc/modules")
	for _, module := range accelerators {
		if strings.Contains(loaded, "\n"+module+" ") {
			list = append(list, warning("the kernel module "+module+" is loaded", "what it forwards passes by the classes, unshaped", "turn the offload of the firewall off, or rmmod "+module))
		}
	}
	for line := range strings.Lines(f.read("etc/config/firewall")) {
		if c := strings.Fields(line); len(c) == 3 && c[0] == "option" && strings.HasPrefix(c[1], "flow_offloading") && strings.Trim(c[2], `'"`) == "1" {
			list = append(list, warning("/etc/config/firewall has "+c[1], "what is offloaded passes by the classes, unshaped",
				fmt.Sprintf("uci set firewall.@defaults[0].%s=0; uci commit; /etc/init.d/firewall restart", c[1])))
		}
	}
	if list == nil {
		list = all(ok("no accelerator of forwarding"))
	}
	return list
}

func checkXDP(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if !l.info.XDP {
			return all(ok("no XDP program"))
		}
		return all(warning("an XDP program is attached to "+l.info.Name, "what it sends on or answers by itself passes by the classes",
			fmt.Sprintf("bpftool net show dev %s   # whose it is; ip link set dev %s xdp off", l.info.Name, l.info.Name)))
	})
}

func checkTCOffload(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if !l.info.TCOffload {
			return all(ok("the card takes over no tc rules"))
		}
		return all(warning(l.info.Name+" has hw-tc-offload on", "flows that the card takes over pass by the classes",
			fmt.Sprintf("ethtool -K %s hw-tc-offload off", l.info.Name)))
	})
}

// A bridge's own queue sees what the host sends into it; what goes from port to port does not come there.
func checkBridge(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if l.info.Kind != "bridge" {
			return nil
		}
		ports := f.ports(l.info.Name)
		if len(ports) == 0 {
			return all(info(l.info.Name+" is a bridge without ports", "", ""))
		}
		return all(warning(l.info.Name+" is a bridge", "what it carries from port to port passes by; only what this host sends or routes is shaped",
			"shape its ports: "+strings.Join(ports, ", ")))
	})
}

// ports returns the interfaces that belong to a bridge or bond.
func (f *Facts) ports(of string) (names []string) {
	for i := range f.Links {
		if f.Links[i].Master == of {
			names = append(names, f.Links[i].Name)
		}
	}
	return names
}

func checkBond(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		for i := range f.Links {
			m := &f.Links[i]
			if m.Name == l.info.Master && (m.Kind == "bond" || m.Kind == "team") {
				return all(warning(l.info.Name+" is a part of "+m.Name, "what leaves through the other parts is not shaped", "shape "+m.Name))
			}
		}
		return nil
	})
}

// What is on top of an interface passes its queue as well.
func checkStacked(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) (list []Finding) {
		var unshaped []string
		for i := range f.Links {
			up := &f.Links[i]
			switch {
			case up.Lower != l.info.Name || up.Name == l.info.Name:
			case f.entry(up.Name) != nil:
				list = append(list, warning(fmt.Sprintf("%s is on top of %s, and both are shaped", up.Name, l.info.Name),
					"its packets wait twice, and count in both", "shape one of them"))
			default:
				unshaped = append(unshaped, up.Name)
			}
		}
		switch n := len(unshaped); {
		case n == 1:
			list = append(list, info(fmt.Sprintf("%s is on top of %s", unshaped[0], l.info.Name), "its packets are in the classes, too", ""))
		case n > 1:
			list = append(list, info(fmt.Sprintf("%s are on top of %s", join(unshaped), l.info.Name), "their packets are in the classes, too", ""))
		}
		return list
	})
}

// tunnels are the kinds of devices whose packets leave inside others.
var tunnels = []string{"wireguard", "tun", "vxlan", "gre", "gretap", "ip6gre", "ip6gretap", "ipip", "ip6tnl", "sit", "geneve", "vti", "vti6", "xfrm"}

func checkTunnels(f *Facts) []Finding {
	if len(f.shaped()) == 0 {
		return nil
	}
	var found []string
	for i := range f.Links {
		if l := &f.Links[i]; l.Up && f.entry(l.Name) == nil && slices.Contains(tunnels, l.Kind) {
			found = append(found, l.Name)
		}
	}
	switch len(found) {
	case 0:
		return all(ok("no tunnel beside what is shaped"))
	case 1:
		return all(info(found[0]+" is a tunnel", "rules see its outer packets only: all of it is in one class",
			"shape "+found[0]+" as well, or match the tunnel's own port"))
	}
	return all(info(join(found)+" are tunnels", "rules see their outer packets only: all of a tunnel is in one class",
		"shape them as well, or match the tunnels' own ports"))
}
