package httpd

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestWhatIsUnknownIsAnsweredInJSON(t *testing.T) {
	mux := http.NewServeMux()
	addr := serveTest(t, 4, AnswerUnknown(mux).ServeHTTP)
	served := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Class", r.PathValue("class"))
		w.WriteHeader(http.StatusNoContent)
	}
	mux.HandleFunc("GET /level", served)
	mux.HandleFunc("PUT /level", served)
	mux.HandleFunc("POST /classes/{class}/take", served)
	mux.HandleFunc("/any", served)
	for _, tt := range []struct {
		asked       string
		status      int
		allow, body string
	}{
		{"GET /level", 204, "", ""},
		{"HEAD /level", 204, "", ""},
		{"PROPFIND /any", 204, "", ""},
		{"POST /classes/a%2F%2Fb/take", 204, "", ""},
		{"POST /classes/%2E%2e/take", 204, "", ""},
		{"GET http://x/level", 204, "", ""}, // as of a proxy
		{"DELETE /level", 405, "GET, HEAD, PUT", `{"errors":["DELETE /level: use GET, HEAD, PUT"]}`},
		{"CONNECT /level", 405, "GET, HEAD, PUT", `{"errors":["CONNECT /level: use GET, HEAD, PUT"]}`},
		{"GET /classes/a/take", 405, "POST", `{"errors":["GET /classes/a/take: use POST"]}`},
		{"GET /", 404, "", `{"errors":["there is nothing at /"]}`},
		{"GET /level/", 404, "", `{"errors":["there is nothing at /level/"]}`},
		{"POST /classes/a/taek", 404, "", `{"errors":["there is nothing at /classes/a/taek"]}`},
		{"GET /%22%0A", 404, "", `{"errors":["there is nothing at /\"\n"]}`},
		{"GET //level", 404, "", `{"errors":["there is nothing at //level; did you mean /level?"]}`},
		{"POST //classes/a/take", 404, "", `{"errors":["there is nothing at //classes/a/take; did you mean /classes/a/take?"]}`},
		{"POST /classes//take", 404, "", `{"errors":["there is nothing at /classes//take"]}`},
		{"GET /a/../level", 404, "", `{"errors":["there is nothing at /a/../level; did you mean /level?"]}`},
		{"GET /./", 404, "", `{"errors":["there is nothing at /./"]}`},
		{"GET http://x", 404, "", `{"errors":["there is nothing at x"]}`},
		{"CONNECT example.org:443", 404, "", `{"errors":["there is nothing at example.org:443"]}`},
		{"OPTIONS *", 404, "", `{"errors":["there is nothing at *"]}`}, // which net/http would answer by itself
		{"GET *", 404, "", `{"errors":["there is nothing at *"]}`},
	} {
		c := dialTest(t, addr)
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", tt.asked)
		got, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: strings.Fields(tt.asked)[0]})
		if err != nil {
			t.Errorf("%s: %v", tt.asked, err)
			continue
		}
		body, err := io.ReadAll(got.Body)
		c.Close()
		if got.StatusCode != tt.status || err != nil || got.Header.Get("Allow") != tt.allow || strings.TrimSpace(string(body)) != tt.body ||
			tt.body != "" && got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s %v, want %+v", tt.asked, got.StatusCode, got.Header, body, err, tt)
		}
	}
}
