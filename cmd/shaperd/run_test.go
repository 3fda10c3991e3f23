package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// echo serves on a loopback address, which it returns, and sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // until the client ends
			}()
		}
	}()
	return ln.Addr().String()
}

// A session is a connection through a relay to an echo server.
type session struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) session {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := session{t, c, bufio.NewReader(c)}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return s
}

// says sends a line and expects it back.
func (s session) says(line string) {
	s.t.Helper()
	fmt.Fprintln(s, line)
	if got, err := s.in.ReadString('\n'); got != line+"\n" || err != nil {
		s.t.Fatalf("echo of %q = %q, %v", line, got, err)
	}
}

// awaitRefused waits until nobody listens on addr any more.
func awaitRefused(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", addr)
		if errors.Is(err, unix.ECONNREFUSED) {
			return
		}
		if err == nil {
			c.Close()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still takes connections (%v)", addr, err)
		}
	}
}

// value returns a metric's value, by its name with labels.
func value(t *testing.T, metrics, series string) float64 {
	t.Helper()
	for line := range strings.Lines(scrape(t, metrics, "/metrics", http.StatusOK)) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no metric %s", series)
	return 0
}

func scrape(t *testing.T, addr, path string, status int) string {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("GET %s: status %d, %v, want %d", path, resp.StatusCode, err, status)
	}
	return string(body)
}

// relay is a policy with one forward relay, by the name, to upstream.
func relay(name, upstream, download string) string {
	return fmt.Sprintf(`
classes:
  - {name: bulk, default: true, rate: 50%%, ceil: 100%%}
relays:
  - name: %s
    kind: forward
    listen: ["127.0.0.1:0"]
    upstream: [%q]
    upload: 100mbit
    download: %s
metrics: {listen: "127.0.0.1:0"}
`, name, upstream, download)
}

const downloadRate = `shaperd_link_rate_bytes_per_second{datapath="relay",link="relay web download"}`

// serveEcho runs a relay named web to an echo server.
func serveEcho(t *testing.T) (p *process, policy, upstream, addr, metrics string) {
	t.Helper()
	upstream = echo(t)
	policy = file(t, "shaperd.yaml", relay("web", upstream, "100mbit"))
	p = start(t, nil, "run", "--config", policy)
	addr = p.listen("relay listens")
	metrics = p.listen("metrics are served")
	return p, policy, upstream, addr, metrics
}

func TestRunServesAndMeasures(t *testing.T) {
	p, policy, _, addr, metrics := serveEcho(t)
	s := dial(t, addr)
	s.says("hello")
	scrape(t, metrics, "/healthz", http.StatusOK)
	scrape(t, metrics, "/readyz", http.StatusOK)
	if got := value(t, metrics, `shaperd_class_sent_bytes_total{class="bulk",datapath="relay",link="relay web upload"}`); got != 6 {
		t.Errorf("class bulk has sent %v bytes, want 6", got)
	}
	if got := value(t, metrics, `shaperd_relay_sessions{relay="web"}`); got != 1 {
		t.Errorf("%v sessions, want 1", got)
	}
	check := exec.Command("promtool", "check", "metrics") // from Debian's package prometheus; make test installs it
	check.Stdin = strings.NewReader(scrape(t, metrics, "/metrics", http.StatusOK))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	s.Close()
	p.signal(unix.SIGTERM)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out := p.stdout.String()
	hints := fmt.Sprintf("watch     %[1]s status --socket %[2]s\nreload    %[1]s reload --socket %[2]s\n", program, p.socket)
	for _, text := range []string{"serves the policy " + policy, "relay web", addr, "http://" + metrics + "/metrics", hints} {
		if !strings.Contains(out, text) {
			t.Errorf("the welcome lacks %q:\n%s", text, out)
		}
	}
}

func TestBuiltInPolicyIsASOCKS5Proxy(t *testing.T) {
	text := output(t, 0, "config", "default")
	policy := file(t, "shaperd.yaml", regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+`).ReplaceAllString(text, "$1:0"))
	p := start(t, nil, "run", "--config", policy)
	proxy := p.listen("relay listens")
	metrics := p.listen("metrics are served")

	client := http.Client{Timeout: patience, Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "socks5h", Host: strings.Fields(proxy)[0]}), DisableKeepAlives: true,
	}}
	resp, err := client.Get("http://" + metrics + "/healthz") // any HTTP server will do
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d through the proxy", resp.StatusCode)
	}
	p.signal(unix.SIGINT)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(p.stdout.String(), "curl -x socks5h://127.0.0.1:") {
		t.Errorf("the welcome does not say how to try it:\n%s", p.stdout.String())
	}
}

func TestReloadKeepsSessions(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	write(t, policy, relay("web", upstream, "8mbit"))
	p.signal(unix.SIGHUP)
	p.await("reloaded")
	s.says("after")
	dial(t, addr).says("another")
	if got := value(t, metrics, downloadRate); got != 1e6 {
		t.Errorf("rate is %v bytes/s after the reload, want 1e6", got)
	}
	if got := value(t, metrics, `shaperd_config_reloads_total{result="success"}`); got != 1 {
		t.Errorf("%v reloads counted, want 1", got)
	}
}

func TestReloadRenamesARelayInPlace(t *testing.T) {
	upstream, addr := echo(t), freeAddr(t)
	fixed := func(name string) string {
		return strings.Replace(relay(name, upstream, "100mbit"), `["127.0.0.1:0"]`, `["`+addr+`"]`, 1)
	}
	policy := file(t, "shaperd.yaml", fixed("web"))
	p := start(t, nil, "run", "--config", policy)
	metrics := p.listen("metrics are served")
	s := dial(t, addr)
	s.says("before")
	write(t, policy, fixed("site"))
	p.signal(unix.SIGHUP)
	p.await("reloaded")
	s.says("after")
	dial(t, addr).says("another")
	if got := value(t, metrics, `shaperd_relay_sessions{relay="site"}`); got != 2 {
		t.Errorf("%v sessions under the new name, want 2", got)
	}
}

// freeAddr returns a loopback address that was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestReloadAddsAndRemovesRelays(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	other := freeAddr(t)
	next := strings.Replace(relay("other", upstream, "100mbit"), `["127.0.0.1:0"]`, `["`+other+`"]`, 1)
	write(t, policy, next)
	p.signal(unix.SIGHUP)
	p.await("relay removed")
	p.await("reloaded")
	o := dial(t, other)
	o.says("hello")
	awaitRefused(t, addr)
	s.says("the removed relay drains")
	if page := scrape(t, metrics, "/metrics", http.StatusOK); strings.Contains(page, `relay="web"`) {
		t.Error("the removed relay is still exported")
	}
	s.Close()
	o.Close()
	p.signal(unix.SIGTERM)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestBadPolicyOnReloadChangesNothing(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	write(t, policy, relay("web", upstream, "8mbps")) // neither bits nor bytes
	p.signal(unix.SIGHUP)
	if line := p.await("level=ERROR"); !strings.Contains(line, `msg="reload refused: the policy that was in force stays" policy=`+policy+" by=SIGHUP error=") ||
		!strings.Contains(line, "8mbps") {
		t.Errorf("the log does not say what is wrong: %s", line)
	}
	s.says("after")
	dial(t, addr).says("another")
	if got := value(t, metrics, downloadRate); got != 12.5e6 {
		t.Errorf("rate is %v bytes/s, want the old 12.5e6", got)
	}
	if got := value(t, metrics, `shaperd_config_reloads_total{result="failure"}`); got != 1 {
		t.Errorf("%v failures counted, want 1", got)
	}
}

func TestReloadThatCannotBindChangesNothing(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	taken := echo(t)
	next := strings.Replace(relay("web", upstream, "8mbit"), "\nmetrics:", fmt.Sprintf(`
  - name: second
    kind: forward
    listen: ["127.0.0.1:0"]
    upstream: [%[1]q]
    upload: 1mbit
    download: 1mbit
  - name: third
    kind: forward
    listen: [%[1]q]
    upstream: ["127.0.0.1:1"]
    upload: 1mbit
    download: 1mbit
metrics:`, taken), 1)
	write(t, policy, next)
	p.signal(unix.SIGHUP)
	if line := p.await("level=ERROR"); !strings.Contains(line, `relay \"third\"`) || !strings.Contains(line, "address already in use") {
		t.Errorf("the log does not say what is wrong: %s", line)
	}
	dial(t, addr).says("still here")
	if got := value(t, metrics, downloadRate); got != 12.5e6 {
		t.Errorf("rate is %v bytes/s, want the old 12.5e6", got)
	}
	if page := scrape(t, metrics, "/metrics", http.StatusOK); strings.Contains(page, `relay="second"`) {
		t.Error("a part of the refused policy is in force")
	}
}

func TestReloadMovesTheMetrics(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	moved := freeAddr(t)
	write(t, policy, strings.Replace(relay("web", upstream, "100mbit"), `metrics: {listen: "127.0.0.1:0"}`, `metrics: {listen: "`+moved+`"}`, 1))
	p.signal(unix.SIGHUP)
	p.await("reloaded")
	scrape(t, moved, "/healthz", http.StatusOK)
	dial(t, addr).says("hello")
	write(t, policy, relay("web", upstream, "100mbit"))
	p.signal(unix.SIGHUP)
	if again := p.listen("metrics are served"); again == metrics || again == moved {
		t.Errorf("metrics at %s, want a new address", again)
	}
}

func TestTermLetsSessionsEnd(t *testing.T) {
	p, _, _, addr, metrics := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	p.signal(unix.SIGTERM)
	p.await("draining")
	s.says("after")
	awaitRefused(t, addr)
	if got := scrape(t, metrics, "/readyz", http.StatusServiceUnavailable); got != "draining\n" {
		t.Errorf("not ready since %q, want draining", got)
	}
	scrape(t, metrics, "/healthz", http.StatusOK) // what drains is alive
	s.Close()
	if code, stderr := p.exit(); code != 0 || !strings.Contains(stderr, "ended") {
		t.Errorf("exit code %d, log %q", code, stderr)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p, _, _, addr, _ := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	p.signal(unix.SIGTERM)
	p.await("draining")
	p.signal(unix.SIGINT)
	if code, stderr := p.exit(); code != 1 || !strings.Contains(stderr, "shaperd: interrupt while draining: ended at once") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if _, err := s.in.ReadByte(); err == nil {
		t.Error("the session goes on")
	}
}

func TestALogThatNobodyReadsIsNoEnd(t *testing.T) {
	policy := file(t, "shaperd.yaml", relay("web", "127.0.0.1:1", "1mbit"))
	log, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--config", policy)
	cmd.Env, cmd.Stderr = env(), theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	theirs.Close()
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "msg=ready"); {
	}
	log.Close()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} { // both are logged
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v, want an ordinary end", err)
	}
}

func TestStartFailsOnAnAddressInUse(t *testing.T) {
	taken := echo(t)
	text := relay("web", "127.0.0.1:1", "100mbit")
	for _, tt := range []struct{ policy, want string }{
		{strings.Replace(text, `["127.0.0.1:0"]`, `["`+taken+`"]`, 1), `relay "web": listen on ` + taken + `: address already in use`},
		{strings.Replace(text, `{listen: "127.0.0.1:0"}`, `{listen: "`+taken+`"}`, 1), `metrics: listen tcp4 ` + taken + `: bind: address already in use`},
	} {
		p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", tt.policy))
		if code, stderr := p.exit(); code != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("exit code %d, stderr %q, want 1 and %q", code, stderr, tt.want)
		}
	}
}

func TestLowPortNamesTheMissingCapability(t *testing.T) {
	low := strings.Replace(relay("web", "127.0.0.1:1", "1mbit"), "127.0.0.1:0", "0.0.0.0:80", 1)
	unprivileged := func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET} // where ports below 1024 are privileged for sure
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		} else {
			cmd.SysProcAttr.Cloneflags = 0
		}
	}
	p := start(t, unprivileged, "run", "--config", file(t, "shaperd.yaml", low))
	if code, stderr := p.exit(); code != 1 || !strings.Contains(stderr, "CAP_NET_BIND_SERVICE") {
		t.Errorf("exit code %d, stderr %q, want 1 and the capability", code, stderr)
	}
}

func TestServiceManagerIsToldEachState(t *testing.T) {
	socket := t.TempDir() + "/notify"
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	await := func(prefix string) string {
		t.Helper()
		buf := make([]byte, 4096)
		for {
			if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			n, err := manager.Read(buf)
			if err != nil {
				t.Fatalf("not told %s: %v", prefix, err)
			}
			if strings.HasPrefix(string(buf[:n]), prefix) {
				return string(buf[:n])
			}
		}
	}
	policy := file(t, "shaperd.yaml", relay("web", "127.0.0.1:1", "1mbit"))
	p := start(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=300000")
	}, "run", "--config", policy)
	if got := await("READY=1"); !strings.Contains(got, "\nSTATUS=policy "+policy+"; relays: web") {
		t.Errorf("told %q", got)
	}
	await("WATCHDOG=1")
	p.signal(unix.SIGHUP)
	if got := await("RELOADING=1"); !strings.Contains(got, "\nMONOTONIC_USEC=") {
		t.Errorf("told %q", got)
	}
	await("READY=1")
	await("WATCHDOG=1")
	p.signal(unix.SIGTERM)
	await("STOPPING=1")
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
