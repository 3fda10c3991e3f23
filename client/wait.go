package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Wait asks until the request is granted. It waits as long as the daemon says,
// and where there is no answer, tries again ever later. When ctx is done before, it
// returns its cause, wrapped with why the request had not been granted until then.
// It returns a *RequestError at once, and any other error when the client's patience
// is over.
func (c *Client) Wait(ctx context.Context, class string, r Request) (Decision, error) {
	var (
		b      backoff
		silent time.Time // since when nobody answers: the first such request; zero when somebody does
		last   Decision
		why    error
	)
	for {
		began := time.Now()
		d, err := c.Take(ctx, class, r)
		_, wrong := errors.AsType[*RequestError](err)
		switch {
		case err == nil || wrong:
			return d, err
		case answered(err):
			silent = time.Time{}
		case ctx.Err() != nil:
			return last, outOf(ctx, why)
		default:
			if silent.IsZero() {
				silent = began
			}
			if c.patience > 0 && time.Since(silent) >= c.patience {
				return d, fmt.Errorf("no answer for %v: %w", c.patience, err)
			}
		}
		last, why = d, err
		if !sleep(ctx, b.next(err)) {
			return last, outOf(ctx, why)
		}
	}
}

// answered reports whether err, of Take, is what somebody has answered.
func answered(err error) bool {
	_, refused := errors.AsType[*RefusedError](err)
	_, unavailable := errors.AsType[*UnavailableError](err)
	return refused || unavailable
}

// outOf is the cause of ctx, which is done, and why it was needed for so long.
func outOf(ctx context.Context, why error) error {
	if why == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), why)
}

// sleep waits for d, and reports whether ctx was not done before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
