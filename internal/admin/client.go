package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// A Client asks a daemon. The zero value is of no use; see NewClient. Its
// methods block until the daemon answers or the context is done. What the daemon
// refuses is a *RefusedError.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client of the control socket at path. It connects when it
// is asked for something.
func NewClient(path string) *Client {
	return &Client{path, http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}}
}

// Status asks how the daemon is doing.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// Sessions asks for the sessions that fit q.
func (c *Client) Sessions(ctx context.Context, q Query) (*Sessions, error) {
	v := url.Values{}
	for key, text := range map[string]string{"relay": q.Relay, "class": q.Class, "client": q.Client} {
		if text != "" {
			v.Set(key, text)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return ask[Sessions](ctx, c, http.MethodGet, "/v1/sessions?"+v.Encode(), nil)
}

// Set sets the rates of a class or link.
func (c *Client) Set(ctx context.Context, r SetRequest) (*Changed, error) {
	return ask[Changed](ctx, c, http.MethodPost, "/v1/set", r)
}

// Reset ends what was set.
func (c *Client) Reset(ctx context.Context, r ResetRequest) (*Changed, error) {
	return ask[Changed](ctx, c, http.MethodPost, "/v1/reset", r)
}

// Reload has the daemon read its policy again, and returns when it is in force.
func (c *Client) Reload(ctx context.Context) (*Reloaded, error) {
	return ask[Reloaded](ctx, c, http.MethodPost, "/v1/reload", nil)
}

// Drain has a relay stop accepting and let its sessions end.
func (c *Client) Drain(ctx context.Context, relay string) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/relays/"+url.PathEscape(relay)+"/drain", nil)
	return err
}

// SetLogLevel sets what is logged: debug, info, warn or error.
func (c *Client) SetLogLevel(ctx context.Context, level string) error {
	_, err := ask[LogLevel](ctx, c, http.MethodPut, "/v1/log-level", LogLevel{level})
	return err
}

func ask[T any](ctx context.Context, c *Client, method, path string, body any) (*T, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://shaperd"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	defer answer.Body.Close()
	in := json.NewDecoder(answer.Body)
	if answer.StatusCode != http.StatusOK {
		var f Failure
		if err := in.Decode(&f); err != nil || len(f.Errors) == 0 {
			return nil, fmt.Errorf("control socket %s: %s", c.path, answer.Status)
		}
		return nil, &RefusedError{answer.StatusCode, errors.New(strings.Join(f.Errors, "\n"))}
	}
	out := new(T)
	if err := in.Decode(out); err != nil {
		return nil, fmt.Errorf("control socket %s: read the answer: %w", c.path, err)
	}
	return out, nil
}

// ErrNoDaemon is wrapped by errors of a socket that nobody answers on.
var ErrNoDaemon = errors.New("no daemon runs here")

// explain says what is likely when nobody answers.
func (c *Client) explain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("control socket %s: %w (start one with \"shaperd run\", or name another socket with --socket)", c.path, ErrNoDaemon)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("control socket %s: permission denied (its file mode says who may: try sudo, or see admin.group of the policy)", c.path)
	}
	return fmt.Errorf("control socket %s: %w", c.path, err)
}
