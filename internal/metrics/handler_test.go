package metrics

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestProbesSayWhatIsWrongInALine(t *testing.T) {
	for _, path := range []string{"/healthz", "/readyz"} {
		var wrong error
		answer := func(context.Context) error { return wrong }
		health := healthy
		if path == "/healthz" {
			health.Alive = answer
		} else {
			health.Ready = answer
		}
		base := serve(t, New(Build{}, everything).Handler(health))
		for _, tt := range []struct {
			wrong  error
			status int
			want   string
		}{
			{nil, http.StatusOK, "ok\n"},
			{errors.New("draining\nslowly"), http.StatusServiceUnavailable, "draining slowly\n"},
		} {
			wrong = tt.wrong
			if got := get(t, base, path, tt.status); got != tt.want {
				t.Errorf("GET %s = %q, want %q", path, got, tt.want)
			}
		}
	}
}

func TestIndexNamesWhatIsServed(t *testing.T) {
	base := serve(t, New(Build{}, everything).Handler(healthy))
	index := get(t, base, "/", http.StatusOK)
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if !strings.Contains(index, `href="`+path+`"`) {
			t.Errorf("index does not link to %s", path)
		}
		get(t, base, path, http.StatusOK)
	}
	get(t, base, "/other", http.StatusNotFound)
}

func TestAnswersAreForReadingOnly(t *testing.T) {
	base := serve(t, New(Build{}, everything).Handler(healthy))
	for _, path := range []string{"/", "/metrics", "/healthz", "/none"} {
		resp, err := http.Head(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s of %s is %q, want %q", name, path, got, want)
			}
		}
		resp, err = http.Post(base+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: status %d", path, resp.StatusCode)
		}
	}
}
