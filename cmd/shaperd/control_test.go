package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/internal/admin"
)

// asks runs a command against p's control socket and returns what it prints.
func (p *process) asks(code int, args ...string) string {
	p.t.Helper()
	return output(p.t, code, append(args, "--socket", p.socket)...)
}

func (p *process) status() (s admin.Status) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.asks(0, "status", "--json")), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// rate is that of the class bulk on the link of downloads, in bits per second.
func (p *process) rate() int64 {
	p.t.Helper()
	for _, l := range p.status().Links {
		if l.Name == "relay web download" {
			return l.Classes[0].Rate
		}
	}
	p.t.Fatal("there is no link relay web download")
	return 0
}

// From one address to all at the same port: the reload is in its own way.
func TestReloadThatKeepsAPortNamesTheCure(t *testing.T) {
	const all = `
classes: [{name: api, unit: requests, rate: 2/h}, {name: rest, default: true, rate: 1mbit}]
relays:
  - {name: web, listen: %q, upstream: "127.0.0.1:1", upload: 8mbit, download: 8mbit}
metrics: {listen: %q}
admission: {listen: %q, token_file: %q}
`
	token := file(t, "token", "0123456789abcdef")
	addrs := [3]string{freeAddr(t), freeAddr(t), freeAddr(t)}
	policy := file(t, "shaperd.yaml", fmt.Sprintf(all, addrs[0], addrs[1], addrs[2], token))
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	for i := range addrs {
		next := addrs
		next[i] = strings.Replace(next[i], "127.0.0.1", "0.0.0.0", 1)
		write(t, policy, fmt.Sprintf(all, next[0], next[1], next[2], token))
		const cure = "; if the daemon itself has that port at another address, as with 127.0.0.1 and 0.0.0.0: restart it, or go by way of another port"
		if got := p.asks(1, "reload"); !strings.Contains(got, next[i]+": ") || !strings.Contains(got, "address already in use") || !strings.Contains(got, cure+"\n") {
			t.Errorf("reload to %s prints:\n%s", next[i], got)
		}
		p.await("reload refused")
		p.signal(unix.SIGHUP)
		if got := p.await("reload refused"); !strings.Contains(got, "by=SIGHUP") || !strings.Contains(got, cure+`"`) {
			t.Errorf("a signal's reload to %s logs:\n%s", next[i], got)
		}
	}
	write(t, policy, fmt.Sprintf(all, "127.0.0.1:0", addrs[1], addrs[2], token))
	p.asks(0, "reload")
	write(t, policy, fmt.Sprintf(all, strings.Replace(addrs[0], "127.0.0.1", "0.0.0.0", 1), addrs[1], addrs[2], token))
	p.asks(0, "reload")
}

func TestReloadAnswersWhenThePolicyIsInForce(t *testing.T) {
	p, policy, upstream, addr, _ := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	write(t, policy, relay("web", upstream, "40mbit"))
	p.asks(0, "set", "bulk", "--rate", "30mbit")
	p.asks(0, "set", "--link", "relay web upload", "--rate", "90mbit", "--for", "1h")
	if got, want := p.asks(0, "reload"), policy+" is in force\nno longer set by hand: bulk rate 30mbit\nno longer set by hand: relay web upload rate 90mbit\n"; got != want {
		t.Errorf("reload prints %q, want %q", got, want)
	}
	p.await(`msg="set by hand: ended by the reload" set.class=bulk set.rate=30mbit`)
	p.await("msg=reloaded policy=" + policy + " by.pid=")
	if got := p.rate(); got != 20e6 {
		t.Errorf("rate %d, want half of 40mbit", got)
	}
	write(t, policy, strings.Replace(relay("web", upstream, "40mbit"), "rate: 50%", "rate: 5mbps", 1))
	if got := p.asks(1, "reload"); !strings.HasPrefix(got, "shaperd: reload refused:\n"+policy+":3:") || !strings.Contains(got, "mbps") ||
		!strings.HasSuffix(got, "\nnothing has changed: the policy that was in force stays\n") {
		t.Errorf("a refused reload prints %q", got)
	}
	if got := p.status(); got.Reloads.Failed != 1 || got.Reloads.Succeeded != 1 || len(got.Reloads.LastError) != 1 || p.rate() != 20e6 {
		t.Errorf("after a refused reload: %+v", got.Reloads)
	}
	if got := p.asks(0, "status"); !strings.Contains(got, "the last reload was refused") {
		t.Errorf("status says nothing of the refused reload:\n%s", got)
	}
	s.says("after")
	p.signal(unix.SIGTERM)
	s.Close()
	_, rest := p.exit()
	if n := strings.Count(rest, "mbps means"); n > 1 || strings.Count(rest, "level=WARN") > 0 || strings.Count(rest, "level=ERROR") != 1 {
		t.Errorf("a refused reload is not logged once:\n%s", rest)
	}
}

func TestReloadWithoutASocketIsASignal(t *testing.T) {
	p, policy, upstream, _, _ := serveEcho(t)
	write(t, policy, relay("web", upstream, "40mbit"))
	out := output(t, 0, "reload", "--pid", strconv.Itoa(p.cmd.Process.Pid), "--socket", p.socket+".none")
	if out != "told by a signal: the log says how it went\n" {
		t.Errorf("reload prints %q", out)
	}
	p.await("msg=reloaded")
	if got := output(t, 1, "reload", "--socket", p.socket+".none"); !strings.Contains(got, "no daemon runs here") {
		t.Errorf("reload prints %q", got)
	}
}

func TestSetIsInForceAtOnceAndEnds(t *testing.T) {
	p, policy, upstream, addr, _ := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	got := p.asks(0, "set", "bulk", "--rate", "30mbit", "--link", "relay web download")
	want := "LINK                CLASS  BEFORE                NOW\nrelay web download  bulk   50mbit up to 100mbit  30mbit up to 100mbit\n"
	if got != want || p.rate() != 30e6 {
		t.Errorf("set prints %q, and the rate is %d", got, p.rate())
	}
	if got := p.asks(0, "set", "bulk", "--rate", "10%"); !strings.Contains(got, "relay web upload") || p.rate() != 10e6 {
		t.Errorf("set prints %q, and the rate is %d", got, p.rate())
	}
	for _, tt := range []struct{ args, want string }{
		{"bulk --rate 200mbit", "shaperd: the classes are guaranteed 200mbit on relay web upload, which has 100mbit: bulk 200mbit; lower some of them " +
			`(shaperd set CLASS --rate …), or raise the link's rate (shaperd set --link "relay web upload" --rate …)`},
		{"blk --rate 1mbit", "did you mean bulk?"},
		{"bulk --rate 1mbps", `write 1mbit for bits`},
		{"bulk --rate 1mbit --link wan", `there is no link "wan"`},
		{"--reset blk", "did you mean bulk?"},
		{"--reset --link web", "did you mean relay web upload or relay web download?"},
	} {
		if got := p.asks(1, append([]string{"set"}, strings.Fields(tt.args)...)...); !strings.Contains(got, tt.want) {
			t.Errorf("set %s prints %q, want %q", tt.args, got, tt.want)
		}
	}
	for _, args := range []string{"", "bulk", "bulk --for 1s", "--reset --rate 1mbit", "bulk --rate 1mbit --for 1ms", "bulk --rate 1mbit --for 400d"} {
		p.asks(2, append([]string{"set"}, strings.Fields(args)...)...)
	}
	if p.rate() != 10e6 {
		t.Errorf("what was refused has changed the rate to %d", p.rate())
	}
	p.asks(0, "set", "--link", "relay web download", "--rate", "80mbit")
	if n := len(p.status().Overrides); n != 3 || p.rate() != 8e6 { // 10 percent of what it is now
		t.Errorf("%d overrides, and the rate is %d", n, p.rate())
	}
	p.asks(0, "set", "bulk", "--reset")
	if p.rate() != 40e6 {
		t.Errorf("after the reset of a class the rate is %d, want half of 80mbit", p.rate())
	}
	write(t, policy, relay("web", upstream, "100mbit"))
	p.asks(0, "reload")
	if got := p.status(); len(got.Overrides) > 0 || p.rate() != 50e6 {
		t.Errorf("a reload leaves %+v, and the rate is %d", got.Overrides, p.rate())
	}
	s.says("after")
}

func TestSetForATimeIsBackAfterwards(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	if got := p.asks(0, "set", "bulk", "--rate", "30mbit", "--for", "1s"); !strings.Contains(got, "until ") {
		t.Errorf("set prints %q", got)
	}
	if s := p.status(); s.Next == nil || len(s.Next.Changes) != 2 || s.Next.Changes[0].To.Rate != 50e6 {
		t.Errorf("the next change is %+v", s.Next)
	}
	p.await(`msg="set by hand: its time is over" set.class=bulk set.rate=30mbit`)
	p.await(`msg="in force now" link="relay web upload" class=bulk rate=50mbit ceil=100mbit before.rate=30mbit before.ceil=100mbit`)
	if s := p.status(); len(s.Overrides) > 0 || s.Next != nil || p.rate() != 50e6 {
		t.Errorf("afterwards there are %+v, %+v, and the rate is %d", s.Overrides, s.Next, p.rate())
	}
}

func TestSessionsAreListed(t *testing.T) {
	p, _, upstream, addr, _ := serveEcho(t)
	s := dial(t, addr)
	s.says("hello")
	var got admin.Sessions
	if err := json.Unmarshal([]byte(p.asks(0, "sessions", "--json", "--class", "bulk")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Total != 1 || got.Sessions[0].Client != s.LocalAddr().String() || got.Sessions[0].Upstream != upstream || got.Sessions[0].Upload != 6 {
		t.Errorf("sessions are %+v", got)
	}
	for _, client := range []string{s.LocalAddr().String(), "127.0.0.1"} {
		if got := p.asks(0, "sessions", "--client", client); !strings.Contains(got, "web    open   bulk   "+s.LocalAddr().String()) {
			t.Errorf("sessions of %s:\n%s", client, got)
		}
	}
	if got := p.asks(0, "sessions", "--client", "127.0.0.2"); got != "no sessions\n" {
		t.Errorf("sessions of another client: %q", got)
	}
}

// A name that there is not is an error, and not a list of nothing.
func TestWrongNamesSayWhatThereIs(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	for _, tt := range []struct{ args, want string }{
		{"sessions --class blk", `there is no class "blk"; did you mean bulk?`},
		{"sessions --class voice", `there is no class "voice": the policy has bulk`},
		{"sessions --relay wbe", `there is no relay "wbe"; did you mean web?`},
		{"sessions --relay office", `there is no relay "office": the policy has web`},
		{"sessions --client web", `client "web": write an address, such as 192.0.2.7`},
		{"drain wbe", `there is no relay "wbe"; did you mean web?`},
		{"drain office", `there is no relay "office": the policy has web`},
	} {
		if got := p.asks(1, strings.Fields(tt.args)...); got != "shaperd: "+tt.want+"\n" {
			t.Errorf("%s prints %q, want %q", tt.args, got, tt.want)
		}
	}
}

// A policy of admission alone has no link and no relay.
func TestSessionsWithoutRelaysAreNone(t *testing.T) {
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", "classes: [{name: api, unit: requests, rate: 2/s}, {name: rest, default: true, rate: 1mbit}]\nadmission: {rate: 1mbit}\n"))
	p.await("msg=ready")
	if got := p.asks(0, "sessions"); got != "no sessions\n" {
		t.Errorf("sessions prints %q", got)
	}
	if got := p.asks(1, "sessions", "--class", "rest"); !strings.Contains(got, `there is no class "rest"`) {
		t.Errorf("sessions of a class prints %q", got)
	}
}

func TestSessionsOfAClassAreThoseOfTheClassesInIt(t *testing.T) {
	text := strings.Replace(relay("web", echo(t), "100mbit"), "{name: bulk, default: true, rate: 50%, ceil: 100%}",
		"{name: all, rate: 50%, classes: [{name: a, match: {src: 192.0.2.1}, rate: 10%}, {name: b, default: true, rate: 10%}]}", 1)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", text))
	s := dial(t, p.listen("relay listens"))
	p.await("msg=ready")
	s.says("hello")
	for class, want := range map[string]int{"all": 1, "a": 0, "b": 1} {
		var got admin.Sessions
		if err := json.Unmarshal([]byte(p.asks(0, "sessions", "--json", "--class", class)), &got); err != nil || got.Total != want {
			t.Errorf("%d sessions of %s, %v, want %d", got.Total, class, err, want)
		}
	}
}

func TestStatusSaysWhyClientsWereRefused(t *testing.T) {
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", `
classes: [{name: all, default: true, rate: 1mbit}]
relays: [{name: proxy, kind: socks5, listen: "127.0.0.1:0", upload: 1mbit, download: 1mbit}]
`))
	addr := p.listen("relay listens")
	p.await("msg=ready")
	if got, want := p.asks(0, "status"), "proxy  serving  "+addr+"  0         0         0\n"; !strings.Contains(got, want) {
		t.Errorf("status prints\n%s\nwant %s", got, want)
	}
	for _, hello := range []string{"GET /", "\x05\x01\x02", "\x05\x01\x02"} { // no SOCKS5; a login that nobody asks for
		c := dial(t, addr)
		fmt.Fprint(c, hello)
		_, _ = io.Copy(io.Discard, c) // until it is refused
	}
	if got, want := p.asks(0, "status"), "  3: login 2, protocol 1\n"; !strings.Contains(got, want) {
		t.Errorf("status prints\n%s\nwant %s", got, want)
	}
}

// A reload in the middle of a drain: the relay serves again, and the old session goes on.
func TestDrainedRelayServesAgainAfterAReload(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	policy := file(t, "shaperd.yaml", strings.Replace(relay("web", echo(t), "100mbit"), "127.0.0.1:0", addr, 1))
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	s := dial(t, addr)
	s.says("before")
	if got := p.asks(0, "drain", "web"); got != "relay web accepts no more; 1 sessions are left\n" {
		t.Errorf("drain prints %q", got)
	}
	awaitRefused(t, addr)
	if got := p.asks(1, "set", "--link", "relay web download", "--rate", "50mbit"); !strings.Contains(got, `relay "web" drains`) {
		t.Errorf("set of its link prints %q", got)
	}
	if got := p.asks(0, "set", "bulk", "--rate", "10%"); !strings.Contains(got, "nothing has changed") { // and it starts nothing
		t.Errorf("set of its class prints %q", got)
	}
	s.says("while it drains")
	if r := p.status().Relays; len(r) != 1 || r[0].State != "draining" || r[0].Sessions != 1 {
		t.Errorf("relays are %+v", r)
	}
	if got := p.asks(0, "status"); !strings.Contains(got, "RELAY  STATE     LISTENS ON") || !strings.Contains(got, "web    draining") {
		t.Errorf("status prints\n%s", got)
	}
	if got := p.asks(0, "sessions"); !strings.Contains(got, "web    draining  bulk") {
		t.Errorf("sessions prints\n%s", got)
	}
	if got := p.asks(1, "drain", "web"); !strings.Contains(got, `relay "web" drains: the next reload starts it again`) {
		t.Errorf("a second drain prints %q", got)
	}
	if got := p.asks(0, "reload"); !strings.HasSuffix(got, "relay web serves again\n") {
		t.Errorf("reload prints %q", got)
	}
	again := dial(t, addr)
	again.says("served again")
	s.says("and the old one goes on")
}

// Its sockets are the service manager's: the next reload gets them again.
func TestDrainedRelayGetsItsInheritedSocketsBack(t *testing.T) {
	held := listenTCP(t)
	addr := held.Addr().String()
	policy := file(t, "shaperd.yaml", strings.Replace(relay("web", echo(t), "100mbit"), "127.0.0.1:0", addr, 1))
	p := activated(t, policy, held)
	p.await("msg=ready")
	for range 3 {
		p.asks(0, "drain", "web")
		p.asks(0, "reload")
		dial(t, addr).says("hello")
	}
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	write(t, policy, strings.Replace(string(text), addr, "127.0.0.1:0", 1))
	p.asks(0, "reload")
	write(t, policy, string(text))
	p.asks(0, "reload")
	dial(t, addr).says("hello")
}

// Nobody is accepted once a drain is answered, and a reload may follow at once.
func TestReloadRightAfterADrain(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", strings.Replace(relay("web", echo(t), "100mbit"), "127.0.0.1:0", addr, 1)))
	p.await("msg=ready")
	c := admin.NewClient(p.socket)
	for range 100 {
		if err := c.Drain(t.Context(), "web"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	dial(t, addr).says("hello")
}

// The mode changes in place, the path moves, and each reload gets its answer.
func TestControlSocketMovesWithAReload(t *testing.T) {
	p, policy, upstream, _, _ := serveEcho(t)
	text := relay("web", upstream, "100mbit")
	for _, mode := range []string{"0600", "0666", ""} {
		more := "\nadmin: {socket: " + p.socket + "}\n"
		if mode != "" {
			more = fmt.Sprintf("\nadmin: {socket: %s, mode: %q}\n", p.socket, mode)
		}
		write(t, policy, text+more)
		p.asks(0, "reload")
		info, err := os.Stat(p.socket)
		if err != nil || mode != "" && fmt.Sprintf("%04o", info.Mode().Perm()) != mode {
			t.Errorf("mode %v, %v, want %s", info.Mode(), err, mode)
		}
		if p.status().State != "ready" {
			t.Error("it is not ready")
		}
	}
	old := p.socket
	other := filepath.Join(t.TempDir(), strings.Repeat("x", 100-len(t.TempDir())))
	write(t, policy, text+"\nadmin: {socket: "+other+"}\n")
	p.asks(0, "reload")
	p.await("socket=" + other)
	p.socket = other
	if p.status().State != "ready" {
		t.Error("it is not ready")
	}
	write(t, policy, text+"\nadmin: {socket: "+other+", group: nosuchgroup}\n")
	if got := p.asks(1, "reload"); !strings.Contains(got, "nosuchgroup") {
		t.Errorf("reload with a group that there is not: %q", got)
	}
	write(t, policy, text) // where it was at first: nobody said where
	p.asks(0, "reload")
	p.await("socket=" + old)
	p.socket = old
	write(t, policy, text+"\nadmin: {socket: off}\n")
	p.asks(0, "reload")
	p.await("msg=reloaded")
	for deadline := time.Now().Add(patience); ; {
		if _, err := os.Stat(old); os.IsNotExist(err) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the socket is still there: %v", err)
		}
	}
}

// What was set by hand never stands in the way of the end of something else.
func TestOverrideThatDoesNotFitAnyMoreEnds(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	p.asks(0, "set", "--link", "relay web download", "--rate", "200mbit", "--for", "2s")
	p.asks(0, "set", "bulk", "--link", "relay web download", "--rate", "150mbit", "--ceil", "150mbit")
	p.await(`msg="set by hand: it ends, since it does not fit any more" set.class=bulk`)
	p.await(`msg="in force now" link="relay web download" rate=100mbit before.rate=200mbit`)
	s := p.status()
	if len(s.Overrides) != 0 || p.rate() != 50e6 {
		t.Errorf("there are %+v, and the rate is %d", s.Overrides, p.rate())
	}
}

func TestLogLevelIsSetWhileItRuns(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	if got := p.asks(0, "log-level"); got != "info\n" {
		t.Errorf("level is %q", got)
	}
	if got := p.asks(0, "log-level", "debug"); got != "debug\n" {
		t.Errorf("level is %q", got)
	}
	if line := p.await(`request="PUT /v1/log-level" by.pid=`); !strings.HasSuffix(line, " asked.level=debug") {
		t.Errorf("logged is %s", line)
	}
	if got := p.asks(2, "log-level", "loud"); !strings.Contains(got, `log level "loud": give debug, info, warn or error`) {
		t.Errorf("log-level loud prints %q", got)
	}
	p.asks(0, "set", "bulk", "--rate", "30mbit", "--for", "1.5d")
	if line := p.await(`request="POST /v1/set" by.pid=`); !strings.HasSuffix(line, " asked.class=bulk asked.rate=30mbit asked.for=36h0m0s") {
		t.Errorf("logged is %s", line)
	}
}

// What is given at the start counts before the policy, also after a reload.
func TestSocketGivenAtTheStart(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	text := relay("web", echo(t), "100mbit") + "\nadmin: {socket: " + other + "}\n"
	policy := file(t, "shaperd.yaml", text)
	p := start(t, func(cmd *exec.Cmd) { cmd.Dir = dir }, "run", "--config", policy, "--socket", "my socket")
	p.socket = filepath.Join(dir, "my socket")
	p.await("msg=ready")
	write(t, policy, strings.Replace(text, other, "off", 1))
	p.asks(0, "reload")
	if p.status().State != "ready" {
		t.Error("it is not ready")
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("the policy's socket is there: %v", err)
	}
	p.signal(unix.SIGTERM)
	p.exit()
	if want := "shaperd status --socket '" + p.socket + "'\n"; !strings.Contains(p.stdout.String(), want) {
		t.Errorf("the welcome does not say %s:\n%s", want, p.stdout.String())
	}
	none := start(t, nil, "run", "--config", policy, "--socket", "off")
	none.await("msg=ready")
	none.signal(unix.SIGTERM)
	none.exit()
	if want := fmt.Sprintf("reload    kill -HUP %d\n", none.cmd.Process.Pid); !strings.Contains(none.stdout.String(), want) {
		t.Errorf("the welcome does not say %s:\n%s", want, none.stdout.String())
	}
	if got := output(t, 2, "run", "--socket", "/"+strings.Repeat("x", 110)); !strings.Contains(got, "it is too long for a socket; write at most 107") {
		t.Errorf("a path that is too long: %s", got)
	}
}

func TestSocketThatIsTaken(t *testing.T) {
	p, policy, upstream, _, _ := serveEcho(t)
	taken := func(text string) string { return "\nadmin: {socket: " + text + "}\n" }
	other := file(t, "other.yaml", relay("web", upstream, "1mbit")+taken(p.socket))
	out, err := exec.Command(program, "run", "--config", other).CombinedOutput()
	if want := fmt.Sprintf("process %d (shaperd) answers there", p.cmd.Process.Pid); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a second daemon at the same socket: %v, %s, want %q", err, out, want)
	}
	write(t, other, relay("web", upstream, "1mbit")+taken(policy))
	if out, err := exec.Command(program, "run", "--config", other).CombinedOutput(); err == nil || !strings.Contains(string(out), "there is something else at this path") {
		t.Errorf("a socket in the place of a file: %v, %s", err, out)
	}
	if _, err := os.Stat(policy); err != nil {
		t.Error(err)
	}
	// Nobody says where: the daemon does without.
	second := start(t, func(c *exec.Cmd) { c.Env = append(c.Env, "SHAPERD_SOCKET="+p.socket) }, "run", "--config", policy)
	second.await("status, top, set and reload will not work")
	second.await("msg=ready")
}

func TestStaleSocketIsReplaced(t *testing.T) {
	p, policy, _, _, _ := serveEcho(t)
	p.signal(unix.SIGKILL)
	p.exit()
	if _, err := os.Stat(p.socket); err != nil {
		t.Fatalf("a crash leaves no socket: %v", err)
	}
	if got := p.asks(1, "status"); !strings.Contains(got, "no daemon runs here") {
		t.Errorf("status of a daemon that is gone prints %q", got)
	}
	again := start(t, func(c *exec.Cmd) { c.Env = append(c.Env, "SHAPERD_SOCKET="+p.socket) }, "run", "--config", policy)
	again.await("msg=ready")
	again.socket = p.socket
	if got := again.status().PID; got != again.cmd.Process.Pid {
		t.Errorf("process %d answers", got)
	}
	again.signal(unix.SIGTERM)
	again.exit()
	if _, err := os.Stat(p.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestSocketRefusesWhoMayNot(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	for _, dir := range []string{filepath.Dir(p.socket), filepath.Dir(filepath.Dir(p.socket))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "status", "--socket", p.socket)
	cmd.Env = env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "permission denied (its file mode says who may") {
		t.Errorf("nobody may ask: %v, %s", err, out)
	}
	info, err := os.Stat(p.socket)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Clients that never read or write cost nobody else an answer, as long as they are few.
func TestClientsThatHangKeepNobodyWaiting(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	for range 20 {
		c, err := net.Dial("unix", p.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(strings.Repeat("GET /v1/status HTTP/1.1\r\nHost: shaperd\r\n\r\n", 200))); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.status().State; got != "ready" {
		t.Errorf("state %s", got)
	}
}

func TestEveryReloadOfAStormIsAnsweredAndTheLastCounts(t *testing.T) {
	p, policy, upstream, addr, _ := serveEcho(t)
	s := dial(t, addr)
	s.says("before")
	var all sync.WaitGroup
	for i := range 100 {
		if i == 50 {
			write(t, policy, relay("web", upstream, "60mbit"))
		}
		p.signal(unix.SIGHUP)
		all.Go(func() {
			c := admin.NewClient(p.socket)
			if _, err := c.Reload(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := p.rate(); got != 30e6 {
		t.Errorf("rate %d, want half of the last 60mbit", got)
	}
	if n := p.status().Reloads.Succeeded; n < 100 {
		t.Errorf("%d reloads", n)
	}
	s.says("after")
}

func TestScheduleChangesRatesInPlace(t *testing.T) {
	upstream := echo(t)
	now := time.Now().UTC()
	text := strings.Replace(relay("web", upstream, "100mbit"), "rate: 50%", fmt.Sprintf(
		`rate: 50%%, schedule: [{from: "%02d:%02d", to: "%02d:%02d", rate: 25%%}]`,
		now.Add(-time.Hour).Hour(), now.Minute(), now.Add(2*time.Hour).Hour(), now.Minute()), 1)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", "time_zone: UTC\n"+text))
	p.await("msg=ready")
	s := p.status()
	if p.rate() != 25e6 || s.TimeZone != "UTC" || s.Next == nil || len(s.Next.Changes) != 2 || s.Next.Changes[1].To.Rate != 50e6 {
		t.Errorf("rate %d in zone %s, then %+v", p.rate(), s.TimeZone, s.Next)
	}
	if got := p.asks(0, "status"); !strings.Contains(got, "next change: ") || !strings.Contains(got, "25mbit up to 100mbit  50mbit up to 100mbit") {
		t.Errorf("status prints\n%s", got)
	}
}

func TestSecondDaemonOnTheSameInterfacesSaysWhoHoldsTheLock(t *testing.T) {
	newNetwork(t)
	policy := file(t, "shaperd.yaml", office)
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	want := fmt.Sprintf("lock the kernel datapath: process %d shapes the interfaces here already", p.cmd.Process.Pid)
	for _, args := range [][]string{{"run", "--config", policy}, {"apply", policy}, {"clear"}} {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s, want %q", args[0], err, out, want)
		}
	}
	if out, err := exec.Command(program, "plan", policy).CombinedOutput(); err != nil {
		t.Errorf("plan beside a daemon: %v, %s", err, out)
	}
	p.asks(0, "set", "voice", "--rate", "3mbit")
	if got := shell(t, "tc class show dev eth0"); !strings.Contains(got, "rate 3Mbit") {
		t.Errorf("set has not reached the kernel:\n%s", got)
	}
	p.signal(unix.SIGKILL)
	p.exit()
	if out, err := exec.Command(program, "clear").CombinedOutput(); err != nil {
		t.Errorf("clear after a crash: %v, %s", err, out)
	}
}

func TestRequestsThatMakeNoSenseSayWhy(t *testing.T) {
	p, _, _, _, _ := serveEcho(t)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p.socket)
	}}}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string // in the answer
	}{
		{"POST", "/v1/set", "{", http.StatusBadRequest, `the body ends too early: give a JSON object with `},
		{"POST", "/v1/set", `{"klass":"bulk"}`, http.StatusBadRequest, `unknown key \"klass\"; did you mean class?`},
		{"POST", "/v1/set", `{"class":"bulk","rate":"1mbit"} {}`, http.StatusBadRequest, `something after the JSON object`},
		{"POST", "/v1/set", `{"class":"bulk"}`, http.StatusUnprocessableEntity, `give rate, ceil or burst`},
		{"POST", "/v1/set", `{"class":"bulk","rate":"1mbit","for_seconds":-1}`, http.StatusUnprocessableEntity, `-1 seconds`},
		{"POST", "/v1/set", `{"class":"` + strings.Repeat("a", 70<<10) + `"}`, http.StatusRequestEntityTooLarge, `the body has more than 65536 bytes`},
		{"POST", "/v1/reset", `{"class":"none"}`, http.StatusUnprocessableEntity, `there is no class \"none\"`},
		{"GET", "/v1/sessions?limit=none", "", http.StatusBadRequest, `write a number from 1`},
		{"GET", "/v1/sessions?client=none", "", http.StatusBadRequest, `write an address`},
		{"GET", "/v1/sessions?class=none", "", http.StatusNotFound, `the policy has bulk`},
		{"GET", "/v1/sessions?relay=none", "", http.StatusNotFound, `the policy has web`},
		{"GET", "/v1/classes/none", "", http.StatusNotFound, `no link has a class \"none\"; known are bulk`},
		{"GET", "/v1/classes/bulk", "", http.StatusOK, `"relay web upload":`},
		{"GET", "/v1/classes/blk", "", http.StatusNotFound, `no link has a class \"blk\"; did you mean bulk?`},
		{"GET", "/v1/links", "", http.StatusOK, `"name":"relay web upload"`},
		{"GET", "/openapi.yaml", "", http.StatusOK, `openapi: 3`},
		{"GET", "/v2/status", "", http.StatusNotFound, `there is nothing at /v2/status`},
		{"GET", "/v1/reload", "", http.StatusMethodNotAllowed, `use POST`},
		{"POST", "//v1/reload", "", http.StatusNotFound, `there is nothing at //v1/reload; did you mean /v1/reload?`},
		{"PUT", "/v1/log-level", "", http.StatusBadRequest, `no body: give a JSON object with level`},
		{"PUT", "/v1/log-level", `{"level":7}`, http.StatusBadRequest, `level: a text is needed, not a number`},
		{"POST", "/v1/relays/none/drain", "", http.StatusNotFound, `there is no relay \"none\"`},
		{"PUT", "/v1/log-level", `{"level":"loud"}`, http.StatusUnprocessableEntity, `write debug, info, warn or error`},
	} {
		r, err := http.NewRequest(tt.method, "http://shaperd"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tt.status || !strings.Contains(string(text), tt.want) || err != nil {
			t.Errorf("%s %s %.40s: %d %s %v, want %d and %s", tt.method, tt.path, tt.body, answer.StatusCode, text, err, tt.status, tt.want)
		}
	}
}

// A disk that is full takes no more of the log: that ends nothing.
func TestFullDiskForTheLogIsNoEnd(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := &process{t: t, socket: filepath.Join(t.TempDir(), "socket")}
	p.cmd = exec.Command(program, "run", "--config", file(t, "shaperd.yaml", relay("web", echo(t), "100mbit")))
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(env(), "SHAPERD_SOCKET="+p.socket), full, full
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	c := admin.NewClient(p.socket)
	for deadline := time.Now().Add(patience); ; {
		if s, err := c.Status(t.Context()); err == nil && s.State == "ready" {
			dial(t, s.Relays[0].Listen[0]).says("hello")
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	p.asks(0, "reload")
	p.signal(unix.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
