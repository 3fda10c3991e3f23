package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/configs"
	"shaperd/internal/doctor"
	"shaperd/netlink"
)

// sick is a router with something of everything.
func sick(t *testing.T) *doctor.Report {
	t.Helper()
	p, err := configs.Parse("/etc/shaperd/shaperd.yaml", []byte(`classes:
  - {name: voice, match: {dscp: ef}, rate: 2mbit, ceil: 10mbit, priority: 0}
  - {name: bulk, default: true, rate: 10mbit, ceil: 100%}
interfaces:
  - {name: wan0, egress: 1gbit, ingress: 200mbit}
  - {name: lan0, egress: 500mbit}
  - {name: ppp*, egress: 20mbit, overhead: pppoe}
relays:
  - {name: web, listen: "192.0.2.1:8080", upstream: "192.0.2.9:80", upload: 1gbit, download: 1gbit}
`))
	if err != nil {
		t.Fatal(err)
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return doctor.Examine(&doctor.Facts{
		Policy: p,
		System: fstest.MapFS{
			"proc/sys/kernel/osrelease":        file("6.1.0-18-amd64\n"),
			"lib/modules/6.1.0-18-amd64/x":     file(""),
			"proc/thread-self/status":          file("Name:\tshaperd\nCapEff:\t0000000000001000\n"),
			"proc/thread-self/net/tcp":         file("  sl  local_address\n"),
			"sys/class/net/wan0/speed":         file("1000\n"),
			"sys/class/net/wan0/device":        file(""),
			"proc/sys/net/ipv4/ip_forward":     file("1\n"),
			"proc/9/comm":                      file("fireqos\n"),
			"proc/sys/net/core/bpf_jit_enable": file("1\n"),
			"sys/devices/system/clocksource/clocksource0/current_clocksource":   file("hpet\n"),
			"sys/devices/system/clocksource/clocksource0/available_clocksource": file("tsc hpet acpi_pm\n"),
		},
		Links: []netlink.LinkInfo{
			{Name: "wan0", Kind: "device", MTU: 1500, GSO: 65536, GRO: 65536, Queues: 8, Up: true, RootKind: "mq"},
			{Name: "lan0", Kind: "device", MTU: 1500, GSO: 65536, GRO: 65536, Queues: 1, Up: true, Root: "cake 8001:", LRO: true},
			{Name: "wg0", Kind: "wireguard", MTU: 1420, Up: true},
		},
		Features: []netlink.Feature{
			{Name: "sch_htb"}, {Name: "sch_tbf"}, {Name: "sch_fq_codel", Err: unix.ENOENT}, {Name: "sch_ingress"}, {Name: "ifb"},
			{Name: "cls_u32"}, {Name: "act_mirred"}, {Name: "cls_bpf"},
		},
		Flowtables: []netlink.Flowtable{{Table: "filter", Name: "fast", Devices: []string{"lan0", "wan0"}}},
		Timer:      time.Nanosecond,
	})
}

func TestDoctorsReport(t *testing.T) {
	r := sick(t)
	var brief, full bytes.Buffer
	printReport(&brief, r, false)
	printReport(&full, r, true)
	golden(t, "doctor.txt", brief.String())
	golden(t, "doctor-verbose.txt", full.String())
	for line := range strings.Lines(full.String()) {
		if !strings.Contains(line, "cure") && len([]rune(line)) > 81 { // with its end; a cure is to be copied
			t.Errorf("longer than 80: %s", line)
		}
	}
}

func TestDoctor(t *testing.T) {
	newNetwork(t)
	policy := file(t, "shaperd.yaml", office)
	if got := output(t, 0, "doctor", policy); !strings.Contains(got, "this host can shape eth0;") {
		t.Errorf("doctor: %s", got)
	}
	shell(t, "tc qdisc add dev eth0 root handle 1: htb")
	if got := output(t, 2, "doctor", policy); !strings.Contains(got, "eth0 has another's qdisc, htb 1:") {
		t.Errorf("doctor beside another's qdisc: %s", got)
	}
	var r struct {
		Cannot   []string
		Problems int
		Findings []struct{ Group, Check, Verdict, Subject, Found, Cost, Cure string }
	}
	if err := json.Unmarshal([]byte(output(t, 2, "doctor", "--json", policy)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cannot) != 1 || r.Cannot[0] != "eth0" || r.Problems != 1 || len(r.Findings) == 0 || r.Findings[0].Verdict == "" {
		t.Errorf("doctor --json: %+v", r)
	}
	if got := output(t, 1, "doctor", "bad.yaml"); !strings.Contains(got, "bad.yaml:") {
		t.Errorf("doctor of a wrong policy: %s", got)
	}
}

// Without privileges it looks at what it may, and says what it could not.
func TestDoctorWithoutPrivileges(t *testing.T) {
	newNetwork(t)
	policy := file(t, "shaperd.yaml", office)
	cmd := exec.Command(program, "doctor", "--verbose", policy)
	cmd.Env = env()
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("exit %v, want 2", err)
	}
	for _, want := range []string{
		"eth0 is there", "this process has no CAP_NET_ADMIN", "neither CAP_BPF nor CAP_PERFMON", "whether nftables has flowtables is not known",
		"this host cannot shape eth0; 1 problem",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "sch_htb works") {
		t.Errorf("the kernel was tried:\n%s", out)
	}
}

// Whether a port is held as it should be, the daemon that answers on the control
// socket says; and what doctor says of a reload comes true.
func TestDoctorBesideADaemon(t *testing.T) {
	newNetwork(t)
	web := func(listen, metrics string) string {
		text := relay("web", "127.0.0.1:1", "1gbit")
		return strings.NewReplacer(`["127.0.0.1:0"]`, fmt.Sprintf("%q", listen), `{listen: "127.0.0.1:0"}`, fmt.Sprintf("{listen: %q}", metrics)).Replace(text)
	}
	admits := "admission: {listen: '127.0.0.1:9480', rate: 1gbit, token_file: " + file(t, "token", "0123456789abcdef") + "}\n"
	policy := file(t, "shaperd.yaml", web("127.0.0.1:8080", "127.0.0.1:9477")+admits)
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	other := start(t, nil, "run", "--config", file(t, "other.yaml", web("127.0.0.1:8081", "127.0.0.1:9478")))
	other.await("msg=ready")
	holder := fmt.Sprintf("shaperd, pid %d", p.cmd.Process.Pid)
	for _, tt := range []struct {
		name, socket, policy string
		code, reload         int
		want                 []string
	}{
		{"its own", p.socket, web("127.0.0.1:8080", "127.0.0.1:9477") + admits, 0, 0, []string{
			"127.0.0.1:8080 is held by the daemon", "127.0.0.1:9477 is held by the daemon",
			fmt.Sprintf("127.0.0.1:9480 is held by the daemon, pid %d [listen] cost as it should", p.cmd.Process.Pid), "as it should be while that runs",
		}},
		{"nobody answers", p.socket + ".none", web("127.0.0.1:8080", "127.0.0.1:9477"), 2, 0, []string{
			"127.0.0.1:8080 is in use by " + holder, "127.0.0.1:9477 is in use by " + holder, "does not answer", "--socket",
		}},
		{"another answers", other.socket, web("127.0.0.1:8080", "127.0.0.1:9479"), 2, 0, []string{"127.0.0.1:8080 is in use by another " + holder, "other.yaml"}},
		{"all addresses", p.socket, web("0.0.0.0:8080", "127.0.0.1:9477"), 0, 1, []string{"which takes 0.0.0.0:8080 along", "a reload to this policy is refused"}},
		{"where metrics are", p.socket, web("127.0.0.1:9477", "off"), 0, 1, []string{"for something else", "a reload to this policy is refused"}},
		{"another port", p.socket, web("127.0.0.1:8082", "127.0.0.1:9477"), 0, 0, []string{"127.0.0.1:8082 is free"}},
	} {
		write(t, policy, tt.policy)
		got := strings.Join(strings.Fields(output(t, tt.code, "doctor", "--verbose", "--socket", tt.socket, policy)), " ") // its lines are broken
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in:\n%s", tt.name, want, got)
			}
		}
		if tt.socket == p.socket {
			p.asks(tt.reload, "reload")
		}
	}
}
