package metrics

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
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

// A Page is served beside what Handler serves. One for "/" replaces the index.
type Page struct {
	Path    string // as of http.ServeMux; all below it when it ends in a slash
	About   string // for the index
	Handler http.Handler
}

// Handler serves /metrics, /healthz (200 while alive, else 503), /readyz (200
// while ready, else 503), the pages, and an index of them all. Every answer
// has headers that keep browsers from doing anything else with it; a page may
// set others.
func (m *Metrics) Handler(health Health, pages ...Page) http.Handler {
	pages = append([]Page{
		{"/metrics", "for Prometheus", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
			Registry: m.registry, MaxRequestsInFlight: maxScrapes,
		})},
		{"/healthz", "is 200 while the daemon responds", probe(health.Alive)},
		{"/readyz", "is 200 while everything serves", probe(health.Ready)},
	}, pages...)
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.Handle(p.Path, p.Handler)
	}
	if !slices.ContainsFunc(pages, func(p Page) bool { return p.Path == "/" }) {
		mux.Handle("/{$}", index(pages))
	}
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

func index(pages []Page) http.Handler {
	var text strings.Builder
	text.WriteString("<!doctype html>\n<title>shaperd</title>\n<h1>shaperd</h1>\n")
	for _, p := range pages {
		path := html.EscapeString(p.Path)
		fmt.Fprintf(&text, "<p><a href=\"%s\">%s</a> %s</p>\n", path, path, html.EscapeString(p.About))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, text.String())
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
