package daemon

import (
	"net/http"

	"shaperd/internal/page"
)

// web is what the metrics' address serves: metrics, and the page where the
// policy in force has it. Each request asks anew, so that a reload switches
// the page without moving the address.
func (d *daemon) web() http.Handler {
	scrape, live := d.metrics.Handler(d.health()), page.Handler(control{d}.Status)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v := d.view.Load(); v != nil && v.policy.Page && page.Serves(r.URL.Path) {
			live.ServeHTTP(w, r)
			return
		}
		scrape.ServeHTTP(w, r)
	})
}
