package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/internal/admin"
)

func TestPageShowsTheDaemonUntilItIsSwitchedOff(t *testing.T) {
	p, policy, upstream, addr, metrics := serveEcho(t)
	dial(t, addr).says("hello")
	if got := scrape(t, metrics, "/", http.StatusOK); !strings.Contains(got, `src="page/page.js"`) {
		t.Errorf("no page at /:\n%s", got)
	}
	scrape(t, metrics, "/page/page.js", http.StatusOK)
	scrape(t, metrics, "/metrics", http.StatusOK)
	var got admin.Status
	if err := json.Unmarshal([]byte(scrape(t, metrics, "/api/status", http.StatusOK)), &got); err != nil {
		t.Fatal(err)
	}
	if got.State != "ready" || got.Policy != policy || len(got.Links) != 2 || got.Links[0].Classes[0].Sent != 6 {
		t.Errorf("status %+v, want two links, and 6 bytes sent", got)
	}
	without := strings.Replace(relay("web", upstream, "100mbit"), `"127.0.0.1:0"}`, `"127.0.0.1:0", page: off}`, 1)
	write(t, policy, without)
	p.signal(unix.SIGHUP)
	p.await("reloaded")
	if got := scrape(t, metrics, "/", http.StatusOK); strings.Contains(got, "page.js") || !strings.Contains(got, "/healthz") {
		t.Errorf("at / is not the index alone:\n%s", got)
	}
	scrape(t, metrics, "/page/page.js", http.StatusNotFound)
	scrape(t, metrics, "/api/status", http.StatusNotFound)
}
