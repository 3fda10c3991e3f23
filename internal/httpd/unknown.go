package httpd

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// rest is the pattern of what a mux has no other for.
const rest = "/"

// AnswerUnknown returns a handler of what a mux serves, which answers all else in
// JSON, as {"errors": [...]}: 404, or 405 and Allow where another method is right.
// It redirects nothing, such as //a to /a: the second request of a POST may have
// lost its body. The mux may get more patterns later on.
//
// What is no request that a handler could have, net/http answers by itself, in plain
// text: a head that cannot be read (400), or that is too long (431).
func AnswerUnknown(mux *http.ServeMux) http.Handler {
	unknown := func(w http.ResponseWriter, r *http.Request) { answerUnknown(mux, w, r) }
	mux.HandleFunc(rest, unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := r.URL.EscapedPath(); given != clean(given) { // as a mux has it, which would redirect
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// answerUnknown says what there is in the place of what was asked for.
func answerUnknown(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	given := r.URL.EscapedPath()
	meant := clean(given)
	at := cmp.Or(r.URL.Path, r.Host) // the second is CONNECT's
	allowed := served(mux, r, meant)
	status, text := http.StatusNotFound, "there is nothing at "+at
	switch {
	case len(allowed) > 0 && meant != given:
		text += "; did you mean " + meant + "?"
	case len(allowed) > 0:
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		status, text = http.StatusMethodNotAllowed, r.Method+" "+at+": use "+list
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {text}}) // the client may be gone
}

// served returns the methods that a mux has a pattern for at an escaped path.
func served(mux *http.ServeMux, r *http.Request, escaped string) []string {
	return slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
		other := *r
		other.Method = method
		if at, err := url.Parse(escaped); err == nil {
			other.URL = at
		}
		_, pattern := mux.Handler(&other)
		return pattern == rest || pattern == ""
	})
}

// clean is an escaped path as http.ServeMux wants it.
func clean(escaped string) string {
	out := path.Clean("/" + escaped)
	if strings.HasSuffix(escaped, "/") && out != "/" {
		out += "/"
	}
	return out
}
