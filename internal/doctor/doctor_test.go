package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/configs"
	"shaperd/internal/store/storetest"
	"shaperd/netlink"
)

const officeText = `classes:
  - {name: voice, match: {dscp: ef}, rate: 2mbit, ceil: 10mbit, priority: 0}
  - {name: bulk, default: true, rate: 10mbit, ceil: 100%}
interfaces:
  - {name: eth0, egress: 100mbit, ingress: 200mbit}
relays:
  - {name: web, listen: "192.0.2.1:8080", upstream: "192.0.2.9:80", upload: 1gbit, download: 1gbit}
metrics: {listen: "127.0.0.1:9477"}
`

func parse(t *testing.T, text string) *configs.Policy {
	t.Helper()
	p, err := configs.Parse("office.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// healthy is a host that can do all that the policy wants.
func healthy(t *testing.T) *Facts {
	t.Helper()
	f := &Facts{
		Policy: parse(t, officeText),
		System: fstest.MapFS{},
		Links: []netlink.LinkInfo{
			{Name: "lo", Kind: "device", MTU: 65536, GSO: 65536, GRO: 65536, Queues: 1, Up: true, Loopback: true, RootKind: "noqueue"},
			{Name: "eth0", Kind: "device", MTU: 1500, GSO: 65536, GRO: 65536, Queues: 1, Up: true, RootKind: "pfifo_fast"},
			{Name: "eth1", Kind: "device", MTU: 1500, GSO: 65536, GRO: 65536, Queues: 1, Up: true, RootKind: "pfifo_fast"},
		},
		Timer: time.Nanosecond,
	}
	for _, name := range netlink.Features {
		f.Features = append(f.Features, netlink.Feature{Name: name})
	}
	write(f, map[string]string{
		"proc/sys/kernel/osrelease":                                         "6.18.1\n",
		"proc/sys/net/core/bpf_jit_enable":                                  "1\n",
		"proc/sys/net/core/somaxconn":                                       "4096\n",
		"proc/sys/net/ipv4/ip_local_port_range":                             "32768\t60999\n",
		"proc/sys/net/ipv4/ip_unprivileged_port_start":                      "1024\n",
		"proc/sys/net/ipv4/ip_forward":                                      "1\n",
		"proc/sys/net/ipv4/tcp_syncookies":                                  "1\n",
		"proc/sys/net/ipv4/tcp_congestion_control":                          "cubic\n",
		"proc/sys/net/ipv6/conf/all/forwarding":                             "1\n",
		"proc/sys/net/ipv6/conf/all/disable_ipv6":                           "0\n",
		"proc/sys/fs/pipe-user-pages-soft":                                  "16384\n",
		"proc/thread-self/status":                                           "Name:\tshaperd\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n",
		"proc/thread-self/limits":                                           "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n",
		"proc/thread-self/net/tcp":                                          "  sl  local_address rem_address   st\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/class/net/eth0/speed":                                          "1000\n",
		"sys/class/net/eth0/device":                                         "",
		"sys/kernel/security/lockdown":                                      "[none] integrity confidentiality\n",
		"proc/1/comm":                                                       "systemd\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
	})
	return f
}

// write gives the host files of these texts.
func write(f *Facts, files map[string]string) {
	tree := maps.Clone(f.System.(fstest.MapFS))
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	f.System = tree
}

func remove(f *Facts, names ...string) {
	tree := maps.Clone(f.System.(fstest.MapFS))
	for _, name := range names {
		delete(tree, name)
	}
	f.System = tree
}

func TestAHealthyHost(t *testing.T) {
	r := Examine(healthy(t))
	for _, x := range r.Findings {
		if x.Verdict != OK {
			t.Errorf("%s: %s: %s", x.Check, x.Verdict, x.Found)
		}
	}
	if want := "this host can shape eth0 and relay web; no problem, no warning"; r.Verdict() != want {
		t.Errorf("%q, want %q", r.Verdict(), want)
	}
}

// Each case is the healthy host with one thing changed, and what is found then.
func TestWhatIsFound(t *testing.T) {
	file := func(name, text string) func(*Facts) {
		return func(f *Facts) { write(f, map[string]string{name: text}) }
	}
	link := func(change func(*netlink.LinkInfo)) func(*Facts) {
		return func(f *Facts) { change(&f.Links[1]) }
	}
	also := func(l netlink.LinkInfo) func(*Facts) {
		return func(f *Facts) { f.Links = append(f.Links, l) }
	}
	lacks := func(feature string, err error) func(*Facts) {
		return func(f *Facts) {
			for i := range f.Features {
				if f.Features[i].Name == feature {
					f.Features[i].Err = err
				}
			}
		}
	}
	mode := func(name string, m fs.FileMode) func(*Facts) {
		return func(f *Facts) {
			file(name, "0123456789abcdef\n")(f)
			f.System.(fstest.MapFS)[name].Mode = m
		}
	}
	policy := func(old, text string) func(*Facts) {
		return func(f *Facts) { f.Policy = parse(t, strings.Replace(officeText, old, text, 1)) }
	}
	admits := func(f *Facts) {
		f.Policy = parse(t, officeText+"admission: {listen: 192.0.2.1:8088, token_file: /etc/token}\n")
	}
	protected := func(f *Facts) {
		f.Policy = parse(t, officeText+"shared: {redis: 'redis://10.0.0.9', cluster: edge, password_file: /etc/password}\n")
	}
	redis := func(url string, more ...string) func(*Facts) { // more are lines of classes, and of the file itself
		return func(f *Facts) {
			more := append(more, "", "")
			f.Policy = parse(t, strings.Replace(officeText, "classes:\n", "classes:\n"+more[0], 1)+more[1]+"shared: {redis: \""+url+"\", cluster: edge}\n")
			f.askRedis()
		}
	}
	const sharedBytes = "  - {name: web, match: {port: 443}, rate: 30mbit, shared: true}\n"
	dropping := storetest.Start(t, "--maxmemory-policy", "allkeys-lru").URL()
	caps := func(hex string) func(*Facts) {
		return file("proc/thread-self/status", "Name:\tx\nCapEff:\t"+hex+"\n")
	}
	both := func(a, b func(*Facts)) func(*Facts) { return func(f *Facts) { a(f); b(f) } }
	const listens8080 = "  sl  local_address rem_address   st\n   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0\n"
	owner := func(comm string) func(*Facts) {
		return func(f *Facts) {
			write(f, map[string]string{"proc/thread-self/net/tcp": listens8080})
			hold(f, 7, comm, "4711")
		}
	}
	burst := func(size, egress string) func(*Facts) {
		return func(f *Facts) {
			f.Policy = parse(t, strings.NewReplacer("priority: 0}", "priority: 0, burst: "+size+"}", "egress: 100mbit", "egress: "+egress).Replace(officeText))
		}
	}
	for _, tt := range []struct {
		check   string
		verdict Verdict
		found   string
		change  func(*Facts)
	}{
		{"interfaces", Warning, "there is no interface eth7", policy("eth0", "eth7")},
		{"interfaces", Info, "no interface has a name like ppp*", policy("eth0", "ppp*")},
		{"interfaces", Problem, "cannot be listed", func(f *Facts) { f.Links, f.LinksErr = nil, errors.New("no netlink") }},
		{"link-speed", Warning, "eth0 egress is 100mbit, and the card has 100mbit", file("sys/class/net/eth0/speed", "100\n")},
		{"link-speed", OK, "below the card's 1gbit", func(*Facts) {}},
		{"bursts", Problem, "has a burst of 2000b, and a packet 9014b", both(burst("2000b", "100mbit"), link(func(l *netlink.LinkInfo) { l.MTU = 9000 }))},
		{"bursts", Info, "an offloaded packet up to 64kib", burst("16kb", "2gbit")},
		{"bursts", OK, "hold a packet of 1514 bytes", burst("16kb", "100mbit")},
		{"burst-sum", Warning, "add up to 10mib: 839ms of the link", burst("10mb", "100mbit")},
		{"overhead", Info, "an overhead of", policy("ingress: 200mbit", "overhead: pppoe")},
		{"listen", Problem, "192.0.2.1:8080 is in use by nginx, pid 7", owner("nginx")},
		{"listen", Problem, "192.0.2.1:8080 is in use", file("proc/thread-self/net/tcp", listens8080)},
		{"listen", Warning, "another program listens on [::]:8080, beside 192.0.2.1:8080", file("proc/thread-self/net/tcp6",
			"  sl\n   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4711 1 0\n")},
		{"secrets", Problem, "token_file /etc/token has 6 characters", both(file("etc/token", "secret\n"), admits)},
		{"secrets", Problem, "token_file /etc/token: file does not exist", admits},
		{"secrets", Problem, "token_file /etc/token is a named pipe, not a regular file", both(admits, mode("etc/token", fs.ModeNamedPipe|0o600))},
		{"secrets", Problem, "token_file /etc/token is a device, not a regular file", both(admits, mode("etc/token", fs.ModeDevice|0o600))},
		{"secrets", Warning, "token_file /etc/token may be read by everybody (mode 0644)", both(admits, mode("etc/token", 0o644))},
		{"secrets", Warning, "token_file /etc/token may be written by others than its owner (mode 0620)", both(admits, mode("etc/token", 0o620))},
		{"secrets", Warning, "password_file /etc/password may be written by others than its owner (mode 0602)", both(protected, mode("etc/password", 0o602))},
		{"secrets", OK, "token_file /etc/token is there", both(admits, mode("etc/token", 0o640))},
		{"secrets", OK, "password_file /etc/password is there", both(protected, mode("etc/password", 0o400))},
		{"secrets", OK, "is there", both(file("etc/token", "0123456789abcdef\n"), admits)},
		{"listen", Problem, "192.0.2.1:8088 is in use", both(admits, file("proc/thread-self/net/tcp", strings.Replace(listens8080, "1F90", "1F98", 1)))},
		{"redis", Problem, "cannot connect", redis("redis://127.0.0.1:1")},
		{"redis", Problem, "it wants a password", redis(storetest.Start(t, "--requirepass", "secret").URL())},
		{"redis", OK, "answers in", redis(storetest.Start(t).URL())},
		{"redis", Warning, "may drop keys when its memory is full (allkeys-lru)", redis(dropping, sharedBytes)},
		{"redis", Problem, "may drop keys when its memory is full (allkeys-lru)", redis(dropping, sharedBytes, "admission: {listen: 192.0.2.1:8088, token_file: /etc/token}\n")},
		{"redis", Problem, "may drop keys when its memory is full (allkeys-lru)", redis(dropping, "  - {name: api, unit: requests, rate: 2/h, shared: true}\n")},
		{"listen", Info, "not known", func(f *Facts) { remove(f, "proc/thread-self/net/tcp") }},
		{"version", Warning, "older than 5.13", file("proc/sys/kernel/osrelease", "5.12.1")},
		{"version", Warning, "older than 5.11", file("proc/sys/kernel/osrelease", "5.4.0-generic")},
		{"sch_htb", Problem, "sch_htb is missing", lacks("sch_htb", unix.ENOENT)},
		{"sch_tbf", Problem, "sch_tbf does not work: invalid argument", lacks("sch_tbf", unix.EINVAL)},
		{"sch_fq_codel", Info, "sch_fq_codel is missing", lacks("sch_fq_codel", unix.ENOENT)},
		{"ifb", Problem, "ifb is missing", lacks("ifb", unix.EOPNOTSUPP)},
		{"ifb", Info, "ifb is missing; this policy does not need it", both(policy(", ingress: 200mbit", ""), lacks("ifb", unix.EOPNOTSUPP))},
		{"cls_bpf", Warning, "cls_bpf is missing", lacks("cls_bpf", unix.ENOENT)},
		{"bpf-jit", Warning, "eBPF is interpreted", file("proc/sys/net/core/bpf_jit_enable", "0\n")},
		{"lockdown", Info, "locked down: integrity", file("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")},
		{"CAP_NET_ADMIN", Problem, "no CAP_NET_ADMIN", caps("0")},
		{"CAP_NET_ADMIN", OK, "not needed", both(policy("interfaces:\n  - {name: eth0, egress: 100mbit, ingress: 200mbit}\n", ""), caps("0"))},
		{"CAP_NET_ADMIN", Problem, "no CAP_NET_ADMIN", both(policy("interfaces:\n  - {name: eth0, egress: 100mbit, ingress: 200mbit}\n", ""), func(f *Facts) {
			caps("0")(f)
			f.Policy.Marks["voice"] = configs.Mark{Fwmark: 7}
		})},
		{"CAP_BPF", Warning, "neither CAP_BPF nor CAP_PERFMON", caps("1000")},
		{"CAP_BPF", Warning, "no CAP_PERFMON", caps("8000001000")},
		{"CAP_NET_BIND_SERVICE", Problem, "192.0.2.1:80 is below port 1024", both(policy(":8080", ":80"), caps("1000"))},
		{"CAP_NET_BIND_SERVICE", OK, "no port below 80", func(f *Facts) {
			policy(":8080", ":80")(f)
			caps("1000")(f)
			write(f, map[string]string{"proc/sys/net/ipv4/ip_unprivileged_port_start": "80"})
		}},
		{"flowtables", Problem, "the nftables flowtable ft of table fast has eth0", func(f *Facts) {
			f.Flowtables = []netlink.Flowtable{{Table: "fast", Name: "ft", Devices: []string{"eth1", "eth0"}}}
		}},
		{"flowtables", OK, "no nftables flowtable", func(f *Facts) {
			f.Flowtables = []netlink.Flowtable{{Table: "fast", Name: "ft", Devices: []string{"eth1"}}}
		}},
		{"flowtables", Info, "not known", func(f *Facts) { f.FlowtablesErr = unix.EPERM }},
		{"accelerators", Warning, "qca_nss_drv is loaded", file("proc/modules", "ext4 1 2 - Live\nqca_nss_drv 123 0 - Live 0x0\n")},
		{"accelerators", Warning, "/etc/config/firewall has flow_offloading_hw", file("etc/config/firewall", "config defaults\n\toption flow_offloading_hw '1'\n")},
		{"xdp", Warning, "an XDP program is attached", link(func(l *netlink.LinkInfo) { l.XDP = true })},
		{"hw-tc-offload", Warning, "eth0 has hw-tc-offload on", link(func(l *netlink.LinkInfo) { l.TCOffload = true })},
		{"bridge", Warning, "eth0 is a bridge", func(f *Facts) { f.Links[1].Kind, f.Links[2].Master = "bridge", "eth0" }},
		{"bond", Warning, "eth0 is a part of bond0", both(link(func(l *netlink.LinkInfo) { l.Master = "bond0" }), also(netlink.LinkInfo{Name: "bond0", Kind: "bond"}))},
		{"stacked", Info, "eth0.7 is on top of eth0", also(netlink.LinkInfo{Name: "eth0.7", Kind: "vlan", Lower: "eth0"})},
		{"stacked", Warning, "eth0.7 is on top of eth0, and both are shaped", both(policy("eth0", "eth0*"), also(netlink.LinkInfo{Name: "eth0.7", Kind: "vlan", Lower: "eth0"}))},
		{"tunnels", Info, "wg0 is a tunnel", also(netlink.LinkInfo{Name: "wg0", Kind: "wireguard", Up: true})},
		{"tunnels", OK, "no tunnel beside", both(policy("interfaces:", "interfaces:\n  - {name: wg0, egress: 20mbit}"), also(netlink.LinkInfo{Name: "wg0", Kind: "wireguard", Up: true}))},
		{"state", Info, "eth0 is down", link(func(l *netlink.LinkInfo) { l.Up = false })},
		{"queues", Info, "eth0 has 8 queues", link(func(l *netlink.LinkInfo) { l.Queues, l.RootKind = 8, "mq" })},
		{"big-tcp", Warning, "up to 196608 bytes", link(func(l *netlink.LinkInfo) { l.GRO = 196608 })},
		{"lro", Warning, "eth0 has LRO on", link(func(l *netlink.LinkInfo) { l.LRO = true })},
		{"root-qdisc", Problem, "another's qdisc, cake 8001:", link(func(l *netlink.LinkInfo) { l.Root = "cake 8001:" })},
		{"root-qdisc", Info, "another's qdisc, cake 8001:", both(policy("eth0,", "eth0, takeover: true,"), link(func(l *netlink.LinkInfo) { l.Root = "cake 8001:" }))},
		{"ingress-filters", Info, "eth0 has 2 filters of others", link(func(l *netlink.LinkInfo) { l.Filters = 2 })},
		{"networkd", Warning, "/etc/systemd/network/10-wan.network sets a qdisc for eth0: [CAKE]", func(f *Facts) {
			write(f, map[string]string{"etc/systemd/network/10-wan.network": "[Match]\nName=en* eth*\n[CAKE]\nBandwidth=10M\n", "proc/9/comm": "systemd-network\n"})
		}},
		{"networkd", Warning, "sets a qdisc for eth0: [FairQueueing]", func(f *Facts) {
			write(f, map[string]string{
				"etc/systemd/network/a.network": "[Match]\nName=eth0\n", "run/systemd/network/a.network.d/q.conf": "[FairQueueing]\n", "proc/9/comm": "systemd-network\n",
			})
		}},
		{"networkd", Info, "sets a qdisc for eth0: [PIE]", file("etc/systemd/network/x.network", "[Match]\nName=!wl* ww*\n[PIE]\n")},
		{"networkd", Info, "sets a qdisc for eth0: [TokenBucketFilter]", file("run/systemd/network/x.network", "[Match]\nType=ether\n[TokenBucketFilter]\nRate=1M\n")},
		{"networkd", OK, "sets no qdisc here", func(f *Facts) {
			write(f, map[string]string{
				"usr/lib/systemd/network/a.network": "[Match]\nName=eth0\n[CAKE]\n", "etc/systemd/network/a.network": "[Match]\nName=eth0\n[Network]\nDHCP=yes\n",
				"etc/systemd/network/b.network": "[Match]\nName=!eth*\n[CAKE]\n", "proc/9/comm": "systemd-network\n",
			})
		}},
		{"NetworkManager", Warning, "connection office lan has tc settings", func(f *Facts) {
			write(f, map[string]string{"proc/9/comm": "NetworkManager\n", "etc/NetworkManager/system-connections/office lan.nmconnection": "[connection]\nid=x\n[tc]\nqdisc.root=fq_codel\n"})
		}},
		{"NetworkManager", Info, "NetworkManager runs", file("proc/9/comm", "NetworkManager\n")},
		{"shapers", Warning, "fireqos runs, pid 9", file("proc/9/comm", "fireqos\n")},
		{"shapers", Warning, "the service wondershaper starts", file("etc/systemd/system/multi-user.target.wants/wondershaper.service", "")},
		{"shapers", Warning, "the service sqm starts", file("etc/rc.d/S50sqm", "")},
		{"clock-source", Warning, "the clock is hpet", file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")},
		{"timers", Warning, "timers come every 4ms", func(f *Facts) { f.Timer = 4 * time.Millisecond }},
		{"congestion-control", Info, "is bbr", file("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n")},
		{"forwarding", Info, "does not forward", func(f *Facts) {
			policy("eth0", "eth*")(f)
			write(f, map[string]string{"proc/sys/net/ipv4/ip_forward": "0", "proc/sys/net/ipv6/conf/all/forwarding": "0"})
		}},
		{"ipv6", Info, "IPv6 is off", file("proc/sys/net/ipv6/conf/all/disable_ipv6", "1\n")},
		{"ipv6", Problem, "IPv6 is off, and [2001:db8::1]:8080 is IPv6", both(policy("192.0.2.1:8080", "[2001:db8::1]:8080"), file("proc/sys/net/ipv6/conf/all/disable_ipv6", "1\n"))},
		{"descriptors", Warning, "412 sessions", file("proc/thread-self/limits", "Max open files  1024  1024  files\n")},
		{"descriptors", Warning, "the policy has 300000", policy(`upload: 1gbit`, `limits: {sessions: 300000}, upload: 1gbit`)},
		{"pipes", Info, "a user may have 2 pipes", both(caps("1000"), file("proc/sys/fs/pipe-user-pages-soft", "512\n"))},
		{"listen-queue", Warning, "128 clients", file("proc/sys/net/core/somaxconn", "128\n")},
		{"local-ports", Warning, "relay web may have 30000 sessions", policy(`upload: 1gbit`, `limits: {sessions: 30000}, upload: 1gbit`)},
		{"syn-cookies", Info, "always sent", file("proc/sys/net/ipv4/tcp_syncookies", "2\n")},
	} {
		t.Run(tt.check+" "+tt.verdict.String()+" "+tt.found, func(t *testing.T) {
			f := healthy(t)
			tt.change(f)
			r := Examine(f)
			var got []string
			for _, x := range r.Findings {
				if x.Check != tt.check {
					continue
				}
				got = append(got, x.Verdict.String()+": "+x.Found)
				if x.Verdict == tt.verdict && strings.Contains(x.Found, tt.found) {
					if (x.Verdict == Warning || x.Verdict == Problem) && (x.Cost == "" || x.Cure == "" && x.Check != "interfaces") {
						t.Errorf("what does it cost, and what is the cure? %+v", x)
					}
					if x.Cure != "" && strings.HasSuffix(x.Found, x.Cure) {
						t.Errorf("the cure is said twice: %+v", x)
					}
					if tt.check == "redis" && strings.HasPrefix(x.Cure, "see what") {
						t.Errorf("no cure: %+v", x)
					}
					if (r.Problems > 0) != (tt.verdict == Problem) {
						t.Errorf("%d problems", r.Problems)
					}
					return
				}
			}
			t.Errorf("%s: %q, want %s: %s", tt.check, got, tt.verdict, tt.found)
		})
	}
}

// What a problem is about cannot be done; the rest can.
func TestVerdict(t *testing.T) {
	f := healthy(t)
	f.Policy = parse(t, strings.Replace(officeText, "interfaces:", "interfaces:\n  - {name: eth1, egress: 50mbit}\n  - {name: ppp*, egress: 50mbit}", 1))
	f.Links[1].Root, f.Links[2].LRO = "htb 1:", true
	if got, want := Examine(f).Verdict(), "this host can shape eth1 and relay web, but not shape eth0, and awaits ppp*; 1 problem, 1 warning"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	write(f, map[string]string{"proc/thread-self/status": "Name:\tx\nCapEff:\t0\n"})
	if got, want := Examine(f).Verdict(), "this host can relay web, but not shape eth0 and eth1, and awaits ppp*; 2 problems, 2 warnings"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pattern for all is not for the loopback device, as in the datapath.
func TestAPatternForAll(t *testing.T) {
	f := healthy(t)
	f.Policy = parse(t, strings.Replace(officeText, "name: eth0", `name: "*"`, 1))
	if got, want := Examine(f).Verdict(), "this host can shape eth0 and eth1 and relay web; no problem, no warning"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Policy = parse(t, strings.Replace(officeText, "name: eth0", "name: lo", 1))
	if got, want := Examine(f).Verdict(), "this host can shape lo and relay web; no problem, no warning"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without root the files say what the kernel has.
func TestWhatIsWrittenOfTheKernel(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("CONFIG_NET_SCH_HTB=y\nCONFIG_NET_SCH_TBF=m\n# CONFIG_NET_SCH_FQ_CODEL is not set\n"))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	const modules = "lib/modules/6.18.1/"
	for _, tt := range []struct {
		name    string
		files   map[string]string
		feature string
		verdict Verdict
		found   string
	}{
		{"nothing", nil, "sch_htb", Info, "not known"},
		{"loaded", map[string]string{"sys/module/sch_htb/refcnt": "0"}, "sch_htb", OK, "is loaded"},
		{"built in", map[string]string{modules + "modules.builtin": "kernel/net/sched/sch_htb.ko\n"}, "sch_htb", OK, "is built in"},
		{"module", map[string]string{modules + "modules.dep": "kernel/net/sched/sch_htb.ko.xz:\n"}, "sch_htb", OK, "is a module"},
		{"config", map[string]string{"proc/config.gz": packed.String()}, "sch_htb", OK, "is built in"},
		{"module lost", map[string]string{"proc/config.gz": packed.String()}, "sch_tbf", Problem, "a module that is not installed"},
		{"config without", map[string]string{"proc/config.gz": packed.String()}, "sch_fq_codel", Info, "is missing"},
		{"config in boot", map[string]string{"boot/config-6.18.1": "CONFIG_NET_SCH_HTB=y\n"}, "sch_htb", OK, "is built in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy(t)
			f.Features, f.FeaturesErr = nil, unix.EPERM
			write(f, tt.files)
			for i := range features {
				if x := &features[i]; x.name == tt.feature {
					if got := x.check(f)[0]; got.Verdict != tt.verdict || !strings.Contains(got.Found, tt.found) {
						t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Found, tt.verdict, tt.found)
					}
				}
			}
		})
	}
}

// The page has a line for each check, and the names are the way there.
func TestTheDocsHaveEveryCheck(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range checks {
		if seen[c.name] {
			t.Errorf("two checks are called %s", c.name)
		}
		seen[c.name] = true
		if !strings.Contains(string(page), "`"+c.name+"`") {
			t.Errorf("docs/doctor.md says nothing of `%s`", c.name)
		}
	}
}
