package client

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 30 * time.Second
)

// A backoff is how long to wait between attempts. The zero value is ready.
type backoff struct {
	failures int // in a row, without an answer
}

// next returns how long to wait after err. What was refused comes again when the
// daemon says, a bit later by chance, since others were told the same time. Where
// nobody answered, the pauses double, and each is between half and all of that.
func (b *backoff) next(err error) time.Duration {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		b.failures = 0
		return refused.RetryAfter + rand.N(min(refused.RetryAfter/10, time.Second)+time.Millisecond)
	}
	pause := min(firstPause<<min(b.failures, 20), lastPause)
	b.failures++
	pause = pause/2 + rand.N(pause/2)
	if away, ok := errors.AsType[*awayError](err); ok {
		pause = max(pause, away.retry)
	}
	return pause
}
