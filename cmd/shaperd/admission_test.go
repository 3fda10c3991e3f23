package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"shaperd/internal/store/storetest"
)

const admitting = `
classes:
  - {name: api, unit: requests, rate: 2/h, burst: 3}
  - {name: often, unit: requests, rate: 50/s, burst: 1}
  - {name: backup, match: {port: 873}, rate: 80mbit, burst: 64kb}
  - {name: rest, default: true, rate: 10mbit}
relays:
  - {name: web, listen: "127.0.0.1:0", upstream: "127.0.0.1:1", upload: 100mbit, download: 100mbit}
`

func TestTakeRunsTheCommandOnceAdmitted(t *testing.T) {
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	p.await("msg=ready")
	take := func(code int, args ...string) string {
		t.Helper()
		return p.asks(code, append([]string{"take", "--timeout", "0s"}, args...)...)
	}
	for range 3 {
		take(0, "api", "--requests", "1")
	}
	if got := take(75, "api", "--requests", "1"); !strings.Contains(got, `not admitted in time: class "api": refused for now: try again in `) {
		t.Errorf("take prints %q", got)
	}
	take(0, "api", "--requests", "1", "--key", "customer-17")
	if got := take(1, "api", "--requests", "4"); !strings.Contains(got, "more than its burst of 3") {
		t.Errorf("take prints %q", got)
	}
	if got := take(1, "apo", "--requests", "1"); !strings.Contains(got, "did you mean api?") {
		t.Errorf("take prints %q", got)
	}
	for range 4 { // the second waits for the first
		p.asks(0, "take", "often", "--requests", "1")
	}
	out, err := exec.Command(program, "take", "backup", "--bytes", "64kb", "--socket", p.socket, "--", "sh", "-c", "echo $0 $1; exit 7", "it", "runs").Output()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 7 || string(out) != "it runs\n" { //nolint:errorlint // it is not wrapped
		t.Errorf("the command has printed %q, and returned %v", out, err)
	}
	for _, args := range []string{"take api", "take --requests 1", "take api --requests 1 --bytes 1kb", "take api --requests 0", "take api --bytes 1mbps", "take api --requests 1 command"} {
		output(t, 2, strings.Fields(args)...)
	}
	got := p.asks(0, "status") // 64kb of the policy are 64kib, which can be typed too
	if !regexp.MustCompile(`CLASS +RATE +BURST +OF +GRANTED +REFUSED +TOO LARGE +KEYS\n  api +2/h +3 +this host +4 +\d+ +1 +1\n(.*\n)* +backup +80mbit +64kib +this host +1 `).MatchString(got) {
		t.Errorf("status says nothing of it:\n%s", got)
	}
}

func TestPaceCopiesEveryByte(t *testing.T) {
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	p.await("msg=ready")
	want := strings.Repeat("0123456789abcde\n", 50_000)
	pace := exec.Command(program, "pace", "backup", "--socket", p.socket)
	pace.Stdin = strings.NewReader(want)
	if got, err := pace.CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%d of %d bytes came through: %v", len(got), len(want), err)
	}
	if got := p.asks(1, "pace", "bakcup"); !strings.Contains(got, "did you mean backup?") {
		t.Errorf("pace prints %q", got)
	}
}

// The listener of a policy: a token that a reload changes, an address that it moves.
func TestAdmissionListener(t *testing.T) {
	token := file(t, "token", "0123456789abcdef\n")
	listens := admitting + "admission: {listen: '127.0.0.1:0', token_file: " + token + "}\n"
	policy := file(t, "shaperd.yaml", listens)
	p := start(t, nil, "run", "--config", policy)
	url := "http://" + p.listen("programs may ask for admission")
	p.await("msg=ready")
	take := func(code int, url, token string) string {
		t.Helper()
		return output(t, code, "take", "often", "--requests", "1", "--url", url, "--token-file", file(t, "token", token))
	}
	take(0, url, "0123456789abcdef")
	if got := take(1, url, "another"); !strings.Contains(got, "no token, or a wrong one") {
		t.Errorf("with a wrong token: %s", got)
	}
	write(t, token, "fedcba9876543210")
	p.asks(0, "reload")
	take(1, url, "0123456789abcdef")
	take(0, url, "fedcba9876543210")
	write(t, token, "short")
	if got := p.asks(1, "reload"); !strings.Contains(got, "it has 5 characters") {
		t.Errorf("reload prints %q", got)
	}
	p.asks(0, "set", "backup", "--rate", "40mbit") // which reads no file
	take(0, url, "fedcba9876543210")
	write(t, token, "fedcba9876543210")
	write(t, policy, admitting)
	p.asks(0, "reload")
	awaitRefused(t, strings.TrimPrefix(url, "http://"))
	write(t, policy, listens)
	p.asks(0, "reload")
	take(0, "http://"+p.listen("programs may ask for admission"), "fedcba9876543210")
}

// The example of the docs, with the addresses of the test: each client address has
// three requests, and then 429.
func TestNginxAsksBeforeItPassesARequestOn(t *testing.T) {
	token := file(t, "token", "0123456789abcdef")
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting+"admission: {listen: '127.0.0.1:0', token_file: "+token+"}\n"))
	shaperd := p.listen("programs may ask for admission")
	p.await("msg=ready")
	served := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		fmt.Fprint(w, "served ", r.URL.Path)
	}))
	defer service.Close()
	example, err := os.ReadFile("../../docs/admission/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	text := string(example)
	for old, now := range map[string]string{
		"127.0.0.1:9478": shaperd, "listen 8080": "listen " + addr, "http://127.0.0.1:8081": service.URL,
		"Bearer TOKEN": "Bearer 0123456789abcdef",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the example has no %q", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s}
`, dir, text))
	nginx := exec.Command("nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	var said strings.Builder
	nginx.Stderr = &said
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = nginx.Process.Kill()
		_ = nginx.Wait()
		if t.Failed() {
			t.Logf("nginx says:\n%s", said.String())
		}
	}()
	storetest.Eventually(t, "nginx", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	get := func(method string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/shop?item=7", strings.NewReader("a body that shaperd is not sent"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, _ := io.ReadAll(got.Body)
		return got.StatusCode, got.Header, string(text)
	}
	for _, method := range []string{"GET", "POST", "PUT"} {
		if status, _, body := get(method); status != 200 || body != "served /shop" {
			t.Errorf("%s: %d %s", method, status, body)
		}
	}
	status, header, _ := get("GET")
	if status != 429 || header.Get("Retry-After") == "" || header.Get("RateLimit") != `"api";r=0;t=5400` && !strings.HasPrefix(header.Get("RateLimit"), `"api";r=0;t=`) ||
		!strings.HasPrefix(header.Get("RateLimit-Policy"), `"api";q=3;w=5400`) || served != 3 {
		t.Errorf("the fourth: %d %v, and %d were served", status, header, served)
	}
	write(t, token, "another-0123456789abcdef")
	p.asks(0, "reload")
	if status, header, _ := get("GET"); status != 503 || header.Get("Retry-After") != "1" || header.Get("WWW-Authenticate") != "" || served != 3 {
		t.Errorf("with another token: %d %v", status, header)
	}
	p.signal(9)
	p.exit()
	if status, _, body := get("GET"); status != 200 || body != "served /shop" {
		t.Errorf("without shaperd: %d %s", status, body)
	}
}
