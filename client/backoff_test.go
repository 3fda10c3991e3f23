package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// What a daemon or a proxy before it answers, and between what the pause is.
func TestPauseIsWhatTheAnswerSays(t *testing.T) {
	const date = "Thu, 03 Dec 2026 05:00:00 GMT"
	for _, tt := range []struct {
		body, retry string // the header Retry-After
		least, most time.Duration
	}{
		{`{"retry_after_ms":1500}`, "2", 1500 * time.Millisecond, 1650 * time.Millisecond},
		{`{"retry_after_ms":1}`, "1", leastPause, firstPause},
		{`{"retry_after_ms":0}`, "", firstPause / 2, firstPause},
		{`{"retry_after_ms":-5}`, "-5", firstPause / 2, firstPause},
		{`{"retry_after_ms":0}`, "7", 7 * time.Second, 7700 * time.Millisecond},
		{`{}`, "7", 7 * time.Second, 7700 * time.Millisecond},
		{`<html>Too many`, "7", 7 * time.Second, 7700 * time.Millisecond},
		{`<html>Too many`, "", firstPause / 2, firstPause},
		{``, "Thu, 03 Dec 2026 05:02:00 GMT", 2 * time.Minute, 121 * time.Second},
		{``, "Thu, 03 Dec 2026 04:00:00 GMT", firstPause / 2, firstPause},
		{``, "soon", firstPause / 2, firstPause},
		{`{"retry_after_ms":9223372036854775807}`, "", longestRetry, longestRetry + time.Second},
		{``, "9223372036854775807", longestRetry, longestRetry + time.Second},
		{``, "99999999999999999999", longestRetry, longestRetry + time.Second},
		{``, "-99999999999999999999", firstPause / 2, firstPause},
	} {
		for _, status := range []int{429, 502, 503} {
			t.Run(fmt.Sprint(status, tt.body, tt.retry), func(t *testing.T) {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Date", date)
					if tt.retry != "" {
						w.Header().Set("Retry-After", tt.retry)
					}
					w.WriteHeader(status)
					fmt.Fprint(w, tt.body)
				}))
				defer s.Close()
				c, err := New(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, err = c.Take(t.Context(), "api", Request{Cost: 1})
				if pause := new(backoff).next(err); pause < tt.least || pause > tt.most {
					t.Errorf("%v: a pause of %v, want %v to %v", err, pause, tt.least, tt.most)
				}
			})
		}
	}
}
