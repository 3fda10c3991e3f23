package metrics

import (
	"net/http"
	"net/netip"
	"time"

	"shaperd/internal/httpd"
)

// limits let a scrape each minute keep its connection.
var limits = httpd.Limits{Connections: 64, Read: 5 * time.Second, Write: 30 * time.Second, Idle: 90 * time.Second}

// Listen binds addr and serves nothing yet: connections wait in the kernel's
// queue for Run. The caller must call Run or Close.
func Listen(addr netip.AddrPort, h http.Handler) (*httpd.Server, error) {
	return httpd.Listen(addr, h, limits)
}
