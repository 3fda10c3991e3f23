package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Client asks one daemon. Make it with New.
type Client struct {
	base     string
	token    string
	patience time.Duration // see WithPatience; 0 is without an end
	http     http.Client
}

// answerTime is how long a daemon may take to answer, besides what it was asked to wait.
const answerTime = 10 * time.Second

// New returns a client of the daemon at an address: the path of its control
// socket, with a slash in it, or the URL of its admission listener, as
// http://host:port. It connects when it is asked for something; a relative path,
// such as ./shaperd.sock, begins at the working directory of then.
func New(address string) (*Client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 5 * time.Second}
	c := &Client{base: "http://shaperd", http: http.Client{Transport: transport}}
	switch u, err := url.Parse(address); {
	case isPath(address):
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("address %q: write the path of a control socket, with a slash such as ./shaperd.sock, or a URL such as http://127.0.0.1:9478", address)
	default:
		c.base = strings.TrimSuffix(address, "/")
	}
	return c, nil
}

// isPath reports whether an address is a path: before the first slash it has no
// colon, as a URL and host:port have.
func isPath(address string) bool {
	first, _, slash := strings.Cut(address, "/")
	return slash && !strings.Contains(first, ":")
}

// WithToken returns a client that shows the token, which admission listeners ask for.
func (c *Client) WithToken(token string) *Client {
	out := *c
	out.token = strings.TrimSpace(token)
	return &out
}

// WithPatience returns a client whose waits end with an error once nobody has
// answered for d: there is no daemon, or none that can be reached. One that
// answers that it cannot decide now is waited for. 0, as New has it, is without an
// end.
func (c *Client) WithPatience(d time.Duration) *Client {
	out := *c
	out.patience = d
	return &out
}

// Close ends idle connections. The client can be used again.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Request is what is asked for. One of Bytes and Cost is above 0.
type Request struct {
	Bytes int64  // of a class that counts bytes
	Cost  int64  // of a class that counts requests
	Key   string // has a bucket of its own; "" is the class's
	// Wait has the daemon wait until the request is granted, at most so long; it
	// serves those who wait in their order. 0 has it answer at once.
	Wait time.Duration
}

// MarshalJSON writes the request as the API has it.
func (r Request) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Bytes int64  `json:"bytes,omitempty"`
		Cost  int64  `json:"cost,omitempty"`
		Key   string `json:"key,omitempty"`
		Wait  int64  `json:"wait_ms,omitempty"`
	}{r.Bytes, r.Cost, r.Key, r.Wait.Milliseconds()})
}

// A Decision is what the bucket has after a request was granted or refused, in
// bytes or requests.
type Decision struct {
	Remaining int64         // that could be taken at once now
	Limit     int64         // that could ever be taken at once: the burst
	Reset     time.Duration // until the bucket is full again
	Unit      string        // what the class counts: "bytes" or "requests"
	Alone     bool          // by that host alone, since the Redis of a shared class is away
}

// A RefusedError is that the bucket has not enough.
type RefusedError struct {
	Class      string
	RetryAfter time.Duration // when it has, if nobody else takes any; 0 where that was not said
}

// Error says when to try again.
func (e *RefusedError) Error() string {
	if e.RetryAfter == 0 {
		return fmt.Sprintf("class %q: refused for now", e.Class)
	}
	return fmt.Sprintf("class %q: refused for now: try again in %v", e.Class, e.RetryAfter)
}

// A RequestError is a request that will never be granted: a class that there is
// not, more than its burst, no permission, or an address that is no shaperd's.
type RequestError struct {
	Status int // of HTTP
	Reason string
	Limit  int64 // the class's burst, where more than that was asked for; else 0
}

// Error returns what the daemon said, or the status of who answered in its place.
func (e *RequestError) Error() string { return e.Reason }

// An UnavailableError is a daemon that cannot decide now, or a proxy that does not
// reach one.
type UnavailableError struct {
	Reason     string
	RetryAfter time.Duration // when to ask again; 0 where that was not said
}

// Error returns what the daemon said.
func (e *UnavailableError) Error() string { return e.Reason }

// answer is what the API answers, whatever the status.
type answer struct {
	Granted      bool     `json:"granted"`
	Unit         string   `json:"unit"`
	Alone        bool     `json:"alone"`
	Remaining    int64    `json:"remaining"`
	Limit        int64    `json:"limit"`
	ResetMs      int64    `json:"reset_ms"`
	RetryAfterMs int64    `json:"retry_after_ms"`
	Errors       []string `json:"errors"`
}

// Take asks once. It returns a *RefusedError when the bucket has not enough now,
// and with it what it has; a *RequestError when it never will; an
// *UnavailableError when the daemon cannot say now; and any other error when there
// was no answer. It blocks until there is one, or ctx is done.
func (c *Client) Take(ctx context.Context, class string, r Request) (Decision, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Decision{}, err
	}
	within, cancel := context.WithTimeout(ctx, answerTime+r.Wait)
	defer cancel()
	ask, err := http.NewRequestWithContext(within, http.MethodPost, c.base+"/v1/classes/"+url.PathEscape(class)+"/take", bytes.NewReader(body))
	if err != nil {
		return Decision{}, err
	}
	if c.token != "" {
		ask.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(ask)
	if err != nil {
		if ctx.Err() != nil {
			return Decision{}, context.Cause(ctx)
		}
		return Decision{}, fmt.Errorf("ask shaperd: %w", err)
	}
	defer response.Body.Close()
	var a answer
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	ours := err == nil && json.Unmarshal(text, &a) == nil
	d := Decision{a.Remaining, a.Limit, time.Duration(a.ResetMs) * time.Millisecond, a.Unit, a.Alone}
	switch {
	case response.StatusCode == http.StatusTooManyRequests: // whoever says so, in whatever form
		return d, &RefusedError{class, retryAfter(response, a.RetryAfterMs)}
	case response.StatusCode >= 500, response.StatusCode == http.StatusRequestTimeout:
		return Decision{}, &UnavailableError{a.reason(response), retryAfter(response, a.RetryAfterMs)}
	case response.StatusCode < 300 && err != nil: // it may have been granted
		return Decision{}, fmt.Errorf("read the answer of shaperd (%s): %w", response.Status, err)
	case response.StatusCode == http.StatusOK && ours && a.Granted:
		return d, nil
	}
	wrong := &RequestError{response.StatusCode, a.reason(response), a.Limit}
	if len(a.Errors) == 0 { // a proxy's, or another program's, in whatever form
		wrong.Reason += ", and no decision of a shaperd: is the address right?"
	}
	return Decision{}, wrong
}

// reason is what an answer says is wrong.
func (a *answer) reason(response *http.Response) string {
	if len(a.Errors) == 0 {
		return fmt.Sprintf("the answer of %s is %s", response.Request.URL.Host, response.Status)
	}
	return strings.Join(a.Errors, "; ")
}
