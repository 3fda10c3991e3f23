package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"shaperd/classify"
	"shaperd/shaper"
)

// parse returns the policy that the text says.
func parse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, text)
	}
	return p
}

// refuse returns the errors of a text, which must have some.
func refuse(t *testing.T, text string) Errors {
	t.Helper()
	p, err := Parse("test.yaml", []byte(text))
	var all Errors
	if p != nil || !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("got %v, %v, want no policy and Errors for:\n%s", p, err, text)
	}
	return all
}

// relayed completes classes with a relay of the given rates.
func relayed(classes, upload, download string) string {
	return fmt.Sprintf("%s\nrelays: [{name: web, listen: '127.0.0.1:8443', upstream: '10.0.0.5:443', upload: %s, download: %s}]\n", classes, upload, download)
}

func TestEveryKeyComesOutAsAValue(t *testing.T) {
	p := parse(t, `
classes:
  - name: voice
    match: [{dscp: [ef, 10], proto: [tcp, 17], port: [5060-5061, 80], sport: 80, dport: 2-3, src: [192.0.2.0/24, "2001:db8::1"], dst: 10.0.0.1, fwmark: [7, 0x10]}]
    rate: 2mbit
    ceil: 10mbit
    burst: 64kb
    priority: 0
    mark: cs1
    fwmark: 0xff
  - name: group
    rate: 20mbit
    classes:
      - {name: calm, match: {port: 873}, rate: 5mbit, mode: leaky}
      - {name: rest, default: true, rate: 2%, ceil: 15mbit}
  - {name: mirror, match: {port: 9418}, rate: 3mbit, shared: true}
  - {name: api, unit: requests, rate: 90/m, burst: 20, shared: true}
interfaces:
  - {name: ppp0, egress: 100mbit, ingress: 400mbit, overhead: pppoe}
relays:
  - name: web
    listen: ["0.0.0.0:8443", "[::]:8443"]
    upstream: ["10.0.0.5:443", "web.example.org:443"]
    upload: 50mbit
    download: 200mbit
    limits: {per_session: 1mbit, per_source: 2mbit, sessions: 3, sessions_per_source: 4, new_per_second: 5}
    timeouts: {handshake: 1s, connect: 2s, idle: 3m, half_closed: 4m, drain: 5m}
  - {name: proxy, kind: socks5, listen: "127.0.0.1:1080", users: {alice: "correct horse", "007": bond}, upload: 30mbit, download: 30mbit}
metrics: {listen: "127.0.0.1:9477"}
shared: {redis: ["redis://user@10.0.0.9/1", "redis://user@10.0.0.8:7000/1"], sentinel: main, cluster: edge, host: r1, weight: 3, on_outage: min, period: 2s, password_file: /etc/secret}
admission: {listen: "127.0.0.1:9478", token_file: /etc/token, rate: 100mbit, keys: 7}
`)
	cs1 := classify.DSCP(8)
	link := func(name string, rate shaper.Rate) shaper.Link {
		return shaper.Link{Name: name, Rate: rate, Classes: []shaper.Class{
			{Name: "voice", Rate: 2 * shaper.Mbit, Ceil: 10 * shaper.Mbit, Burst: 64 * shaper.KiB},
			{Name: "group", Rate: 20 * shaper.Mbit, Ceil: 20 * shaper.Mbit, Priority: 3, Children: []shaper.Class{
				{Name: "calm", Rate: 5 * shaper.Mbit, Ceil: 5 * shaper.Mbit, Mode: shaper.Leaky, Priority: 3},
				{Name: "rest", Rate: rate / 50, Ceil: 15 * shaper.Mbit, Priority: 3, Default: true},
			}},
			{Name: "mirror", Rate: 3 * shaper.Mbit, Ceil: 3 * shaper.Mbit, Budget: 3 * shaper.Mbit, Priority: 3},
		}}
	}
	want := &Policy{
		Name: "test.yaml",
		Rules: classify.Rules{Default: "rest", List: []classify.Rule{
			{Class: "voice", Match: classify.Match{
				Proto: []classify.Protocol{classify.TCP, classify.UDP}, Port: []classify.PortRange{{First: 5060, Last: 5061}, {First: 80, Last: 80}},
				SPort: []classify.PortRange{{First: 80, Last: 80}}, DPort: []classify.PortRange{{First: 2, Last: 3}},
				Src: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")},
				Dst: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}, DSCP: []classify.DSCP{46, 10}, Fwmark: []uint32{7, 16},
			}},
			{Class: "calm", Match: classify.Match{Port: []classify.PortRange{{First: 873, Last: 873}}}},
			{Class: "mirror", Match: classify.Match{Port: []classify.PortRange{{First: 9418, Last: 9418}}}},
		}},
		RuleLines: []int{4, 14, 16},
		Marks:     map[string]Mark{"mirror": {Priority: 3}, "voice": {DSCP: &cs1, Fwmark: 255}, "calm": {Priority: 3}, "rest": {Priority: 3}},
		Relays: []Relay{
			{
				Name: "web", Line: 21, Listen: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:8443"), netip.MustParseAddrPort("[::]:8443")},
				Upstream: []string{"10.0.0.5:443", "web.example.org:443"},
				Upload:   link("relay web upload", 50*shaper.Mbit), Download: link("relay web download", 200*shaper.Mbit),
				Limits:   Limits{shaper.Mbit, 2 * shaper.Mbit, 3, 4, 5},
				Timeouts: Timeouts{time.Second, 2 * time.Second, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute},
			},
			{
				Name: "proxy", Kind: SOCKS5, Line: 28, Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1080")},
				Users:  map[string]string{"alice": "correct horse", "007": "bond"},
				Upload: link("relay proxy upload", 30*shaper.Mbit), Download: link("relay proxy download", 30*shaper.Mbit),
				Timeouts: Timeouts{10 * time.Second, 10 * time.Second, time.Hour, 5 * time.Minute, 30 * time.Second},
			},
		},
		Interfaces: []Interface{{Name: "ppp0", Line: 19, Overhead: 46, Egress: link("ppp0 egress", 100*shaper.Mbit), Ingress: link("ppp0 ingress", 400*shaper.Mbit)}},
		Metrics:    netip.MustParseAddrPort("127.0.0.1:9477"), Page: true,
		Shared: Shared{
			Redis:   Redis{Addrs: []string{"10.0.0.9:26379", "10.0.0.8:7000"}, Sentinel: "main", User: "user", DB: 1, PasswordFile: "/etc/secret", Timeout: 100 * time.Millisecond, Backoff: 2 * time.Second},
			Cluster: "edge", Host: "r1", Weight: 3, OnOutage: "min", Period: 2 * time.Second,
		},
		Admission: Admission{
			Listen: netip.MustParseAddrPort("127.0.0.1:9478"), TokenFile: "/etc/token", Keys: 7, Classes: []AdmissionClass{
				{Name: "voice", Rate: 2 * shaper.Mbit, Burst: 64 * shaper.KiB}, {Name: "calm", Rate: 5 * shaper.Mbit, Burst: 625000},
				{Name: "rest", Rate: 2 * shaper.Mbit, Burst: 250000}, {Name: "mirror", Shared: true, Rate: 3 * shaper.Mbit, Burst: 375000},
				{Name: "api", Shared: true, PerHour: 5400, Requests: 20},
			},
		},
	}
	if !reflect.DeepEqual(values(p), want) {
		t.Errorf("got\n%+v\nwant\n%+v", p, want)
	}
}

func TestDefaultNeedsNoPrivileges(t *testing.T) {
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Relays {
		for _, a := range r.Listen {
			if !a.Addr().IsLoopback() || a.Port() < 1024 {
				t.Errorf("relay %q listens on %v", r.Name, a)
			}
		}
	}
	if len(p.Relays) != 1 || p.Relays[0].Kind != SOCKS5 || len(p.Interfaces) > 0 || p.Metrics.Port() != 9477 {
		t.Errorf("got %+v, want one SOCKS5 relay, and metrics", p)
	}
	for class, m := range p.Marks {
		if m.Fwmark != 0 {
			t.Errorf("class %q has a fwmark", class)
		}
	}
}

// What Parse lets through, the tree takes.
func TestWhatIsRightCanBeBuilt(t *testing.T) {
	for name, text := range wellFormed(t) {
		p, err := Parse(name, text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		checkLinks(t, p)
		if name != "reference.yaml" && (len(p.Relays) == 0 || len(p.Interfaces) > 0) {
			t.Errorf("%s cannot run in this version", name)
		}
	}
}

func checkLinks(t *testing.T, p *Policy) {
	t.Helper()
	var links []shaper.Link
	for _, r := range p.Relays {
		links = append(links, r.Upload, r.Download)
	}
	for _, i := range p.Interfaces {
		links = append(links, i.Egress, i.Ingress)
	}
	for _, l := range links {
		if _, err := shaper.NewTree(l, 0); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestPercentagesAreOfEachLinksRate(t *testing.T) {
	p := parse(t, relayed("classes: [{name: a, match: {port: 1}, rate: 12.5%, ceil: 33.3333%}, {name: b, default: true, rate: 50%, ceil: 100%}]", "80mbit", "1gbit"))
	r := p.Relays[0]
	for _, tt := range []struct {
		name      string
		got, want shaper.Rate
	}{
		{"upload rate", r.Upload.Classes[0].Rate, 10 * shaper.Mbit},
		{"download rate", r.Download.Classes[0].Rate, 125 * shaper.Mbit},
		{"upload ceil", r.Upload.Classes[0].Ceil, 26666640},
		{"download ceil", r.Download.Classes[0].Ceil, 333333000},
		{"whole link", r.Download.Classes[1].Ceil, shaper.Gbit},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestPercentagesAreExactToTheBit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		link := shaper.Rate(rng.Int64() >> rng.IntN(60))
		parts := rng.Int64N(whole) + 1
		var s share
		if err := s.parse(fmt.Sprintf("%d.%04d%%", parts/10000, parts%10000)); err != nil {
			t.Fatal(err)
		}
		want := new(big.Int).Mul(big.NewInt(int64(link)), big.NewInt(parts))
		if want.Quo(want, big.NewInt(whole)); int64(s.of(link)) != want.Int64() {
			t.Errorf("%s of %d is %d, want %v", s.text, link, s.of(link), want)
		}
	}
}

func TestNoRateIsChangedSilently(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		r := shaper.Rate(rng.Int64()>>rng.IntN(60)) | 1
		p := parse(t, relayed(fmt.Sprintf("classes: [{name: all, default: true, rate: %s}]", r), r.String(), "9223372036854775807bit"))
		for _, l := range []shaper.Link{p.Relays[0].Upload, p.Relays[0].Download} {
			if c := l.Classes[0]; c.Rate != r || c.Ceil != r {
				t.Errorf("%s came out as %d with a ceil of %d", r, c.Rate, c.Ceil)
			}
		}
	}
}

func TestRateZeroIsAnError(t *testing.T) {
	for _, zero := range []string{"0", "0bit", "0mbit", "0.0gbit", "0%", "0.0000%"} {
		for _, text := range []string{
			relayed("classes: [{name: a, default: true, rate: "+zero+"}]", "1mbit", "1mbit"),
			relayed("classes: [{name: a, default: true, ceil: "+zero+"}]", "1mbit", "1mbit"),
			relayed("", zero, "1mbit"),
		} {
			if e := refuse(t, text)[0]; zero[len(zero)-1] != '%' && !strings.Contains(e.Message, "nothing could ever be sent") {
				t.Errorf("%v, for:\n%s", e, text)
			}
		}
	}
}

func TestBitsOrBytesAreNeverGuessed(t *testing.T) {
	for text, cure := range map[string]string{
		"10mbps": "write 10mbit for bits or 10mbyte/s for bytes", "10Mbps": "write 10mbit for bits or 10mbyte/s for bytes",
		"8kbps": "write 8kbit for bits or 8kbyte/s for bytes", "5MB": "write 5mbit for bits or 5mbyte/s for bytes",
		"7": "write 7mbit, or 7bit if bits are meant",
	} {
		for _, e := range refuse(t, relayed("classes: [{name: a, default: true, rate: "+text+"}]", text, text)) {
			if e.Cure != cure {
				t.Errorf("%q: cure %q, want %q", text, e.Cure, cure)
			}
		}
	}
}

func TestATypoInOneClassAppliesNothing(t *testing.T) {
	good := relayed("classes: [{name: a, match: {port: 1}, rate: 1mbit}, {name: b, default: true, rate: 1mbit}]", "10mbit", "10mbit")
	parse(t, good)
	if all := refuse(t, strings.Replace(good, "port: 1}", "prt: 1}", 1)); len(all) != 1 || all[0].Cure != "did you mean port?" {
		t.Errorf("got %v, want the typo and nothing else", all)
	}
}

func TestTextsAreTakenAsWritten(t *testing.T) {
	p := parse(t, `
classes:
  - {name: 010, default: true, rate: 1mbit, fwmark: 0010, mark: 08}
  - {name: "0x10", rate: 1mbit, match: [{src: ["2001:db8::/32", "::1"], port: [080, 0443-0444]}]}
relays:
  - name: 1e3
    kind: socks5
    listen: [127.0.0.1:1080, '[::1]:1080']
    users: {a: 0123, b: 1_000, c: true, d: 1e3, 007: 0x1f, e: "a: b # c", f: ' ', g: 2026-12-01, h: no}
`)
	want := map[string]string{"a": "0123", "b": "1_000", "c": "true", "d": "1e3", "007": "0x1f", "e": "a: b # c", "f": " ", "g": "2026-12-01", "h": "no"}
	if got := p.Relays[0].Users; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m := p.Marks["010"]
	if p.Relays[0].Name != "1e3" || p.Rules.Default != "010" || m.Fwmark != 10 || *m.DSCP != 8 || p.Rules.List[0].Class != "0x10" {
		t.Errorf("got %+v", p)
	}
	if got := p.Rules.List[0].Match.String(); got != "{port: [80, 443-444], src: [2001:db8::/32, ::1/128]}" {
		t.Errorf("got %s", got)
	}
}

func TestCeilFollowsRate(t *testing.T) {
	p := parse(t, relayed("classes: [{name: a, match: {port: 1}, rate: 1mbit}, {name: b, default: true, ceil: 100%}]", "10mbit", "10mbit"))
	a, b := p.Relays[0].Upload.Classes[0], p.Relays[0].Upload.Classes[1]
	if a.Ceil != a.Rate || b.Rate != 0 || b.Ceil != 10*shaper.Mbit {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestUnlimitedRelayTakesClassesWithRates(t *testing.T) {
	p := parse(t, `
classes: [{name: a, match: {port: 1}, rate: 1mbit}, {name: b, default: true}]
relays: [{name: web, listen: "127.0.0.1:8443", upstream: "10.0.0.5:443"}]
`)
	want := shaper.Link{Name: "relay web upload", Classes: []shaper.Class{
		{Name: "a", Rate: shaper.Mbit, Ceil: shaper.Mbit, Priority: 3}, {Name: "b", Priority: 3, Default: true},
	}}
	if got := p.Relays[0].Upload; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWithoutClassesOneHasTheWholeLink(t *testing.T) {
	p := parse(t, relayed("", "1mbit", "2mbit"))
	want := []shaper.Class{{Name: "default", Rate: 2 * shaper.Mbit, Ceil: 2 * shaper.Mbit, Priority: 3, Default: true}}
	if got := p.Relays[0].Download.Classes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := p.Marks["default"]; !ok || p.Rules.Default != "default" {
		t.Errorf("got %+v", p)
	}
	checkLinks(t, p)
}

func TestFilesOfOtherSystemsAreRead(t *testing.T) {
	want := parse(t, string(ReferenceText))
	for name, text := range map[string][]byte{
		"CRLF":            bytes.ReplaceAll(ReferenceText, []byte("\n"), []byte("\r\n")),
		"byte order mark": append([]byte("\ufeff"), ReferenceText...),
		"start and end":   slicesConcat("---\n", ReferenceText, "...\n"),
	} {
		got := parse(t, string(text))
		if name == "start and end" { // a line lower
			got.RuleLines, got.Relays, got.Interfaces = want.RuleLines, want.Relays, want.Interfaces
		}
		if !reflect.DeepEqual(values(got), values(want)) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// values is p without what other times' rates are made from.
func values(p *Policy) *Policy {
	out := *p
	out.file, out.times = nil, weekly{}
	return &out
}

func slicesConcat(before string, text []byte, after string) []byte {
	return append(append([]byte(before), text...), after...)
}

func TestLoadNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := Load(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, DefaultText, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Load(file); err != nil || p.Name != file {
		t.Errorf("got %+v, %v", p, err)
	}
	if err := os.WriteFile(file, []byte("rely: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := Load(file); !errors.As(err, &e) || e.File != file {
		t.Errorf("wrong file: %v", err)
	}
}

func TestBombsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"size":         strings.Repeat("# comment\n", maxBytes/10+1),
		"flow lists":   "relays: " + strings.Repeat("[", 20_000),
		"flow lines":   strings.Repeat("[\n", 20_000),
		"flow maps":    strings.Repeat("{a: ", 20_000),
		"block lists":  strings.Repeat("- ", 20_000),
		"block maps":   strings.Repeat("? ", 20_000),
		"indentation":  strings.Join(indented(1000), ""),
		"aliases":      "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]\n",
		"many wrong":   strings.Repeat("- x\n", 10_000),
		"many keys":    strings.Join(numbered(50_000), ""),
		"one long row": "relays: [" + strings.Repeat("x,", 10_000) + "]",
		"NULs":         strings.Repeat("\x00", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(refuse(t, text)); n > maxErrors {
				t.Errorf("%d errors", n)
			}
		})
	}
}

func indented(n int) (lines []string) {
	for i := range n {
		lines = append(lines, strings.Repeat(" ", i)+"a:\n")
	}
	return lines
}

func numbered(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("k%d: 1\n", i))
	}
	return lines
}

func TestPasswordsStayOutOfErrors(t *testing.T) {
	for _, text := range []string{
		"relays: [{name: proxy, kind: socks5, listen: '127.0.0.1:1080', users: {alice: hunter2}, upload: 1}]",
		"relays:\n- kind: socks5\n  listen: '127.0.0.1:1080'\n  users: {alice: hunter2, alice: hunter2}\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users:\n    alice: @hunter2\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users:\n    # of the office\n    alice: \"hunter2\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: {alice: \"hunter2\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: {alice: " + strings.Repeat("hunter2", 40) + "}\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: {alice: [hunter2]}\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: &all {alice: hunter2}\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: {alice: !!str hunter2, bob: *hunter}\n",
		"relays:\n- name: proxy\n  kind: socks5\n  users: hunter2\n",
	} {
		all := refuse(t, text)
		for _, e := range all {
			if said := e.Detail() + e.Text + e.Message + e.Cure; strings.Contains(said, "hunter") {
				t.Errorf("the error shows a password: %s", said)
			}
		}
	}
}

// Whatever the file is, there is a policy that can be built, or there are errors with places.
func FuzzParse(f *testing.F) {
	f.Add(DefaultText)
	f.Add(ReferenceText)
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("fuzz.yaml", text)
		var all Errors
		switch {
		case err == nil:
			checkLinks(t, p)
		case p != nil || !errors.As(err, &all) || len(all) == 0:
			t.Fatalf("got %v, %v", p, err)
		}
		lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), "\n")
		for _, e := range all {
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
				t.Errorf("%v: no such place", e)
			}
			if e.Message == "" || e.Cure == "" || strings.Contains(e.Error(), "\n") || strings.Count(e.Detail(), "\n") != 2 {
				t.Errorf("%q: no message, no cure, or more than a line", e)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, rules := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("%d rules", rules), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("classes:\n  - name: a\n    rate: 1mbit\n    match:\n")
			for i := range rules {
				fmt.Fprintf(&text, "      - {proto: tcp, src: 10.%d.%d.0/24, dport: 443}\n", i/256, i%256)
			}
			text.WriteString("  - {name: b, default: true, rate: 1mbit}\n" + relayed("", "10mbit", "10mbit"))
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := Parse("bench.yaml", []byte(text.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
