package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"shaperd/internal/admission"
	"shaperd/internal/httpd"
	"shaperd/internal/secret"
)

// leastToken is how long a token is at least: shorter ones can be guessed.
const leastToken = 16

// limits of the listener: a client sends at once, waits at most admission.MaxWait,
// and keeps its connection.
var limits = httpd.Limits{Connections: 1024, Read: 5 * time.Second, Write: admission.MaxWait + 10*time.Second, Idle: time.Minute}

// A Token is what clients of a listener have to show. It may be changed while it
// is in use.
type Token struct {
	sum atomic.Pointer[[sha256.Size]byte]
}

// ReadToken reads a token from a file, which has it in its only line.
func ReadToken(path string) (text string, err error) {
	b, err := secret.Read(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	text = string(bytes.TrimSpace(b))
	switch {
	case len(text) < leastToken:
		return "", fmt.Errorf("token %s: it has %d characters, and needs %d at least: write one with \"openssl rand -hex 32\"", path, len(text), leastToken)
	case strings.ContainsAny(text, " \t\r\n"):
		return "", fmt.Errorf("token %s: it has to be one word", path)
	}
	return text, nil
}

// Set has clients show another token from now on.
func (t *Token) Set(text string) {
	sum := sha256.Sum256([]byte(text))
	t.sum.Store(&sum)
}

// shown reports whether a request shows the token. It takes as long for every wrong one.
func (t *Token) shown(r *http.Request) bool {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	ok := strings.EqualFold(scheme, "Bearer")
	sum, want := sha256.Sum256([]byte(text)), t.sum.Load()
	return ok && want != nil && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// Listen makes a server that asks for the token. The caller must call its Run or Close.
func Listen(address netip.AddrPort, t *Token, a *admission.Admission) (*httpd.Server, error) {
	mux := http.NewServeMux()
	Mount(mux, a)
	return httpd.Listen(address, guarded(t, Authorize(a, httpd.AnswerUnknown(mux))), limits)
}

var errToken = &requestError{http.StatusUnauthorized, `no token, or a wrong one: send "Authorization: Bearer" with that of admission.token_file`}

func guarded(t *Token, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.shown(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="shaperd"`)
			if r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // nobody waits for the body of a stranger
			}
			fail(w, errToken)
			return
		}
		next.ServeHTTP(w, r)
	})
}
