package metrics

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many scrapes may run at once; others get status 503.
const maxScrapes = 8

// Health says how the daemon is. Each function returns nil when all is well,
// else an error that is the one line of the answer. They may be called from any
// goroutine, and must return when the context is done.
type Health struct {
	Alive func(context.Context) error // what runs responds
	Ready func(context.Context) error // everything serves, and goes on to
}

const index = `<!doctype html>
<title>shaperd</title>
<h1>shaperd</h1>
<p><a href="/metrics">/metrics</a> for Prometheus</p>
<p><a href="/healthz">/healthz</a> is 200 while the daemon responds</p>
<p><a href="/readyz">/readyz</a> is 200 while everything serves</p>
`

// Handler serves /metrics, /healthz (200 while alive, else 503), /readyz (200
// while ready, else 503), and an index of them. Every answer has headers that
// keep browsers from doing anything else with it.
func (m *Metrics) Handler(health Health) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, MaxRequestsInFlight: maxScrapes,
	}))
	mux.Handle("/healthz", probe(health.Alive))
	mux.Handle("/readyz", probe(health.Ready))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, index)
	})
	return secured(mux)
}

// probe answers with what check says.
func probe(check func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := check(r.Context()); err != nil {
			http.Error(w, strings.ReplaceAll(err.Error(), "\n", " "), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
}

// secured serves with h what only reads, under headers that forbid browsers to
// guess types, to frame the page, to load anything and to pass on its address.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}
