package metrics

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"shaperd/shaper"
)

// twoClasses is a relay in which every value differs from the others.
func twoClasses() []Relay {
	wait := shaper.WaitHistogram{Sum: 90 * time.Second}
	for i := range wait.Counts {
		wait.Counts[i] = uint64(i + 1)
	}
	return []Relay{{
		Name: "web",
		Links: []shaper.LinkStats{
			{Name: "relay web upload"},
			{
				Name: "relay web download", Rate: 200 * shaper.Mbit, Achieved: 8e6, Bytes: 5000,
				Classes: []shaper.ClassStats{
					{
						Name: "voice", Rate: 2 * shaper.Mbit, Ceil: 10 * shaper.Mbit, Burst: 3000, Achieved: 804, Bytes: 2000,
						Borrowed: 700, Chunks: 11, Queues: 4, Backlogged: 1, Wait: wait,
					},
					{Name: "bulk", Bytes: 3000},
				},
			},
		},
		Sessions: 6, Held: 77, Accepted: 31, Connected: 29,
		Closed:           map[string]uint64{"done": 21, "idle": 0},
		Refused:          map[string]uint64{"sessions": 2, "login": 0},
		UpstreamFailures: map[string]uint64{"10.0.0.5:443": 3},
		UpstreamUp:       map[string]bool{"10.0.0.5:443": true, "10.0.0.6:443": false},
		AcceptPauses:     8, DSCPUnknown: 9,
	}}
}

// everything is a daemon that has all there is.
var everything = Sources{
	Relays: twoClasses, Kernel: kernelOfTwo,
	Sharing: func() *Sharing {
		return &Sharing{Up: true, Renewals: 101, Failures: 102, RoundTrip: 103 * time.Millisecond, Shares: []Share{
			{Class: "mirror", Link: "relay web upload", Rate: 8 * 104, Budget: 8 * 105, Leased: true},
			{Class: "mirror", Link: "relay web download", Rate: 8 * 106, Budget: 8 * 107, Disagrees: true},
		}}
	},
	Admission: func() []Admission {
		return []Admission{{Class: "api", Decisions: map[string]uint64{"granted": 108, "refused": 109, "too_large": 110, "outage": 111}, Alone: 112, Keys: 113, Waiters: 114}}
	},
}

// kernelOfTwo is a kernel datapath in which every value differs from the others.
func kernelOfTwo() Kernel {
	return Kernel{
		Links: []KernelLink{{
			Name: "eth0 egress", Rate: 80, Applied: 160, Achieved: 240, Bytes: 40, Packets: 50, Drops: 60, Overlimits: 70, Unshaped: 80,
			Classes: []KernelClass{{
				Name: "voice", Rate: 8, Ceil: 16, AppliedRate: 24, AppliedCeil: 32, Burst: 5, Achieved: 48, Bytes: 7, Packets: 8, Drops: 9,
				Overlimits: 10, BacklogBytes: 11, Backlog: 12, LentPackets: 13, BorrowedPackets: 14, TokensBytes: -15, CeilTokBytes: 16,
			}},
		}},
		Interfaces: []KernelInterface{{Name: "eth0", Present: true, Repairs: 3}, {Name: "ppp*", Drift: true}},
		ReadErrors: 90,
	}
}

func TestSnapshotIsExportedInBaseUnits(t *testing.T) {
	c := collector{everything, func(chan<- prometheus.Metric) {}}
	want, err := os.ReadFile("testdata/snapshot.prom")
	if err != nil {
		t.Fatal(err)
	}
	if err := testutil.CollectAndCompare(c, bytes.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestReloadsAreCountedByResult(t *testing.T) {
	m := New(Build{}, everything)
	names := []string{
		"shaperd_config_reloads_total", "shaperd_config_last_reload_successful",
		"shaperd_config_last_reload_success_timestamp_seconds",
	}
	compare := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	const head = `
# HELP shaperd_config_last_reload_success_timestamp_seconds When the policy in force was read, in Unix time.
# TYPE shaperd_config_last_reload_success_timestamp_seconds gauge
# HELP shaperd_config_last_reload_successful Whether the policy file was in order when it was last read: 1 or 0.
# TYPE shaperd_config_last_reload_successful gauge
# HELP shaperd_config_reloads_total Reloads of the policy file, by result.
# TYPE shaperd_config_reloads_total counter
`
	m.Started(time.UnixMilli(1000_500))
	compare(head + `
shaperd_config_last_reload_success_timestamp_seconds 1000.5
shaperd_config_last_reload_successful 1
shaperd_config_reloads_total{result="failure"} 0
shaperd_config_reloads_total{result="success"} 0
`)
	m.Reloaded(time.UnixMilli(2000_000))
	m.ReloadFailed()
	compare(head + `
shaperd_config_last_reload_success_timestamp_seconds 2000
shaperd_config_last_reload_successful 0
shaperd_config_reloads_total{result="failure"} 1
shaperd_config_reloads_total{result="success"} 1
`)
}

func TestNamesAndUnitsFollowTheConventions(t *testing.T) {
	m := New(Build{Version: "1.0", Revision: "abc"}, everything)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}

	cmd := exec.Command("promtool", "check", "metrics") // from Debian's package prometheus; make test installs it
	cmd.Stdin = strings.NewReader(get(t, serve(t, m.Handler(healthy)), "/metrics", 200))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
