package client

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A daemon that takes requests and answers none is silent from the first one on,
// not from the end of that one's time.
func TestPatienceBeginsWithTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		hung := roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c := &Client{base: "http://shaperd", patience: time.Minute, http: http.Client{Transport: hung}}
		if _, err := c.Wait(t.Context(), "slow", Request{Bytes: 1, Wait: 30 * time.Second}); err == nil || asked != 2 {
			t.Errorf("asked %d times, of 40 s each: %v; want 2, for the patience is a minute", asked, err)
		}
	})
}
