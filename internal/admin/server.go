package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/httpd"
	"shaperd/internal/near"
)

const (
	maxBody      = 64 << 10
	defaultLimit = 100
	maxLimit     = 10000
	waiters      = 256 // that admission has at most, see admission.MaxWaiters
)

// OpenAPI describes the requests and their answers.
//
//go:embed openapi.yaml
var OpenAPI []byte

// A Backend does what is asked. Its methods may be called from any goroutine.
// An error of the kind *RefusedError is the asker's fault. What changes something
// is logged here, but for a reload: the backend logs it, whoever asked, see By.
type Backend interface {
	Status(ctx context.Context) (*Status, error)
	Sessions(ctx context.Context, q Query) (*Sessions, error)
	Set(ctx context.Context, r SetRequest) (*Changed, error)
	Reset(ctx context.Context, r ResetRequest) (*Changed, error)
	Reload(ctx context.Context) (*Reloaded, error)
	Drain(ctx context.Context, relay string) error
	SetLogLevel(ctx context.Context, level string) error
}

// A RefusedError is what is wrong with a request.
type RefusedError struct {
	Status int // of HTTP; 0 is 422
	Err    error
}

func (r *RefusedError) Error() string { return r.Err.Error() }
func (r *RefusedError) Unwrap() error { return r.Err }

// limits of the socket: a local client sends at once, and a reload may take a
// minute. Who asks often keeps its connection, until somebody needs its place.
// Those who wait for admission have places of their own.
var limits = httpd.Limits{Connections: 64 + waiters, Read: 2 * time.Second, Write: time.Minute, Idle: 10 * time.Second}

// NewServer makes a server of a listener, which it takes over. More adds what else
// is served there.
func NewServer(l net.Listener, b Backend, logger *slog.Logger, more func(*http.ServeMux)) *httpd.Server {
	mux := requests(b, logger)
	more(mux)
	s := httpd.New(l, httpd.AnswerUnknown(mux), limits)
	s.HTTP.ConnContext = withPeer
	return s
}

// requests has a mux carry out what is asked.
func requests(b Backend, logger *slog.Logger) *http.ServeMux {
	mux := http.NewServeMux()
	read := func(pattern string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := f(r)
			reply(w, answer, err)
		})
	}
	change := func(pattern string, f func(*http.Request) (answer, asked any, err error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			answer, asked, err := f(r)
			log := logger.With("request", r.Method+" "+r.URL.Path, "by", By(r.Context()))
			if asked != nil {
				log = log.With("asked", asked)
			}
			if err != nil {
				log.Warn("control: refused", "error", strings.Join(texts(err), "; "))
			} else {
				log.Info("control: done")
			}
			reply(w, answer, err)
		})
	}
	status := func(r *http.Request) (*Status, error) { return b.Status(r.Context()) }
	read("/v1/status", func(r *http.Request) (any, error) { return status(r) })
	read("/v1/links", func(r *http.Request) (any, error) {
		s, err := status(r)
		if err != nil {
			return nil, err
		}
		return s.Links, nil
	})
	read("/v1/classes/{class}", func(r *http.Request) (any, error) {
		s, err := status(r)
		if err != nil {
			return nil, err
		}
		return classOf(s, r.PathValue("class"))
	})
	read("/v1/sessions", func(r *http.Request) (any, error) {
		q, err := query(r)
		if err != nil {
			return nil, err
		}
		return b.Sessions(r.Context(), q)
	})
	read("/v1/log-level", func(r *http.Request) (any, error) {
		s, err := status(r)
		if err != nil {
			return nil, err
		}
		return LogLevel{s.LogLevel}, nil
	})
	change("POST /v1/set", func(r *http.Request) (any, any, error) {
		return asked(r, b.Set)
	})
	change("POST /v1/reset", func(r *http.Request) (any, any, error) {
		return asked(r, b.Reset)
	})
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, r *http.Request) {
		answer, err := b.Reload(r.Context())
		reply(w, answer, err)
	})
	change("POST /v1/relays/{relay}/drain", func(r *http.Request) (any, any, error) {
		return struct{}{}, nil, b.Drain(r.Context(), r.PathValue("relay"))
	})
	change("PUT /v1/log-level", func(r *http.Request) (any, any, error) {
		return asked(r, func(ctx context.Context, l LogLevel) (LogLevel, error) { return l, b.SetLogLevel(ctx, l.Level) })
	})
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(OpenAPI) // the client may be gone
	})
	return mux
}

// asked has do carry out the request in a body.
func asked[Request, Answer any](r *http.Request, do func(context.Context, Request) (Answer, error)) (any, any, error) {
	var body Request
	if err := httpd.ReadBody(r, &body); err != nil {
		wrong, _ := errors.AsType[*httpd.BodyError](err)
		return nil, nil, &RefusedError{wrong.Status, wrong}
	}
	answer, err := do(r.Context(), body)
	return answer, body, err
}

// classOf returns a class on each link that has it, by the link's name.
func classOf(s *Status, name string) (any, error) {
	found := map[string]Class{}
	var names []string
	for _, l := range s.Links {
		for _, c := range l.Classes {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
			if c.Name == name {
				found[l.Name] = c
			}
		}
	}
	if len(found) == 0 {
		return nil, &RefusedError{http.StatusNotFound, fmt.Errorf("no link has a class %q%s", name, near.Hint(name, names))}
	}
	return found, nil
}

func query(r *http.Request) (q Query, err error) {
	v := r.URL.Query()
	q = Query{Relay: v.Get("relay"), Class: v.Get("class"), Client: v.Get("client"), Limit: defaultLimit}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > maxLimit {
			return q, &RefusedError{http.StatusBadRequest, errors.New("limit " + strconv.Quote(text) + ": write a number from 1 to " + strconv.Itoa(maxLimit))}
		}
	}
	return q, nil
}

func reply(w http.ResponseWriter, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		status, answer = statusOf(err), Failure{texts(err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(answer) // the client may be gone
}

func statusOf(err error) int {
	refusal, ok := errors.AsType[*RefusedError](err)
	switch {
	case !ok:
		return http.StatusInternalServerError
	case refusal.Status == 0:
		return http.StatusUnprocessableEntity
	}
	return refusal.Status
}

// texts are the single errors that err joins.
func texts(err error) (all []string) {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, texts(e)...)
		}
		return all
	}
	return []string{err.Error()}
}
