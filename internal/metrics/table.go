package metrics

// All metrics, in the order of the docs. Nothing of them is said elsewhere: the
// collectors take names, types and labels from here, and so does docs/metrics.md.

// Of a class on a link.
var (
	classSent       = class(OfBoth, Counter, "sent_bytes_total", "bytes", "Bytes that the class has sent.")
	classRate       = class(OfBoth, Gauge, "rate_bytes_per_second", "bytes/s", "Rate that the class is guaranteed.")
	classCeil       = class(OfBoth, Gauge, "ceil_bytes_per_second", "bytes/s", "Rate that the class may reach by borrowing; 0 is the link's.")
	classBurst      = class(OfBoth, Gauge, "burst_bytes", "bytes", "Bytes that may leave at once after a quiet time.").advise("Derived where the policy gives none.")
	classAchieved   = class(OfBoth, Gauge, "achieved_bytes_per_second", "bytes/s", "Rate that the class has sent at lately.")
	classBorrowed   = class(OfRelay, Counter, "borrowed_bytes_total", "bytes", "Of the bytes sent, those above the class's own rate.")
	classChunks     = class(OfRelay, Counter, "chunks_total", "turns", "Turns in which the class has sent something.")
	classSessions   = class(OfRelay, Gauge, "sessions", "sessions", "Sessions that the class has.")
	classBacklogged = class(OfRelay, Gauge, "backlogged_sessions", "sessions", "Sessions of the class that have something to send.")
	classWait       = class(OfRelay, Histogram, "wait_seconds", "seconds", "Time from being ready to send to sending, by turn.")

	classAppliedRate = class(OfKernel, Gauge, "applied_rate_bytes_per_second", "bytes/s", "Guarantee that the kernel has for the class; 0 when it has no such class.").
				advise("Less than the policy's where something is wrong.")
	classAppliedCeil = class(OfKernel, Gauge, "applied_ceil_bytes_per_second", "bytes/s", "Ceil that the kernel has for the class; 0 when it has no such class.")
	classPackets     = class(OfKernel, Counter, "sent_packets_total", "packets", "Packets that the class has sent.")
	classDrops       = class(OfKernel, Counter, "dropped_packets_total", "packets", "Packets that the class's queue had no room for.")
	classOverlimits  = class(OfKernel, Counter, "overlimits_total", "times", "Times that the class had to wait.")
	classBacklog     = class(OfKernel, Gauge, "backlog_bytes", "bytes", "Bytes that wait.")
	classBacklogPkts = class(OfKernel, Gauge, "backlog_packets", "packets", "Packets that wait.")
	classLent        = class(OfKernel, Counter, "lent_packets_total", "packets", "Packets that the class sent within its own rate.")
	classBorrowedPkt = class(OfKernel, Counter, "borrowed_packets_total", "packets", "Packets that the class sent with what others left.")
	classTokens      = class(OfKernel, Gauge, "tokens_bytes", "bytes", "Bytes that the class could send at once now at its own rate; below 0 it owes them.")
	classCeilTokens  = class(OfKernel, Gauge, "ceil_tokens_bytes", "bytes", "Bytes that the class could send at once now at its ceil; below 0 it owes them.")
)

// Of a link: one direction of a relay or of an interface.
var (
	linkSent     = link(OfBoth, Counter, "sent_bytes_total", "bytes", "Bytes that the link has carried.")
	linkRate     = link(OfBoth, Gauge, "rate_bytes_per_second", "bytes/s", "Configured rate of the link; 0 is unlimited.")
	linkAchieved = link(OfBoth, Gauge, "achieved_bytes_per_second", "bytes/s", "Rate that the link has carried lately.")

	linkApplied    = link(OfKernel, Gauge, "applied_rate_bytes_per_second", "bytes/s", "Rate that the kernel has for the link; 0 when it does not shape it.")
	linkPackets    = link(OfKernel, Counter, "sent_packets_total", "packets", "Packets that the link has carried.")
	linkDrops      = link(OfKernel, Counter, "dropped_packets_total", "packets", "Packets that the link's queues had no room for.")
	linkOverlimits = link(OfKernel, Counter, "overlimits_total", "times", "Times that something on the link had to wait.")
	linkUnshaped   = link(OfKernel, Counter, "unshaped_packets_total", "packets", "Packets that left unshaped, since no class took them.").
			advise("Alert on any.")
)

// Of an interface that the policy names.
var (
	interfacePresent = iface(Gauge, "present", "1 or 0", "Whether the interface exists: 1 or 0.").advise("A pattern that none has is 0.")
	interfaceDrift   = iface(Gauge, "drift", "1 or 0", "Whether the kernel has something else than the policy wants: 1 or 0.").
				advise("It is repaired within a second, so alert when it stays.")
	interfaceRepairs = iface(Counter, "repairs_total", "times", "Times that what other programs changed was put right.")
)

// Of a relay.
var (
	relaySessions = ofRelay(Gauge, "sessions", "sessions", "Sessions that are open.")
	relayHeld     = ofRelay(Gauge, "held_bytes", "bytes", "Bytes that were read and wait to be written on.")
	relayAccepted = ofRelay(Counter, "accepted_total", "clients", "Client connections taken from the kernel.")
	relayConnects = ofRelay(Counter, "connected_total", "sessions", "Sessions that reached their destination.")
	relayClosed   = ofRelay(Counter, "closed_total", "sessions", "Connected sessions that ended, by reason.", "reason")
	relayRefused  = ofRelay(Counter, "refused_total", "clients", "Clients that were never connected, by reason.", "reason")
	relayFailures = ofRelay(Counter, "upstream_failures_total", "attempts", "Failed attempts to connect, by upstream.", "upstream").
			advise("Those to SOCKS5 destinations are counted together as `client's choice`.")
	relayUp = ofRelay(Gauge, "upstream_up", "1 or 0", "Whether the last attempt to connect to the upstream succeeded: 1 or 0.", "upstream").
		advise("1 before the first. There is no other health check: it changes when a client comes.")
	relayPauses = ofRelay(Counter, "accept_pauses_total", "times", "Times that accepting stopped for want of file descriptors.")
	relayNoDSCP = ofRelay(Counter, "dscp_unknown_total", "sessions", "Sessions whose DSCP the rules needed and the kernel did not know.")
)

// Of shared classes, where the policy has some.
var (
	sharedRate     = share("share_bytes_per_second", "bytes/s", "Part of the budget that this host has now.")
	sharedBudget   = share("budget_bytes_per_second", "bytes/s", "Rate of the class that the hosts of the cluster share, as the cluster has it.")
	sharedLeased   = share("leased", "1 or 0", "Whether the share is a lease of the cluster: 1; or what on_outage says: 0.")
	sharedDisagree = share("disagreement", "1 or 0", "Whether this host's policy has another rate than the cluster's newest: 1 or 0.").
			advise("The policies of the hosts differ: bring them in line.")
	sharedUp       = define(OfNone, Gauge, "shared", "redis_up", "1 or 0", "Whether the Redis of shared classes answered last: 1 or 0.", nil)
	sharedRenewals = define(OfNone, Counter, "shared", "renewals_total", "requests", "Requests to the Redis that renewed shares, by result.", []string{"result"}).
			advise("`success` or `failure`.")
	sharedTrip = define(OfNone, Gauge, "shared", "round_trip_seconds", "seconds", "Time that the last renewal took.", nil)
)

// Of admission: what programs ask for.
var (
	admitted = define(OfNone, Counter, "admission", "decisions_total", "requests", "Requests for admission, by class and outcome.", []string{"class", "outcome"}).
			advise("`granted`, `refused`, `too_large` or `outage`.")
	admissionAlone   = define(OfNone, Counter, "admission", "alone_total", "requests", "Of the decisions on shared classes, those that this host made alone, since the Redis was away.", []string{"class"})
	admissionKeys    = define(OfNone, Gauge, "admission", "keys", "keys", "Keys that have a bucket of their own, on this host.", []string{"class"})
	admissionWaiters = define(OfNone, Gauge, "admission", "waiters", "requests", "Requests that wait for their turn.", []string{"class"})
)

func share(name, unit, help string) *Definition {
	return define(OfNone, Gauge, "shared", name, unit, help, []string{"class", "link"})
}

// Of the daemon.
var (
	configReloads = define(OfNone, Counter, "config", "reloads_total", "reloads", "Reloads of the policy file, by result.", []string{"result"}).
			advise("`success` or `failure`.")
	configOK = define(OfNone, Gauge, "config", "last_reload_successful", "1 or 0", "Whether the policy file was in order when it was last read: 1 or 0.", nil)
	configAt = define(OfNone, Gauge, "config", "last_reload_success_timestamp_seconds", "Unix time", "When the policy in force was read, in Unix time.", nil)

	kernelReadErrors = define(OfNone, Counter, "kernel", "read_errors_total", "times", "Times that the kernel's counters could not be read.", nil).
				advise("Then the metrics of interfaces and of the kernel datapath are missing.")
	buildInfo = define(OfNone, Gauge, "build", "info", "1", "The program that runs; the value is 1.", []string{"version", "revision", "goversion"})
)

func class(of Datapath, t Type, name, unit, help string) *Definition {
	return define(of, t, "class", name, unit, help, []string{"datapath", "link", "class"})
}

func link(of Datapath, t Type, name, unit, help string) *Definition {
	return define(of, t, "link", name, unit, help, []string{"datapath", "link"})
}

func iface(t Type, name, unit, help string) *Definition {
	return define(OfKernel, t, "interface", name, unit, help, []string{"interface"})
}

func ofRelay(t Type, name, unit, help string, labels ...string) *Definition {
	return define(OfRelay, t, "relay", name, unit, help, append([]string{"relay"}, labels...))
}
