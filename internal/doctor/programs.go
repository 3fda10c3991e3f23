package doctor

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Who else manages the same interfaces.

func checkForeign(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		switch {
		case l.entry.Egress.Rate == 0:
			return nil
		case l.info.Ours:
			return all(ok("shaperd's qdisc is at the root"))
		case l.info.Root == "":
			return all(ok("nobody's qdisc is at the root"))
		case l.entry.Takeover:
			return all(info(fmt.Sprintf("%s has another's qdisc, %s", l.info.Name, l.info.Root), "it is replaced, since the policy says takeover: true", ""))
		}
		return all(problem(fmt.Sprintf("%s has another's qdisc, %s", l.info.Name, l.info.Root), "shaperd leaves it alone, and does not shape",
			fmt.Sprintf("tc qdisc del dev %s root, or takeover: true", l.info.Name)))
	})
}

func checkIngressFilters(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		switch {
		case l.entry.Ingress.Rate == 0:
			return nil
		case l.info.Filters == 0:
			return all(ok("no filters of others"))
		}
		return all(info(fmt.Sprintf("%s has %s of others for what arrives", l.info.Name, count(l.info.Filters, "filter")),
			"those with a lower preference come first, and may send packets elsewhere", fmt.Sprintf("tc filter show dev %s ingress", l.info.Name)))
	})
}

// shapers are programs that set qdiscs, as their processes and services are called.
var shapers = []string{
	"fireqos", "firehol", "wondershaper", "wshaper", "sqm", "sqm-autorate", "cake-autorate", "qosify", "qosmate", "nft-qos", "tcset", "htb.init",
	"trafficcontrol", "vyos-qos",
}

func checkShapers(f *Facts) (list []Finding) {
	if !needsInterfaces(f) {
		return nil
	}
	running := f.programs()
	for _, name := range shapers {
		const cost = "two programs that shape the same interface undo each other's work"
		if pids := running[name]; len(pids) > 0 {
			list = append(list, warning(fmt.Sprintf("%s runs, pid %d", name, pids[0]), cost, "stop it, or keep it from these interfaces"))
			continue
		}
		units, _ := fs.Glob(f.System, "etc/systemd/system/*.wants/"+name+".service")
		scripts, _ := fs.Glob(f.System, "etc/rc.d/S[0-9][0-9]"+name)
		switch {
		case len(units) > 0:
			list = append(list, warning("the service "+name+" starts with the system", cost, "systemctl disable --now "+name))
		case len(scripts) > 0:
			list = append(list, warning("the service "+name+" starts with the system", cost, "/etc/init.d/"+name+" disable; /etc/init.d/"+name+" stop"))
		}
	}
	if list == nil {
		list = all(ok("no other program that shapes"))
	}
	return list
}

func checkNetworkManager(f *Facts) (list []Finding) {
	pids := f.programs()["NetworkManager"]
	if !needsInterfaces(f) || len(pids) == 0 {
		return nil
	}
	var files []string
	for _, dir := range []string{"etc", "run", "usr/lib"} {
		found, _ := fs.Glob(f.System, dir+"/NetworkManager/system-connections/*.nmconnection")
		files = append(files, found...)
	}
	for _, name := range files {
		connection := strings.TrimSuffix(path.Base(name), ".nmconnection")
		if slices.Contains(sections(f.read(name)), "tc") {
			list = append(list, warning(fmt.Sprintf("NetworkManager's connection %s has tc settings", connection),
				"it sets them each time the connection comes up; shaperd then repairs its own", fmt.Sprintf("nmcli connection modify %q remove tc", connection)))
		}
	}
	if list == nil {
		list = all(info("NetworkManager runs", "it leaves qdiscs alone unless a connection has tc settings; root sees whether one has", ""))
		if len(files) > 0 && f.read(files[0]) != "" {
			list = all(ok("NetworkManager has no tc settings"))
		}
	}
	return list
}

// networkdQdiscs are the sections of a .network file that set qdiscs (systemd.network(5)).
var networkdQdiscs = []string{
	"QDisc", "NetworkEmulator", "TokenBucketFilter", "PIE", "FlowQueuePIE", "StochasticFairBlue", "StochasticFairnessQueueing", "BFIFO",
	"PFIFO", "PFIFOHeadDrop", "PFIFOFast", "CAKE", "ControlledDelay", "DeficitRoundRobinScheduler", "EnhancedTransmissionSelection",
	"GenericRandomEarlyDetection", "FairQueueingControlledDelay", "FairQueueing", "TrivialLinkEqualizer", "HierarchyTokenBucket",
	"ClassfulMultiQueueing", "BandMultiQueueing", "HeavyHitterFilter", "QuickFairQueueing",
}

func checkNetworkd(f *Facts) (list []Finding) {
	running := len(f.programs()["systemd-network"]) > 0 // 15 characters are kept of the name
	files, additions := map[string]string{}, map[string]string{}
	for _, dir := range []string{"usr/lib/systemd/network", "run/systemd/network", "etc/systemd/network"} { // of two files of one name the last is in force
		found, _ := fs.Glob(f.System, dir+"/*.network")
		for _, name := range found {
			files[path.Base(name)] = name
		}
		found, _ = fs.Glob(f.System, dir+"/*.network.d/*.conf")
		for _, name := range found {
			to := strings.TrimSuffix(path.Base(path.Dir(name)), ".d")
			additions[to] += "\n" + f.read(name)
		}
	}
	for _, base := range slices.Sorted(maps.Keys(files)) {
		text := f.read(files[base]) + additions[base]
		at := slices.IndexFunc(sections(text), func(s string) bool { return slices.Contains(networkdQdiscs, s) })
		if at < 0 {
			continue
		}
		for _, l := range f.shaped() {
			if !networkdMatches(text, l.info.Name) {
				continue
			}
			found := fmt.Sprintf("/%s sets a qdisc for %s: [%s]", files[base], l.info.Name, sections(text)[at])
			if !running {
				list = append(list, info(found, "nothing while systemd-networkd does not run", "").of(l.info.Name))
				continue
			}
			list = append(list, warning(found, "systemd-networkd sets it at each start and reconfigure; shaperd then repairs its own",
				"remove the section, then: networkctl reload").of(l.info.Name))
		}
	}
	if list == nil && running && needsInterfaces(f) {
		list = all(ok("systemd-networkd sets no qdisc here"))
	}
	return list
}

// sections returns the names of the sections of a file in the style of systemd.
func sections(text string) (names []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			names = append(names, line[1:len(line)-1])
		}
	}
	return names
}

// networkdMatches reports whether a .network file may be for the interface: its
// [Match] names it, or says nothing of names.
func networkdMatches(text, device string) bool {
	section, named := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, _ := strings.Cut(line, "=")
		if section != "[Match]" || strings.TrimSpace(key) != "Name" {
			continue
		}
		named = true
		patterns := strings.Fields(value)
		negated := len(patterns) > 0 && strings.HasPrefix(patterns[0], "!")
		found := slices.ContainsFunc(patterns, func(p string) bool {
			match, err := path.Match(strings.TrimPrefix(p, "!"), device)
			return match && err == nil
		})
		if found != negated {
			return true
		}
	}
	return !named
}
