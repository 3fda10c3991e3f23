package configs

// The structs below are the schema of the policy file. The comment of a field
// is also its description in shaperd.schema.json: go test -update writes that
// file, and a test fails when it or reference.yaml lacks a key.

type fileSpec struct {
	// Classes of traffic, in order: the first that matches takes the flow. Without classes, one named "default" has the whole link.
	Classes list[classSpec] `key:"classes"`
	// Links of the kernel datapath: network interfaces that the kernel shapes.
	Interfaces list[interfaceSpec] `key:"interfaces"`
	// TCP listeners whose connections are shaped in userspace.
	Relays list[relaySpec] `key:"relays"`
	// Prometheus metrics. Without this key there are none.
	Metrics value[metricsSpec] `key:"metrics"`
	// What an end of the daemon leaves of the interfaces: clear removes what shapes, keep leaves it. A crash keeps. Not given: clear.
	OnExit value[onExit] `key:"on_exit"`
	// The control socket, which status, top, set, sessions and reload speak to.
	Admin value[adminSpec] `key:"admin"`
	// The Redis on which the hosts of a cluster share the budgets of shared classes.
	Shared value[sharedSpec] `key:"shared"`
	// How programs ask for admission to a class, besides the control socket.
	Admission value[admissionSpec] `key:"admission"`
	// Where the times of schedules hold, such as Europe/Berlin. Not given: the host's time zone.
	TimeZone value[timeZone] `key:"time_zone"`
}

type classSpec struct {
	// Unique among all classes; in logs and metrics.
	Name value[name] `key:"name,required"`
	// Any of these entries will do; inside one, all of its keys have to fit. Only of classes without classes.
	Match some[matchSpec] `key:"match"`
	// Guaranteed, as a rate or a percentage of the link's rate; of unit requests as 100/s, 100/m or 100/h. Not given: nothing is, and the class borrows up to its ceil.
	Rate value[share] `key:"rate"`
	// The most it may reach by borrowing, as a rate or a percentage of the link's rate. Not given: equal to rate.
	Ceil value[share] `key:"ceil"`
	// What may leave at once after a quiet time. Not given: derived from the rates. Only in mode token. Of unit requests a number of them.
	Burst value[burst] `key:"burst"`
	// What it counts: bytes are shaped and admitted, requests are admitted only. Not given: bytes.
	Unit value[unit] `key:"unit"`
	// One budget for all hosts of the cluster that the key shared names, instead of one on each link. Not given: false.
	Shared value[boolean] `key:"shared"`
	// token bursts after a quiet time, leaky is steady. Not given: token.
	Mode value[mode] `key:"mode"`
	// Who borrows first: 0 first, 7 last. Not given: 3.
	Priority value[priority] `key:"priority"`
	// Takes what nothing else matches. Exactly one class without classes is the default.
	Default value[boolean] `key:"default"`
	// DSCP that the relay writes on both sides of the class's sessions. Not given: left alone.
	Mark value[dscp] `key:"mark"`
	// Netfilter mark of the class's sockets in the relay; needs CAP_NET_ADMIN. Not given: none.
	Fwmark value[socketMark] `key:"fwmark"`
	// Other rates at certain times of the week: the first entry whose time it is counts.
	Schedule list[classTimeSpec] `key:"schedule"`
	// Classes that share this one's rate and ceil. Percentages in them are of the link's rate, too.
	Classes list[classSpec] `key:"classes"`
}

type classTimeSpec struct {
	// Days of the week on which it begins: mon to sun, ranges of them, or a list. Not given: every day.
	Days some[days] `key:"days"`
	// The time of day that it begins at. Not given: 00:00.
	From value[timeOfDay] `key:"from"`
	// The time of day that it ends at; not later than from, on the day after. Not given: 24:00.
	To value[timeOfDay] `key:"to"`
	// The class's rate then. Not given: as at other times.
	Rate value[share] `key:"rate"`
	// The class's ceil then. Not given: as at other times.
	Ceil value[share] `key:"ceil"`
	// The class's burst then. Not given: as at other times.
	Burst value[burst] `key:"burst"`
}

type linkSpec struct {
	// The link's rate.
	Rate value[rate] `key:"rate,required"`
	// Other rates at certain times of the week: the first entry whose time it is counts.
	Schedule list[linkTimeSpec] `key:"schedule"`
}

type linkTimeSpec struct {
	// Days of the week on which it begins: mon to sun, ranges of them, or a list. Not given: every day.
	Days some[days] `key:"days"`
	// The time of day that it begins at. Not given: 00:00.
	From value[timeOfDay] `key:"from"`
	// The time of day that it ends at; not later than from, on the day after. Not given: 24:00.
	To value[timeOfDay] `key:"to"`
	// The link's rate then.
	Rate value[rate] `key:"rate,required"`
}

type matchSpec struct {
	// IP protocols, as names or numbers. A relay sees tcp only.
	Proto some[protocol] `key:"proto"`
	// Ports and ranges, of either side of the flow.
	Port some[ports] `key:"port"`
	// Ports and ranges of the source.
	SPort some[ports] `key:"sport"`
	// Ports and ranges of the destination.
	DPort some[ports] `key:"dport"`
	// Addresses and prefixes of the source: in a relay, the client.
	Src some[prefix] `key:"src"`
	// Addresses and prefixes of the destination: in a relay, the upstream that is connected to.
	Dst some[prefix] `key:"dst"`
	// DSCP names or numbers: in a relay, what the client's SYN carries.
	DSCP some[dscp] `key:"dscp"`
	// Netfilter marks of the packet. Kernel datapath only.
	Fwmark some[fwmark] `key:"fwmark"`
}

type interfaceSpec struct {
	// An interface's name, or a pattern with * and ? for several.
	Name value[interfaceName] `key:"name,required"`
	// Rate of what leaves through it, alone or with a schedule. Not given: unshaped.
	Egress linkRate `key:"egress"`
	// Rate of what arrives through it, alone or with a schedule. Not given: unshaped.
	Ingress linkRate `key:"ingress"`
	// What the link adds to each IP packet: a kind of link, or bytes. Not given: what the kernel counts.
	Overhead value[overhead] `key:"overhead"`
	// How long a packet may wait at its class's ceil before there is no more room, 1ms to 10s. Not given: 50ms.
	Queue value[queueTime] `key:"queue"`
	// Replace the qdisc that another program has put there. Not given: it is left alone, and that is an error.
	Takeover value[boolean] `key:"takeover"`
}

type relaySpec struct {
	// Unique among the relays; its links are named "relay NAME upload" and "relay NAME download".
	Name value[name] `key:"name,required"`
	// forward connects to the upstreams, socks5 to where the client wants. Not given: forward.
	Kind value[relayKind] `key:"kind"`
	// Addresses and ports to listen on. Port 0 lets the kernel choose one.
	Listen some[listenAddr] `key:"listen,required"`
	// Where sessions go: the next one when one does not answer. Only of kind forward.
	Upstream some[hostPort] `key:"upstream"`
	// Names and passwords of those who may use it. Not given: everyone may. Only of kind socks5.
	Users logins `key:"users"`
	// Rate of all sessions together, client to upstream, alone or with a schedule. Not given: unlimited.
	Upload linkRate `key:"upload"`
	// Rate of all sessions together, upstream to client, alone or with a schedule. Not given: unlimited.
	Download linkRate `key:"download"`
	// What a session or a client may take at most.
	Limits value[limitsSpec] `key:"limits"`
	// How long a session may wait.
	Timeouts value[timeoutsSpec] `key:"timeouts"`
}

type limitsSpec struct {
	// Each direction of each session. Not given: no limit.
	PerSession value[rate] `key:"per_session"`
	// Each direction of all sessions of one client address. Not given: no limit.
	PerSource value[rate] `key:"per_source"`
	// Sessions at a time. Not given: no limit.
	Sessions value[count] `key:"sessions"`
	// Sessions at a time of one client address. Not given: no limit.
	SessionsPerSource value[count] `key:"sessions_per_source"`
	// Connections accepted in a second, over the whole relay. Not given: no limit.
	NewPerSecond value[count] `key:"new_per_second"`
}

type timeoutsSpec struct {
	// The client's SOCKS5 handshake. Not given: 10s.
	Handshake value[timeout] `key:"handshake"`
	// Reaching an upstream, all attempts together. Not given: 10s.
	Connect value[timeout] `key:"connect"`
	// Nothing moved in either direction; waiting for its turn does not count. Not given: 1h.
	Idle value[timeout] `key:"idle"`
	// One direction has ended, and nothing moved in the other. Not given: 5m.
	HalfClosed value[timeout] `key:"half_closed"`
	// How long a shutdown waits for sessions to end. Not given: 30s.
	Drain value[timeout] `key:"drain"`
}

type metricsSpec struct {
	// Address and port to serve them on, or off.
	Listen value[metricsAddr] `key:"listen,required"`
	// The web page at / that shows links and classes, live: on or off. Not given: on.
	Page value[pageSwitch] `key:"page"`
}

type adminSpec struct {
	// Path of the control socket, or off. Not given: /run/shaperd/shaperd.sock, or that of the environment variable SHAPERD_SOCKET.
	Socket value[socketPath] `key:"socket"`
	// Who may use it, as a file mode. Not given: 0660.
	Mode value[fileMode] `key:"mode"`
	// The group that owns it, besides root and the daemon's user. Not given: the daemon's.
	Group value[groupName] `key:"group"`
}

type sharedSpec struct {
	// URLs of Redis or Valkey, such as redis://10.0.0.9:6379 or, for TLS, rediss://user@host:6379/0. Several are Sentinels, or without sentinel the nodes of a Redis Cluster.
	Redis some[redisURL] `key:"redis,required"`
	// Name of the master that the URLs, which are those of Sentinels, watch. Not given: the URLs are those of the servers themselves.
	Sentinel value[name] `key:"sentinel"`
	// A file with the password of Redis. Not given: none.
	PasswordFile value[filePath] `key:"password_file"`
	// A file with the certificates that that of Redis has to be signed with, of rediss URLs. Not given: the system's.
	CAFile value[filePath] `key:"ca_file"`
	// Name of the cluster: the hosts with the same share their budgets.
	Cluster value[name] `key:"cluster,required"`
	// Name of this host, unique in the cluster. Not given: the hostname.
	Host value[name] `key:"host"`
	// How large this host's share is beside that of others that want as much, 1 to 1000. Not given: 1.
	Weight value[weight] `key:"weight"`
	// What a shared class has when Redis is away: share is the last known fair share, min a hundredth of the rate, open all of the rate on each host, closed nothing. Not given: share.
	OnOutage value[onOutage] `key:"on_outage"`
	// How often a host renews its shares, 100ms to 10s. Not given: 500ms.
	Period value[period] `key:"period"`
}

type admissionSpec struct {
	// Address and port to answer on, besides the control socket. Not given: none.
	Listen value[listenAddr] `key:"listen"`
	// A file with the token that clients of the address have to give. Required with listen.
	TokenFile value[filePath] `key:"token_file"`
	// What percentages of classes are of, for admission. Not given: such classes admit nobody.
	Rate value[rate] `key:"rate"`
	// How many keys of a class may have a bucket of their own at a time. Not given: 65536.
	Keys value[keyCount] `key:"keys"`
}
