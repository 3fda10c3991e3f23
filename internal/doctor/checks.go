package doctor

import (
	"cmp"
	"slices"
)

// A check looks at one thing. What it finds is in the report under its group
// and name; docs/doctor.md has a line for each name.
type check struct {
	group, name string
	run         func(*Facts) []Finding
}

// checks are all of them, in the report's order.
var checks = slices.Concat(
	[]check{
		{"policy", "interfaces", checkPresence},
		{"policy", "link-speed", checkSpeed},
		{"policy", "bursts", checkBursts},
		{"policy", "burst-sum", checkBurstSum},
		{"policy", "overhead", checkOverhead},
		{"policy", "listen", checkListen},
		{"policy", "secrets", checkSecrets},
		{"policy", "redis", checkRedis},
		{"kernel", "version", checkVersion},
	},
	featureChecks(),
	[]check{
		{"kernel", "bpf-jit", checkJIT},
		{"kernel", "lockdown", checkLockdown},
		{"privileges", "CAP_NET_ADMIN", checkNetAdmin},
		{"privileges", "CAP_BPF", checkBPFCapabilities},
		{"privileges", "CAP_NET_BIND_SERVICE", checkBindService},
		{"bypass", "flowtables", checkFlowtables},
		{"bypass", "accelerators", checkAccelerators},
		{"bypass", "xdp", checkXDP},
		{"bypass", "hw-tc-offload", checkTCOffload},
		{"bypass", "bridge", checkBridge},
		{"bypass", "bond", checkBond},
		{"bypass", "stacked", checkStacked},
		{"bypass", "tunnels", checkTunnels},
		{"interfaces", "state", checkState},
		{"interfaces", "queues", checkQueues},
		{"interfaces", "big-tcp", checkBigTCP},
		{"interfaces", "lro", checkLRO},
		{"other programs", "root-qdisc", checkForeign},
		{"other programs", "ingress-filters", checkIngressFilters},
		{"other programs", "networkd", checkNetworkd},
		{"other programs", "NetworkManager", checkNetworkManager},
		{"other programs", "shapers", checkShapers},
		{"host", "clock-source", checkClockSource},
		{"host", "timers", checkTimers},
		{"host", "congestion-control", checkCongestionControl},
		{"host", "forwarding", checkForwarding},
		{"host", "ipv6", checkIPv6},
		{"host", "descriptors", checkDescriptors},
		{"host", "pipes", checkPipes},
		{"host", "listen-queue", checkListenQueue},
		{"host", "local-ports", checkLocalPorts},
		{"host", "syn-cookies", checkSynCookies},
	},
)

// Examine runs all checks on the facts.
func Examine(f *Facts) *Report {
	r := &Report{Policy: f.Policy.Name, System: f.system()}
	order := map[string]int{}
	for i, c := range checks {
		if _, known := order[c.group]; !known {
			order[c.group] = i
		}
		for _, x := range c.run(f) {
			x.Group, x.Check = c.group, c.name
			r.Findings = append(r.Findings, x)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.Group], order[b.Group]), cmp.Compare(b.Verdict, a.Verdict))
	})
	r.judge(f)
	return r
}

// all makes a list of one finding or none.
func all(list ...Finding) []Finding { return list }
