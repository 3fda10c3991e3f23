package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/admission"
	"shaperd/internal/httpd"
	"shaperd/internal/near"
)

// maxBody holds any request: the longest is a key of 256 bytes, each escaped.
const maxBody = 4 << 10

// A takeRequest is the body of a take.
type takeRequest struct {
	Bytes *int64 `json:"bytes"`
	Cost  *int64 `json:"cost"`
	Key   string `json:"key"`
	Wait  int64  `json:"wait_ms"`
}

// A requestError is what is wrong with a request, and the status that says so.
type requestError struct {
	status int
	text   string
}

func (e *requestError) Error() string { return e.text }

func wrongf(format string, args ...any) error {
	return &requestError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// readTake reads a take from its body.
func readTake(w http.ResponseWriter, r *http.Request) (admission.Request, error) {
	var t takeRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := httpd.ReadBody(r, &t); err != nil {
		return admission.Request{}, err
	}
	out := admission.Request{Class: r.PathValue("class"), Key: t.Key, Wait: time.Duration(t.Wait) * time.Millisecond}
	switch {
	case t.Wait < 0 || t.Wait > admission.MaxWait.Milliseconds():
		return out, wrongf("wait_ms %d: give 0 to %d", t.Wait, admission.MaxWait.Milliseconds())
	case t.Bytes != nil && t.Cost != nil:
		return out, wrongf("both bytes and cost: give what the class counts")
	case t.Bytes != nil:
		out.Cost, out.Unit = *t.Bytes, admission.Bytes
	case t.Cost != nil:
		out.Cost, out.Unit = *t.Cost, admission.Requests
	default:
		return out, wrongf(`neither bytes nor cost: give what the class counts, such as {"bytes": 1500}`)
	}
	return out, nil
}

// KeyHeader has the key of an authorize.
const KeyHeader = "X-Shaperd-Key"

// authorizes tells whether a path is /v1/classes/{class}/authorize, and whether
// there is a path of another request behind it. It is taken as it was sent: a slash
// that is written %2F ends nothing.
func authorizes(u *url.URL) (class string, behind, ok bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/v1/classes/")
	if !ok {
		return "", false, false
	}
	class, rest, _ = strings.Cut(rest, "/")
	what, _, behind := strings.Cut(rest, "/")
	class, err := url.PathUnescape(class)
	return class, behind, err == nil && what == "authorize"
}

// queryKeys are those that an authorize may have.
var queryKeys = []string{"bytes", "cost", "denied", "key"}

// readAuthorize reads an authorize from its query and headers: the body belongs to
// the request that a proxy asks for. So does the query, where the path of that
// request is behind: who sent it may not say whose bucket it is or what it costs.
// Denied is the status of a refusal.
func readAuthorize(r *http.Request, class string, behind bool) (out admission.Request, denied int, err error) {
	var q url.Values
	if !behind {
		if q, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return out, 0, wrongf("query %q: %v", r.URL.RawQuery, err)
		}
		for _, name := range slices.Sorted(maps.Keys(q)) {
			if !slices.Contains(queryKeys, name) {
				return out, 0, wrongf("query: unknown %q%s", name, near.Hint(name, queryKeys))
			}
		}
	}
	out = admission.Request{Class: class, Key: r.Header.Get(KeyHeader), Cost: 1, Unit: admission.Requests}
	if out.Key == "" {
		out.Key = q.Get("key")
	}
	for name, unit := range map[string]admission.Unit{"bytes": admission.Bytes, "cost": admission.Requests} {
		if text := q.Get(name); text != "" {
			if out.Cost, err = strconv.ParseInt(text, 10, 64); err != nil {
				return out, 0, wrongf("%s=%q: a whole number is needed", name, text)
			}
			out.Unit = unit
		}
	}
	if q.Has("bytes") && q.Has("cost") {
		return out, 0, wrongf("both bytes and cost: give what the class counts")
	}
	switch text := q.Get("denied"); text {
	case "", "429":
		return out, http.StatusTooManyRequests, nil
	case "403":
		return out, http.StatusForbidden, nil
	default:
		return out, 0, wrongf("denied=%q: give 403, or leave it out for 429", text)
	}
}
