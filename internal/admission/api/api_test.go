package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/internal/admission"
	"shaperd/internal/store"
	"shaperd/shaper"
)

// classes are slow, so that nothing is earned while a test runs.
var classes = []admission.Class{
	{Name: "backup", Rate: 8 * shaper.Kbit, Burst: 10_000},
	{Name: "api", Requests: admission.RequestLimit{PerHour: 60, Burst: 5}},
	{Name: "few", Requests: admission.RequestLimit{PerHour: 60, Burst: 5}, Keys: 1},
	{Name: "slow", Requests: admission.RequestLimit{PerHour: 240, Burst: 5}},
	{Name: "mirror", Rate: shaper.Mbit, Burst: 10_000, Shared: true, OnOutage: store.OutageClosed},
}

func newAdmission(t *testing.T) *admission.Admission {
	t.Helper()
	a := admission.New()
	if err := a.Update(classes); err != nil {
		t.Fatal(err)
	}
	return a
}

func serve(t *testing.T, a *admission.Admission) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	Mount(mux, a)
	s := httptest.NewServer(Authorize(a, mux))
	t.Cleanup(s.Close)
	return s.URL
}

// An answered request is what came of it.
type answered struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, body string, header ...string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Errorf("%s %s: the answer is no JSON: %s", method, url, text)
	}
	return answered{got.StatusCode, got.Header, string(text)}
}

func (a answered) has(t *testing.T, status int, want ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range want {
		if !strings.Contains(a.body, text) {
			t.Errorf("answer %s, want %s in it", a.body, text)
		}
	}
}

func (a answered) hasHeaders(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got := strings.Join(a.header.Values(name), " | "); got != text {
			t.Errorf("%s: %s, want %s", name, got, text)
		}
	}
}

func TestTakeSaysWhatIsLeft(t *testing.T) {
	url := serve(t, newAdmission(t)) + "/v1/classes/"
	got := ask(t, "POST", url+"backup/take", `{"bytes": 4000}`)
	got.has(t, 200, `"granted":true,"class":"backup","unit":"bytes","remaining":6000,"limit":10000,"reset_ms":`)
	got.hasHeaders(t, map[string]string{
		"RateLimit-Policy": `"backup";q=10000;w=10;qu="content-bytes"`, "RateLimit": `"backup";r=6000;t=4`,
		"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "6000", "X-RateLimit-Reset": "4", "Retry-After": "",
	})
	got = ask(t, "POST", url+"api/take", `{"cost": 2, "key": "customer-17"}`)
	got.has(t, 200, `"unit":"requests","remaining":3,"limit":5`)
	got.hasHeaders(t, map[string]string{"RateLimit-Policy": `"api";q=5;w=300`, "RateLimit": `"api";r=3;t=120`})
	ask(t, "POST", url+"api/take", `{"cost": 5}`).has(t, 200, `"remaining":0`) // another bucket
	ask(t, "POST", url+"few/take", `{"cost": 1, "key": "a"}`).has(t, 200)
	ask(t, "POST", url+"few/take", `{"cost": 1, "key": "b"}`).has(t, 429, "has no room for another key")
}

// Retry-After is in whole seconds, the body has the milliseconds, and neither is too early.
func TestRefusalSaysWhenToComeAgain(t *testing.T) {
	url := serve(t, newAdmission(t)) + "/v1/classes/"
	ask(t, "POST", url+"backup/take", `{"bytes": 10000}`).has(t, 200)
	got := ask(t, "POST", url+"backup/take", `{"bytes": 2500}`)
	got.has(t, 429, `"granted":false`, `has not enough now: try again in`)
	var body struct {
		Retry     int64 `json:"retry_after_ms"`
		Remaining int64 `json:"remaining"`
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatal(err)
	}
	// 1000 bytes a second: what was earned since is in remaining, but for its fraction.
	if body.Retry > 2500-body.Remaining || body.Retry < 2500-body.Remaining-2 {
		t.Errorf("retry after %d ms with %d of 2500 bytes", body.Retry, body.Remaining)
	}
	if seconds, err := strconv.ParseInt(got.header.Get("Retry-After"), 10, 64); err != nil || seconds*1000 < body.Retry || seconds*1000 >= body.Retry+1000 {
		t.Errorf("Retry-After %q for %d ms", got.header.Get("Retry-After"), body.Retry)
	}
}

func TestRequestsThatMakeNoSenseSayWhy(t *testing.T) {
	url := serve(t, newAdmission(t)) + "/v1/classes/"
	for _, tt := range []struct {
		class, body string
		status      int
		want        string
	}{
		{"bakcup", `{"bytes": 1}`, 404, `did you mean backup?`},
		{"backup", `{"bytes": -1}`, 400, "a cost of -1: give 1 or more"},
		{"backup", `{"bytes": 0}`, 400, "give 1 or more"},
		{"backup", `{"bytes": 1e30}`, 400, "bytes: a whole number that 64 bits hold is needed"},
		{"backup", `{"bytes": 99999999999999999999}`, 400, "bytes: a whole number"},
		{"backup", `{"bytes": 1.5}`, 400, "bytes: a whole number"},
		{"backup", `{"bytes": "1"}`, 400, "bytes: a whole number"},
		{"backup", `{"bytes": 9223372036854775807}`, 422, "are more than its burst of 10000"},
		{"backup", `{"bytes": 10001}`, 422, `"limit":10000`},
		{"backup", `{"cost": 1}`, 400, "counts bytes"},
		{"api", `{"bytes": 1}`, 400, "counts requests"},
		{"api", `{"cost": 1, "bytes": 1}`, 400, "both bytes and cost"},
		{"api", `{}`, 400, "neither bytes nor cost"},
		{"api", ``, 400, "no body: give a JSON object with bytes, cost, key, wait_ms"},
		{"api", `[1]`, 400, "the body is a JSON array: give a JSON object with bytes, cost, key, wait_ms"},
		{"api", `{"cost": 1} {"cost": 1}`, 400, "something after the JSON object"},
		{"api", `{"cost": 1, "kee": "x"}`, 400, `unknown key \"kee\"; did you mean key?`},
		{"api", `{"requests": 1}`, 400, `unknown key \"requests\"; known are bytes, cost, key, wait_ms`},
		{"api", `{"cost": 1, "key": 7}`, 400, "key: a text is needed"},
		{"api", `{"cost": 1, "wait_ms": -1}`, 400, "wait_ms -1: give 0 to 30000"},
		{"api", `{"cost": 1, "wait_ms": 9000000000000000}`, 400, "give 0 to 30000"},
		{"api", `{"cost": 1, "key": "` + strings.Repeat("k", 257) + `"}`, 400, "a key of 257 bytes"},
		{"api", `{"cost": 1, "key": "` + strings.Repeat("k", 10<<20) + `"}`, 413, "the body has more than 4096 bytes"},
		{"mirror", `{"bytes": 1}`, 503, "on_outage is closed"},
	} {
		got := ask(t, "POST", url+tt.class+"/take", tt.body)
		if got.status != tt.status || !strings.Contains(got.body, tt.want) || !strings.Contains(got.body, `"errors":`) {
			t.Errorf("%s %.80s: %d %s, want %d and %s", tt.class, tt.body, got.status, got.body, tt.status, tt.want)
		}
	}
	if got := ask(t, "POST", url+"mirror/take", `{"bytes": 1}`).header.Get("Retry-After"); got == "" {
		t.Error("503 without Retry-After")
	}
}

// What a reverse proxy asks for a request of its client's.
func TestProxiesAskForARequestOfTheirs(t *testing.T) {
	url := serve(t, newAdmission(t)) + "/v1/classes/api/authorize"
	for range 5 { // as Envoy asks: the request's own method and path behind the prefix
		ask(t, "PATCH", url+"/shop/cart?item=7", "the body", KeyHeader, "alice").has(t, 200, `"granted":true`)
	}
	for _, path := range []string{"/shop?key=bob&denied=403", "/?key=bob", "/shop?cost=0", "/shop?bytes=x"} { // which a client may send
		ask(t, "GET", url+path, "", KeyHeader, "alice").has(t, 429)
	}
	got := ask(t, "GET", url+"/shop/cart", "", KeyHeader, "alice")
	got.has(t, 429)
	if got.header.Get("Retry-After") == "" || got.header.Get("RateLimit") != `"api";r=0;t=300` {
		t.Errorf("headers of a refusal: %v", got.header)
	}
	got = ask(t, "GET", url+"?denied=403", "", KeyHeader, "alice") // as nginx
	got.has(t, 403)
	if got.header.Get("Retry-After") == "" {
		t.Error("403 without Retry-After")
	}
	for range 5 {
		ask(t, "GET", url+"/?key=bob", "").has(t, 200) // of the class's bucket
	}
	ask(t, "GET", url+"?key=bob&cost=5", "").has(t, 200, `"remaining":0`)
	ask(t, "GET", url+"?key=bob&cost=x", "").has(t, 400, "a whole number is needed")
	ask(t, "GET", url+"?kye=bob", "").has(t, 400, `query: unknown \"kye\"; did you mean key?`)
	ask(t, "GET", url+"?foo=1&bar=&key=bob", "").has(t, 400, `query: unknown \"bar\"; known are bytes, cost, denied, key`)
	ask(t, "GET", url+"/shop?kye=x", "", KeyHeader, "carol").has(t, 200) // the client's own
	ask(t, "GET", url+"?denied=500", "").has(t, 400, "give 403")
	ask(t, "GET", strings.Replace(url, "api", "backup", 1), "").has(t, 400, "counts bytes")
	ask(t, "GET", strings.Replace(url, "api", "backup", 1)+"?bytes=100", "").has(t, 200, `"remaining":9900`)
	ask(t, "GET", strings.Replace(url, "api", "aip", 1), "").has(t, 404, "did you mean api?")
}

// A path of a client's is answered as any other, whatever it is: a proxy has no use
// for a redirect.
func TestProxiesAskForAnyPath(t *testing.T) {
	a := newAdmission(t)
	host := strings.TrimPrefix(serve(t, a), "http://")
	const prefix = "/v1/classes/api/authorize"
	for i, line := range []string{
		"GET /", "GET //", "GET /a//b", "GET /a/../b", "GET /..", "GET /../../../../status", "GET /./", "GET /%2e%2e/%2E%2E", "GET /a%2Fb", "GET /%2F%2F",
		"GET /%00", "GET /?key=x&denied=403", "GET /;a=b", "GET /a\\..\\b", "GET /\"<|>^", "GET /%2F\"", "CONNECT /a//b", "OPTIONS /*", "PRI /",
		"get /a", "GET /v1/classes/api/take", "HEAD //", "POST //",
	} {
		method, path, _ := strings.Cut(line, " ")
		raw := func(key string) int {
			t.Helper()
			c, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "%s %s%s HTTP/1.1\r\nHost: x\r\n%s: %s\r\n\r\n", method, prefix, path, KeyHeader, key)
			got, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			return got.StatusCode
		}
		key := strconv.Itoa(i)
		for range 5 {
			if status := raw(key); status != 200 {
				t.Errorf("%s: answered with %d", line, status)
			}
		}
		if status := raw(key); status != 429 {
			t.Errorf("%s: once too often, answered with %d", line, status)
		}
	}
}

const rightToken = "0123456789abcdef0123456789abcdef"

func TestListenerAsksForItsToken(t *testing.T) {
	var token Token
	token.Set(rightToken)
	s, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), &token, newAdmission(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + s.Addr().String() + "/v1/classes/api/take"
	for _, header := range [][]string{nil, {"Authorization", "Bearer "}, {"Authorization", "Bearer " + rightToken[1:]}, {"Authorization", rightToken}, {"Authorization", "Basic " + rightToken}} {
		got := ask(t, "POST", url, `{"cost": 1}`, header...)
		got.has(t, 401, "admission.token_file")
		got.hasHeaders(t, map[string]string{"WWW-Authenticate": `Bearer realm="shaperd"`, "RateLimit": ""})
	}
	ask(t, "POST", url, `{"cost": 1}`, "Authorization", "Bearer "+rightToken).has(t, 200)
	ask(t, "POST", url, `{"cost": 1}`, "Authorization", "bearer "+rightToken).has(t, 200)
	if got := sends(t, s.Addr().String(), "POST /v1/classes/api/take HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.1 401") || !strings.Contains(got, "Connection: close") {
		t.Errorf("a body that never comes, without a token: %s", got)
	}
	if got := sends(t, s.Addr().String(), "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.1 401") {
		t.Errorf("OPTIONS * without a token: %s", got)
	}
	token.Set("another token, as after a reload")
	ask(t, "POST", url, `{"cost": 1}`, "Authorization", "Bearer "+rightToken).has(t, 401)
	other := "http://" + s.Addr().String() + "/v1/status"
	ask(t, "GET", other, "").has(t, 401)
	ask(t, "GET", other, "", "Authorization", "Bearer another token, as after a reload").has(t, 404, `"errors":["there is nothing at /v1/status"]`)
	got := ask(t, "GET", url, "", "Authorization", "Bearer another token, as after a reload")
	got.has(t, 405, `"errors":`)
	got.hasHeaders(t, map[string]string{"Allow": "POST", "Content-Type": "application/json"})
}

func TestTokenFilesAreRead(t *testing.T) {
	for text, want := range map[string]string{rightToken + "\n": "", "short\n": "it has 5 characters", "": "it has 0", strings.Repeat("a b ", 9): "one word"} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadToken(path)
		if want == "" && (got != rightToken || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := ReadToken(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is a named pipe", "/dev/zero": "is a device"} {
		if _, err := ReadToken(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Who waits is answered when there is enough, and has taken nothing when it leaves.
func TestWaitingTakesNothingWhenTheClientLeaves(t *testing.T) {
	a := newAdmission(t)
	url := serve(t, a) + "/v1/classes/slow/take"
	ask(t, "POST", url, `{"cost": 5}`).has(t, 200)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(`{"cost": 1, "wait_ms": 30000}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r)
		left <- err
	}()
	waiting := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			for _, s := range a.Stats() {
				if s.Class == "slow" && s.Waiting == n {
					return
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("there are not %d who wait", n)
			}
		}
	}
	waiting(1)
	cancel()
	if err := <-left; err == nil {
		t.Error("it has got an answer")
	}
	waiting(0)
	ask(t, "POST", url, `{"cost": 1}`).has(t, 429, `"remaining":0`)
}

// sends sends raw text, perhaps with the end of it, and returns what comes until the
// server closes.
func sends(t *testing.T, addr, text string, ends bool) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if ends {
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := io.ReadAll(c) // a reset ends it, too
	return string(got)
}

// What was not granted is never answered with 200, which proxies would believe.
func TestWhoHasSaidAllIsNotLetIn(t *testing.T) {
	a := newAdmission(t)
	url := serve(t, a)
	addr := strings.TrimPrefix(url, "http://")
	ask(t, "POST", url+"/v1/classes/slow/take", `{"cost": 5}`).has(t, 200)
	const waits = `{"cost": 1, "wait_ms": 30000}`
	head := func(length int) string {
		return fmt.Sprintf("POST /v1/classes/slow/take HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
	}
	if got := sends(t, addr, head(len(waits))+waits, true); strings.Contains(got, "200 OK") {
		t.Errorf("half-closed while it waits: %s", got)
	}
	if got := sends(t, addr, head(len(waits))+waits[:9], true); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("half a body: %s", got)
	}
	for _, query := range []string{"cost=3;x", "cost=100%"} {
		ask(t, "GET", url+"/v1/classes/api/authorize?"+query, "").has(t, 400, "query")
	}
}
