package httpd

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// AnswerUnknown has a mux answer what none of its patterns is for in JSON, as
// {"errors": [...]}: 404, or 405 and Allow where another method is right. The mux
// may get more patterns later on.
func AnswerUnknown(mux *http.ServeMux) {
	const rest = "/"
	mux.HandleFunc(rest, func(w http.ResponseWriter, r *http.Request) {
		allowed := slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
			other := *r
			other.Method = method
			_, pattern := mux.Handler(&other)
			return pattern == rest
		})
		status, text := http.StatusNotFound, "there is nothing at "+r.URL.Path
		if len(allowed) > 0 {
			list := strings.Join(allowed, ", ")
			w.Header().Set("Allow", list)
			status, text = http.StatusMethodNotAllowed, r.Method+" "+r.URL.Path+": use "+list
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {text}}) // the client may be gone
	})
}
