package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"

	"shaperd/internal/admin"
)

//go:embed assets
var files embed.FS

// policy lets the browser load what is served here and nothing else. Charts
// set styles from JavaScript, which style-src does not forbid.
var policy = strings.Join([]string{
	"default-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "object-src 'none'",
	"require-trusted-types-for 'script'", "trusted-types 'none'",
}, "; ")

// types are those of the files that a browser asks for; the host's own table
// of types may say otherwise.
var types = map[string]string{
	".html":    "text/html; charset=utf-8",
	".css":     "text/css; charset=utf-8",
	".js":      "text/javascript; charset=utf-8",
	".svg":     "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

// Handler serves the page at /, its files below /page/ and what status returns
// at /api/status. It may call status from any goroutine, but from one at a time.
func Handler(status func(context.Context) (*admin.Status, error)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", asset("index.html"))
	entries, _ := files.ReadDir("assets") // it is in the program
	for _, e := range entries {
		if e.Name() != "index.html" {
			mux.Handle("GET /page/"+e.Name(), asset(e.Name()))
		}
	}
	mux.Handle("GET /api/status", newAPI(status))
	return guarded(mux)
}

// Serves reports whether a path is one of Handler's.
func Serves(path string) bool {
	return path == "/" || path == "/api/status" || strings.HasPrefix(path, "/page/")
}

// asset serves one file. Browsers ask each time whether it has changed: after
// an update of the program they must not run the old script.
func asset(name string) http.Handler {
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is in the program
	}
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", types[path.Ext(name)])
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
	})
}

// guarded tells browsers what may be done with the answers of next.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // of browsers that do not know frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
