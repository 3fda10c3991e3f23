package page

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"shaperd/internal/admin"
)

// fresh is how long an answer serves all who ask: many open pages cost the
// daemon no more than one or two.
const fresh = 500 * time.Millisecond

// An api answers with the status as JSON.
type api struct {
	status func(context.Context) (*admin.Status, error)
	turn   chan struct{} // who holds it may use what follows
	body   []byte
	asked  time.Time
}

func newAPI(status func(context.Context) (*admin.Status, error)) *api {
	return &api{status: status, turn: make(chan struct{}, 1)}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if why := refusal(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	body, err := a.answer(r.Context())
	if err != nil {
		http.Error(w, "the daemon has no answer: see its log", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that has left misses nothing
}

// answer returns the status as JSON, at most as old as fresh.
func (a *api) answer(ctx context.Context) ([]byte, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.body != nil && time.Since(a.asked) < fresh {
		return a.body, nil
	}
	asked := time.Now()
	status, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(public(status))
	if err != nil {
		return nil, err
	}
	a.body, a.asked = body, asked
	return body, nil
}

// refusal says why a request is not answered, "" if it is. Both checks are of
// browsers that other sites misuse: whoever asks by himself can claim anything,
// and gets what the metrics tell, too.
func refusal(r *http.Request) string {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return "another site may not read this"
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && local.IP.IsLoopback() && !loopback(r.Host) {
		return "on a loopback address ask for an address or localhost: another name may be another site's"
	}
	return ""
}

// loopback reports whether a Host header fits a server on a loopback address:
// a name that a site has lead here (DNS rebinding) does not.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	host = strings.ToLower(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
