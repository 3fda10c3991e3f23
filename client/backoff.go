package client

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 30 * time.Second
	leastPause = 10 * time.Millisecond // whatever a daemon says
)

// A backoff is how long to wait between attempts. The zero value is ready.
type backoff struct {
	failures int // in a row, without being told when to come again
}

// next returns how long to wait after err. What was refused comes again when the
// daemon says, a bit later by chance, since others were told the same time. Where
// nobody says when, the pauses double, and each is between half and all of that.
func (b *backoff) next(err error) time.Duration {
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.RetryAfter > 0 {
		b.failures = 0
		return later(refused.RetryAfter)
	}
	pause := min(firstPause<<min(b.failures, 20), lastPause)
	b.failures++
	pause = pause/2 + rand.N(pause/2)
	if away, ok := errors.AsType[*UnavailableError](err); ok && away.RetryAfter > 0 {
		pause = max(pause, later(away.RetryAfter))
	}
	return pause
}

// later is a bit more than a time that others were told too.
func later(d time.Duration) time.Duration {
	d = max(d, leastPause)
	return d + rand.N(min(d/10, time.Second))
}

// longestRetry is what longer times count as.
const longestRetry = 365 * 24 * time.Hour

// retryAfter is when an answer wants to be asked again: as exactly as its body
// says, else as its header Retry-After does, since it may be of a proxy in
// between. 0 is that it does not say.
func retryAfter(response *http.Response, ms int64) time.Duration {
	if ms > 0 {
		return time.Duration(min(ms, longestRetry.Milliseconds())) * time.Millisecond
	}
	header := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // then it is the nearest
		return time.Duration(min(max(seconds, 0), int64(longestRetry/time.Second))) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(response.Header.Get("Date")) // by the clock of who says it
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longestRetry)
}
