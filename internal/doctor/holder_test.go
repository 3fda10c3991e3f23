package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
)

// hold has a process hold a socket.
func hold(f *Facts, pid int, comm, inode string) {
	write(f, map[string]string{fmt.Sprintf("proc/%d/comm", pid): comm + "\n"})
	f.System.(fstest.MapFS)[fmt.Sprintf("proc/%d/fd/3", pid)] = &fstest.MapFile{Data: []byte("socket:[" + inode + "]"), Mode: fs.ModeSymlink | 0o777}
}

// An address in use is as it should be only where the daemon that answers has it,
// for what the policy wants there.
func TestWhoHasAnAddress(t *testing.T) {
	const (
		relayed  = "010200C0:1F90" // 192.0.2.1:8080
		wildcard = "00000000:1F90"
		metrics  = "0100007F:2505" // 127.0.0.1:9477
	)
	daemon := func(pid int, policy, metrics string, relays ...string) *Daemon {
		d := &Daemon{PID: pid, Policy: policy}
		for _, a := range relays {
			d.Relays = append(d.Relays, netip.MustParseAddrPort(a))
		}
		if metrics != "" {
			d.Metrics = netip.MustParseAddrPort(metrics)
		}
		return d
	}
	ours := daemon(7, "office.yaml", "127.0.0.1:9477", "192.0.2.1:8080")
	for _, tt := range []struct {
		name    string
		socket  string
		holder  string // its name; "" is not to be seen
		daemon  *Daemon
		err     error
		verdict Verdict
		found   string
		cost    string
	}{
		{"the daemon", relayed, "shaperd", ours, nil, Info, "192.0.2.1:8080 is held by the daemon, pid 7", "as it should be while that runs"},
		{"the daemon, for who sees no processes", relayed, "", ours, nil, Info, "192.0.2.1:8080 is held by the daemon, pid 7", "as it should be while that runs"},
		{"the daemon's metrics", metrics, "shaperd", ours, nil, Info, "127.0.0.1:9477 is held by the daemon, pid 7", "as it should be while that runs"},
		{
			"the daemon, with another policy", relayed, "shaperd", daemon(7, "other.yaml", "", "192.0.2.1:8080"), nil, Info,
			"192.0.2.1:8080 is held by the daemon, pid 7, which has the policy other.yaml", "as it should be if this policy is to take its place",
		},
		{
			"the daemon, with another address", wildcard, "shaperd", daemon(7, "office.yaml", "", "0.0.0.0:8080"), nil, Warning,
			"the daemon, pid 7, has 0.0.0.0:8080, which takes 192.0.2.1:8080 along", "a reload to this policy is refused",
		},
		{
			"the daemon, for a relay", metrics, "shaperd", daemon(7, "office.yaml", "", "127.0.0.1:9477"), nil, Warning,
			"127.0.0.1:9477 is held by the daemon, pid 7, for something else", "a reload to this policy is refused",
		},
		{
			"another shaperd", relayed, "shaperd", daemon(8, "other.yaml", "", "192.0.2.1:8080"), nil, Problem,
			"192.0.2.1:8080 is in use by another shaperd, pid 7: the daemon that answers is pid 8, with the policy other.yaml", "shaperd cannot start",
		},
		{"a shaperd that is not asked", relayed, "shaperd", nil, nil, Problem, "192.0.2.1:8080 is in use by shaperd, pid 7, which does not answer on the control socket", "shaperd cannot start"},
		{
			"a shaperd that may not be asked", relayed, "shaperd", nil, errors.New("permission denied"), Warning,
			"192.0.2.1:8080 is held by shaperd, pid 7, and the daemon cannot be asked: permission denied", "unless that runs this policy",
		},
		{"another program, beside the daemon", relayed, "nginx", daemon(8, "office.yaml", ""), nil, Problem, "192.0.2.1:8080 is in use by nginx, pid 7", "shaperd cannot start"},
		{"nobody knows, beside the daemon", wildcard, "", ours, nil, Problem, "192.0.2.1:8080 is in use", "shaperd cannot start"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy(t)
			f.Daemon, f.DaemonErr = tt.daemon, tt.err
			write(f, map[string]string{"proc/thread-self/net/tcp": "  sl\n   0: " + tt.socket + " 00000000:0000 0A 0:0 00:0 0  0 0 4711 1 0\n"})
			if tt.holder != "" {
				hold(f, 7, tt.holder, "4711")
			}
			for _, x := range Examine(f).Findings {
				if x.Check != "listen" || x.Verdict == OK {
					continue
				}
				if x.Verdict != tt.verdict || x.Found != tt.found || !strings.HasPrefix(x.Cost, tt.cost) || x.Verdict > Info && x.Cure == "" {
					t.Errorf("%+v, want %s: %s, %s", x, tt.verdict, tt.found, tt.cost)
				}
				return
			}
			t.Error("nothing is found")
		})
	}
}

// What a service manager holds it hands on: to the daemon that runs, or to the
// next, if it is for shaperd.
func TestSocketsOfTheServiceManager(t *testing.T) {
	f := healthy(t)
	write(f, map[string]string{"proc/thread-self/net/tcp": "  sl\n   0: 010200C0:1F90 00000000:0000 0A 0:0 00:0 0  0 0 4711 1 0\n"})
	hold(f, 1, "systemd", "4711")
	if x := checkListen(f)[0]; x.Verdict != Warning || x.Found != "192.0.2.1:8080 is held by systemd for a service" {
		t.Errorf("before the start: %+v", x)
	}
	hold(f, 7, "shaperd", "4711")
	f.Daemon = &Daemon{PID: 7, Policy: "office.yaml", Relays: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:8080")}}
	if x := checkListen(f)[0]; x.Verdict != Info || x.Cost != "as it should be while that runs" {
		t.Errorf("afterwards: %+v", x)
	}
}

// Wildcards of both families that the daemon has are beside each other.
func TestTheDaemonsWildcards(t *testing.T) {
	f := healthy(t)
	f.Policy = parse(t, strings.Replace(officeText, `listen: "192.0.2.1:8080"`, `listen: ["0.0.0.0:8080", "[::]:8080"]`, 1))
	f.Daemon = &Daemon{PID: 7, Policy: "office.yaml", Relays: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:8080"), netip.MustParseAddrPort("[::]:8080")}}
	write(f, map[string]string{
		"proc/thread-self/net/tcp":  "  sl\n   0: 00000000:1F90 00000000:0000 0A 0:0 00:0 0  0 0 4711 1 0\n",
		"proc/thread-self/net/tcp6": "  sl\n   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4712 1 0\n",
	})
	for _, x := range checkListen(f)[:2] {
		if x.Verdict != Info || x.Cost != "as it should be while that runs" {
			t.Errorf("%+v", x)
		}
	}
}
