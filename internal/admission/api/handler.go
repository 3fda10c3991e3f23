package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"shaperd/internal/admission"
	"shaperd/internal/httpd"
)

// Mount adds takes to a mux. Whoever may use it, may take.
func Mount(mux *http.ServeMux, a *admission.Admission) {
	mux.HandleFunc("POST /v1/classes/{class}/take", func(w http.ResponseWriter, r *http.Request) {
		asked, err := readTake(w, r)
		answer(w, r, a, asked, http.StatusTooManyRequests, err)
	})
}

// Authorize answers what proxies ask, and leaves the rest to next. It is not for a
// mux, which redirects a path such as a//b or a/../b: the path behind the prefix is
// a client's, and may be anything.
func Authorize(a *admission.Admission, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class, behind, ok := authorizes(r.URL)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		asked, denied, err := readAuthorize(r, class, behind)
		answer(w, r, a, asked, denied, err)
	})
}

// answer decides and says so; err is what is wrong with what was asked.
func answer(w http.ResponseWriter, r *http.Request, a *admission.Admission, asked admission.Request, denied int, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	d, err := a.Take(r.Context(), asked)
	switch {
	case err != nil && r.Context().Err() != nil:
		// Somebody may be there still, who has only said all: no answer would be 200.
		panic(http.ErrAbortHandler)
	case err != nil:
		fail(w, err)
	default:
		decided(w, &asked, &d, denied)
	}
}

// decided answers with a decision. Header names are as the draft writes them.
func decided(w http.ResponseWriter, asked *admission.Request, d *admission.Decision, denied int) {
	h := w.Header()
	unit := ""
	if d.Unit == admission.Bytes {
		unit = `;qu="content-bytes"`
	}
	limit, left, reset := number(d.Limit), number(d.Remaining), number(up(d.Reset, time.Second))
	h["RateLimit-Policy"] = []string{`"` + asked.Class + `";q=` + limit + `;w=` + number(max(int64(d.Window/time.Second), 1)) + unit}
	h["RateLimit"] = []string{`"` + asked.Class + `";r=` + left + `;t=` + reset}
	h["X-RateLimit-Limit"], h["X-RateLimit-Remaining"], h["X-RateLimit-Reset"] = []string{limit}, []string{left}, []string{reset}

	status := http.StatusOK
	body := make([]byte, 0, 256)
	body = append(body, '{')
	if !d.Granted {
		status = denied
		h["Retry-After"] = []string{number(max(up(d.RetryAfter, time.Second), 1))}
		ms := number(max(up(d.RetryAfter, time.Millisecond), 1))
		why := `has not enough now`
		if d.NoRoom {
			why = `has no room for another key, see admission.keys`
		}
		body = append(body, `"errors":["class \"`+asked.Class+`\" `+why+`: try again in `+ms+` ms"],"retry_after_ms":`+ms+`,`...)
	}
	body = append(body, `"granted":`...)
	body = strconv.AppendBool(body, d.Granted)
	body = append(body, `,"class":"`+asked.Class+`","unit":"`+d.Unit.String()+`","remaining":`+left+`,"limit":`+limit...)
	body = append(body, `,"reset_ms":`+number(up(d.Reset, time.Millisecond))...)
	if d.Alone {
		body = append(body, `,"alone":true`...)
	}
	write(w, status, append(body, '}', '\n'))
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// up is how many of unit d takes, rounded up.
func up(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// fail answers with what is wrong.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var (
		wrong    *requestError
		body     *httpd.BodyError
		unknown  *admission.UnknownClassError
		tooLarge *admission.TooLargeError
		outage   *admission.OutageError
	)
	out := struct {
		Errors     []string `json:"errors"`
		Limit      int64    `json:"limit,omitempty"`
		RetryAfter int64    `json:"retry_after_ms,omitempty"`
	}{Errors: []string{err.Error()}}
	switch {
	case errors.As(err, &wrong):
		status = wrong.status
	case errors.As(err, &body):
		status = body.Status
	case errors.As(err, &unknown):
		status = http.StatusNotFound
	case errors.As(err, &tooLarge):
		status, out.Limit = http.StatusUnprocessableEntity, tooLarge.Limit
	case errors.As(err, &outage):
		status, out.RetryAfter = http.StatusServiceUnavailable, max(up(outage.RetryAfter, time.Millisecond), 1)
		w.Header()["Retry-After"] = []string{number(max(up(outage.RetryAfter, time.Second), 1))}
	case errors.Is(err, admission.ErrRequest):
		status = http.StatusBadRequest
	}
	text, err := json.Marshal(out)
	if err != nil {
		text = []byte("{}")
	}
	write(w, status, append(text, '\n'))
}

var contentType = []string{"application/json"}

func write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"], h["Content-Length"] = contentType, []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
