package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"shaperd/internal/store/storetest"
)

// closed is a policy whose shared classes admit nobody while the Redis is away.
func closed(redis string) string {
	return fmt.Sprintf(`
classes:
  - {name: api, unit: requests, rate: 100/s, burst: 10, shared: true}
  - {name: backup, match: {port: 873}, rate: 80mbit, burst: 64kb, shared: true}
  - {name: rest, default: true, rate: 10mbit}
relays:
  - {name: web, listen: "127.0.0.1:0", upstream: "127.0.0.1:1", upload: 100mbit, download: 100mbit}
shared: {redis: %q, cluster: test, host: r1, on_outage: closed}
`, redis)
}

// An outage is waited for like anything else that has no place in a queue.
func TestTakeOutlastsAnOutage(t *testing.T) {
	redis := storetest.Start(t)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", closed(redis.URL())))
	p.await("msg=ready")
	p.asks(0, "take", "api", "--requests", "1")
	redis.Kill()
	const why = `class "api": nobody can say, and on_outage is closed: `
	for _, timeout := range []string{"0s", "2s"} { // in which it asks again
		if got := p.asks(75, "take", "api", "--requests", "1", "--timeout", timeout); !strings.Contains(got, "shaperd: not admitted in time: "+why) {
			t.Errorf("--timeout %s: take prints %q", timeout, got)
		}
	}
	var all []*process
	for _, more := range [][]string{nil, {"--timeout", "1h"}} {
		take := start(t, nil, append([]string{"take", "api", "--requests", "1", "--socket", p.socket}, more...)...)
		if line := take.await("waiting"); !strings.HasPrefix(line, "shaperd: waiting: "+why) {
			t.Errorf("take prints %q", line)
		}
		all = append(all, take)
	}
	redis.Restart()
	for _, take := range all {
		if code, said := take.exit(); code != 0 {
			t.Errorf("exit code %d once Redis is back; %s", code, said)
		}
	}
}

func TestTakeWithoutADaemonEndsAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	for where, want := range map[string]string{
		"--socket=none":            "control socket none: no daemon runs here (start one ",
		"--socket=./none":          "control socket ./none: no daemon runs here (start one ",
		"--url=http://127.0.0.1:1": "http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused (is it what ",
	} {
		var out bytes.Buffer
		code := report(run(t.Context(), []string{"take", "api", "--requests", "1", where, "--timeout", "1h"}, strings.NewReader(""), &out, &out), &out)
		if got := out.String(); code != 1 || !strings.HasPrefix(got, "shaperd: "+want) {
			t.Errorf("%s: exit code %d, take prints %q", where, code, got)
		}
	}
}

// One that takes connections and does not answer has until the time is over.
func TestTakeOfAHungDaemonEndsInTime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := output(t, 75, "take", "api", "--requests", "1", "--socket", socket, "--timeout", "10ms"); got != "shaperd: not admitted in time: the daemon has not answered\n" {
		t.Errorf("take prints %q", got)
	}
}

// A proxy before the daemon may say less than the daemon does.
func TestTakeSaysNoMoreThanIsKnown(t *testing.T) {
	status := http.StatusTooManyRequests
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
	defer s.Close()
	take := func() string {
		return output(t, 75, "take", "api", "--requests", "1", "--url", s.URL, "--timeout", "0s")
	}
	if got := take(); got != "shaperd: not admitted in time: class \"api\": refused for now\n" {
		t.Errorf("take prints %q", got)
	}
	status = http.StatusBadGateway
	if got := take(); got != "shaperd: not admitted in time: the answer of "+s.Listener.Addr().String()+" is 502 Bad Gateway\n" {
		t.Errorf("take prints %q", got)
	}
}

func TestTakesSocketMayBeRelative(t *testing.T) {
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	p.await("msg=ready")
	t.Chdir(filepath.Dir(p.socket))
	for _, socket := range []string{"socket", "./socket"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"take", "api", "--requests", "1", "--socket", socket}, strings.NewReader(""), &out, &out); err != nil {
			t.Errorf("--socket %s: %v", socket, err)
		}
	}
}
