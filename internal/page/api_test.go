package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"shaperd/internal/admin"
)

// get asks a server on a loopback address, with headers as pairs; Host is one.
func get(t *testing.T, url, method string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func serve(t *testing.T, status func(context.Context) (*admin.Status, error)) string {
	t.Helper()
	server := httptest.NewServer(Handler(status))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWhoMayRead(t *testing.T) {
	base := serve(t, (&sample{}).status)
	for _, tt := range []struct {
		name, method, path string
		status             int
		headers            []string
	}{
		{"no browser", "GET", "/api/status", 200, nil},
		{"the page", "GET", "/api/status", 200, []string{"Sec-Fetch-Site", "same-origin"}},
		{"typed by a user", "GET", "/api/status", 200, []string{"Sec-Fetch-Site", "none"}},
		{"another site", "GET", "/api/status", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another port of the host", "GET", "/api/status", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{"a name led here", "GET", "/api/status", 403, []string{"Host", "evil.example:9477"}},
		{"localhost", "GET", "/api/status", 200, []string{"Host", "LOCALHOST:9477"}},
		{"below localhost", "GET", "/api/status", 200, []string{"Host", "shaperd.localhost"}},
		{"IPv6", "GET", "/api/status", 200, []string{"Host", "[::1]:9477"}},
		{"IPv6 without a port", "GET", "/api/status", 200, []string{"Host", "[::1]"}},
		{"a change", "POST", "/api/status", 405, nil},
		{"a change of the page", "PUT", "/", 405, nil},
		{"another file", "GET", "/page/doc.go", 404, nil},
		{"a folder", "GET", "/page/", 404, nil},
		{"out of the folder", "GET", "/page/%2e%2e/page.go", 404, nil},
		{"the page", "GET", "/", 200, nil},
		{"a licence", "GET", "/page/uplot.LICENSE", 200, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := get(t, base+tt.path, tt.method, tt.headers...)
			if answer.StatusCode != tt.status {
				t.Errorf("status %d, want %d", answer.StatusCode, tt.status)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'self'; ", "X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := answer.Header.Get(name); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if got := answer.Header.Get("Cache-Control"); tt.path == "/api/status" && tt.method == "GET" && got != "no-store" {
				t.Errorf("Cache-Control: %s", got)
			}
		})
	}
}

func TestUnchangedFilesAreNotSentAgain(t *testing.T) {
	base := serve(t, (&sample{}).status)
	first := get(t, base+"/page/uplot.min.js", "GET")
	if got := first.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
		t.Errorf("Content-Type: %s", got)
	}
	if again := get(t, base+"/page/uplot.min.js", "GET", "If-None-Match", first.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d, want 304", again.StatusCode)
	}
}

func TestOnlyWhatEveryoneMayReadIsSent(t *testing.T) {
	base := serve(t, (&sample{change: func(s *admin.Status) {
		s.Reloads.LastError = []string{"line 3: secret"}
	}}).status)
	var got admin.Status
	if err := json.NewDecoder(get(t, base+"/api/status", "GET").Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.PID != 0 || got.LogLevel != "" || len(got.Relays[0].Listen) != 0 || len(got.Reloads.LastError) != 1 || strings.Contains(got.Reloads.LastError[0], "secret") {
		t.Errorf("too much is told: %+v", got)
	}
	if len(got.Links) != 3 || len(got.Overrides) != 1 || got.Policy == "" || got.Relays[0].Name != "office" {
		t.Errorf("too little is told: %+v", got)
	}
}

func TestManyReadersCostOne(t *testing.T) {
	s := &sample{}
	base := serve(t, s.status)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if answer := get(t, base+"/api/status", "GET"); answer.StatusCode != http.StatusOK {
				t.Errorf("status %d", answer.StatusCode)
			}
		})
	}
	all.Wait()
	if n := s.asked.Load(); n > 10 {
		t.Errorf("20 readers at once asked the daemon %d times", n)
	}
}

func TestADaemonWithoutAnAnswer(t *testing.T) {
	base := serve(t, func(context.Context) (*admin.Status, error) { return nil, errors.New("secret") })
	if answer := get(t, base+"/api/status", "GET"); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", answer.StatusCode)
	}
}
