package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
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

// What is wrong with a command line is said in one text of our own, and nobody is asked.
func TestTakeAndPaceSayWhatTheyNeed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"take api", "take needs --bytes or --requests: write how much is to be admitted, such as --bytes 64kb or --requests 1"},
		{"take api --bytes 1kb --requests 1", "give --bytes or --requests, not both: a class counts one of them"},
		{"take api --bytes=", `--bytes "": write a size such as 64kb`},
		{"take api --requests 0", "--requests 0: write how many, from 1"},
		{"take api --requests 1 --timeout -5s", "--timeout -5s: write a time such as 5s, 0s not to wait, or leave it out to wait for ever"},
		{"take api --requests 1 --socket s --url http://127.0.0.1:1", "give --socket or --url, not both: each names a daemon"},
		{"pace backup --socket s --url http://127.0.0.1:1", "give --socket or --url, not both: each names a daemon"},
		{"take api --requests 1 --token-file t", "--token-file is for --url: a control socket needs no token"},
		{"pace backup --socket s --token-file t", "--token-file is for --url: a control socket needs no token"},
	} {
		if got := output(t, 2, strings.Fields(tt.args)...); !strings.HasPrefix(got, "shaperd: "+tt.want+"\nusage: shaperd ") {
			t.Errorf("shaperd %s prints %q, want %s", tt.args, got, tt.want)
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
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
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

// Programs read what the API answers, with the errors of a refusal as take says them.
func TestTakePrintsJSON(t *testing.T) {
	redis := storetest.Start(t)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", strings.Replace(closed(redis.URL()), "100/s", "2/h", 1)))
	p.await("msg=ready")
	take := func(code int, class, timeout string, requests int) (v takenView) {
		t.Helper()
		cmd := exec.Command(program, "take", class, "--requests", fmt.Sprint(requests), "--json", "--timeout", timeout, "--socket", p.socket)
		cmd.Env = env()
		var said bytes.Buffer
		cmd.Stderr = &said
		out, _ := cmd.Output()
		if err := json.Unmarshal(out, &v); err != nil || cmd.ProcessState.ExitCode() != code {
			t.Errorf("exit code %d, want %d; it prints %q: %v", cmd.ProcessState.ExitCode(), code, out, err)
		}
		if want := strings.Join(v.Errors, "\n"); said.Len() > 0 && said.String() != "shaperd: "+want+"\n" {
			t.Errorf("it says %q, and the JSON %q", said.String(), want)
		}
		return v
	}
	for _, tt := range []struct {
		class    string
		requests int
		code     int
		want     string
	}{
		{"api", 1, 75, `not admitted in time: class "api": refused for now: try again in `}, // a new bucket is empty
		{"api", 11, 1, "more than its burst of 10"},
		{"apo", 1, 1, "did you mean api?"},
	} {
		v := take(tt.code, tt.class, "0s", tt.requests)
		if len(v.Errors) != 1 || !strings.Contains(v.Errors[0], tt.want) || v.Granted || v.Class != tt.class {
			t.Errorf("%s: %+v, want %s", tt.class, v, tt.want)
		}
		if known := tt.code == 75; known != (v.Remaining != nil && *v.Remaining == 0 && v.Reset != nil && v.RetryAfter > 0 && v.Unit == "requests") {
			t.Errorf("%s: %+v, want the bucket of what was refused, and only that", tt.class, v)
		}
		if tt.class == "api" && v.Limit != 10 {
			t.Errorf("%s: %+v, want the burst", tt.class, v)
		}
	}
	redis.Kill()
	if v := take(75, "api", "0s", 1); v.RetryAfter != 1000 || v.Granted || v.Remaining != nil || !strings.Contains(v.Errors[0], "nobody can say") {
		t.Errorf("in an outage: %+v", v)
	}
}

// What is granted says so, and whether the host decided alone.
func TestTakePrintsJSONOfWhatIsGranted(t *testing.T) {
	redis := storetest.Start(t)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", strings.Replace(closed(redis.URL()), "closed", "open", 1)))
	p.await("msg=ready")
	take := func(want string) {
		t.Helper()
		var v map[string]any
		if err := json.Unmarshal([]byte(p.asks(0, "take", "api", "--requests", "1", "--json")), &v); err != nil {
			t.Fatal(err)
		}
		for key, least := range map[string]float64{"remaining": 0, "reset_ms": 1, "limit": 10} {
			if n, ok := v[key].(float64); !ok || n < least {
				t.Errorf("%s: %v, want %v at least", key, v[key], least)
			}
			delete(v, key)
		}
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("take prints %s besides, want %s", got, want)
		}
	}
	take(`{"class":"api","granted":true,"unit":"requests"}`)
	redis.Kill()
	take(`{"alone":true,"class":"api","granted":true,"unit":"requests"}`)
}
