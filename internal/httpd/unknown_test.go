package httpd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhatIsUnknownIsAnsweredInJSON(t *testing.T) {
	mux := http.NewServeMux()
	AnswerUnknown(mux)
	served := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	mux.HandleFunc("GET /level", served)
	mux.HandleFunc("PUT /level", served)
	mux.HandleFunc("POST /classes/{class}/take", served)
	mux.HandleFunc("/any", served)
	for _, tt := range []struct {
		method, path string
		status       int
		allow, body  string
	}{
		{"GET", "/level", 204, "", ""},
		{"HEAD", "/level", 204, "", ""},
		{"PROPFIND", "/any", 204, "", ""},
		{"DELETE", "/level", 405, "GET, HEAD, PUT", `{"errors":["DELETE /level: use GET, HEAD, PUT"]}`},
		{"GET", "/classes/a/take", 405, "POST", `{"errors":["GET /classes/a/take: use POST"]}`},
		{"GET", "/", 404, "", `{"errors":["there is nothing at /"]}`},
		{"POST", "/classes/a/taek", 404, "", `{"errors":["there is nothing at /classes/a/taek"]}`},
		{"GET", "/%22%0A", 404, "", `{"errors":["there is nothing at /\"\n"]}`},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		body := strings.TrimSpace(w.Body.String())
		if w.Code != tt.status || w.Header().Get("Allow") != tt.allow || body != tt.body || body != "" && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %v %s, want %+v", tt.method, tt.path, w.Code, w.Header(), body, tt)
		}
	}
}
