package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shaperd/internal/metrics"
)

// Every query of the dashboard, and every rule, is put to a Prometheus that
// scrapes a shaperd with traffic, and a kernel datapath that is made up.
func TestQueriesHaveAnAnswer(t *testing.T) {
	relay, daemon := startRelay(t)
	kernel := startKernel(t)
	server := startPrometheus(t, daemon, kernel)
	var at time.Time
	for range 2 { // so that counters rise between two scrapes
		exchange(t, relay)
		at = server.awaitScrapes(2)
	}

	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			if result := server.query(at, filled(&d, q.Expr)); len(result) == 0 {
				t.Errorf("%s: no data for %s", p.Title, q.Expr)
			}
		}
	}
	for _, v := range d.Templating.List {
		m := labelValues.FindStringSubmatch(v.Definition)
		if result := server.query(at, fmt.Sprintf("count by (%s) (%s)", m[2], filled(&d, m[1]))); len(result) < 2 {
			t.Errorf("the variable %s has the values %s", v.Name, result)
		}
	}
	for _, a := range alerts(t) {
		server.query(at, a.expr) // has no result when all is well
	}
}

// startRelay runs shaperd with one relay, whose first upstream is away, and
// returns where it listens and where its metrics are.
func startRelay(t *testing.T) (relay, metrics string) {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { echo.Close() })
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // until the client ends
			}()
		}
	}()
	policy := filepath.Join(t.TempDir(), "shaperd.yaml")
	write(t, policy, fmt.Sprintf(`
classes:
  - {name: web, match: {dport: 443}, rate: 10mbit, ceil: 50mbit}
  - {name: bulk, default: true, rate: 50%%, ceil: 100%%}
relays:
  - name: office
    kind: forward
    listen: ["127.0.0.1:0"]
    upstream: ["127.0.0.1:1", %q]
    upload: 100mbit
    download: 100mbit
metrics: {listen: "127.0.0.1:0"}
`, echo.Addr()))
	p := run(t, build(t), "run", "--config", policy)
	return p.after("msg=\"relay listens\" relay=office listen="), p.after("msg=\"metrics are served\" listen=")
}

// exchange sends something through the relay and back.
func exchange(t *testing.T, relay string) {
	t.Helper()
	c, err := net.Dial("tcp", relay)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) // it is a session until then
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	const size = 64 << 10
	go func() { _, _ = c.Write(make([]byte, size)) }() // the read says what became of it
	if _, err := io.CopyN(io.Discard, c, size); err != nil {
		t.Fatal(err)
	}
}

// startKernel serves metrics of an interface whose counters rise.
func startKernel(t *testing.T) (addr string) {
	t.Helper()
	var scrapes atomic.Uint64
	snapshot := func() metrics.Kernel {
		n := 10 * scrapes.Add(1)
		return metrics.Kernel{
			Interfaces: []metrics.KernelInterface{{Name: "wan0", Present: true, Repairs: n}, {Name: "ppp*"}},
			Links: []metrics.KernelLink{{
				Name: "wan0 egress", Rate: 1e6, Applied: 1e6, Achieved: 5e5, Bytes: 1000 * n, Packets: n, Drops: n, Overlimits: n, Unshaped: n,
				Classes: []metrics.KernelClass{{
					Name: "web", Rate: 5e5, Ceil: 1e6, AppliedRate: 5e5, AppliedCeil: 1e6, Burst: 3000, Achieved: 5e5, Bytes: 1000 * n, Packets: n,
					Drops: n, Overlimits: n, BacklogBytes: 3000, Backlog: 2, LentPackets: n, BorrowedPackets: n,
				}},
			}},
		}
	}
	m := metrics.New(metrics.Build{Version: "test"}, metrics.Sources{
		Relays: func() []metrics.Relay { return nil }, Kernel: snapshot,
		Sharing: func() *metrics.Sharing {
			return &metrics.Sharing{Shares: []metrics.Share{{Class: "mirror", Link: "wan0 egress", Rate: 1e6, Budget: 3e6, Disagrees: true}}}
		},
		Admission: func() []metrics.Admission {
			n := 10 * scrapes.Load()
			return []metrics.Admission{{Class: "api", Decisions: map[string]uint64{"granted": n, "refused": n}, Keys: 3}}
		},
	})
	m.Started(time.Now())
	server := httptest.NewServer(m.Handler(metrics.Health{}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// A prometheus is a server that scrapes shaperd.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus runs the program of Debian's package prometheus, which make test installs.
func startPrometheus(t *testing.T, targets ...string) prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: shaperd
    static_configs: [{targets: %s}]
`, rules, list))
	p := run(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0")
	return prometheus{t, "http://" + p.after(`msg="Listening on" address=`)}
}

// A sample is one series of a query's result.
type sample struct {
	Metric map[string]string
	Value  [2]any // time, and the value as text
}

// query evaluates a query, which has to be valid, as of a time.
func (p prometheus) query(at time.Time, query string) []sample {
	p.t.Helper()
	result, err := p.try(at, query)
	if err != nil {
		p.t.Errorf("%s: %v", query, err)
	}
	return result
}

func (p prometheus) try(at time.Time, query string) ([]sample, error) {
	client := http.Client{Timeout: patience}
	form := url.Values{"query": {query}, "time": {at.Format(time.RFC3339Nano)}}
	resp, err := client.Get(p.url + "/api/v1/query?" + form.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []sample }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, %s, %w", resp.StatusCode, answer.Error, err)
	}
	return answer.Data.Result, nil
}

// awaitScrapes waits until every target has been scraped so many times more, and
// returns a time at which all have their values: a later scrape may be too slow.
func (p prometheus) awaitScrapes(n int) (at time.Time) {
	p.t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(patience)
	for ; n > 0; n-- {
		query := fmt.Sprintf("shaperd_build_info and timestamp(shaperd_build_info) > %f", float64(time.Now().UnixMilli())/1e3)
		for {
			at = time.Now()
			result, err := p.try(at, query) // it may not be ready yet
			if err == nil && len(result) == 2 {
				break
			}
			select {
			case <-poll.C:
			case <-timeout:
				p.t.Fatalf("not scraped: %v, %v", result, err)
			}
		}
	}
	return at
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
