package shaper

import (
	"errors"
	"fmt"
)

var (
	// ErrNoTokens says that a TokenBucket holds fewer tokens than were asked for.
	ErrNoTokens = errors.New("not enough tokens")
	// ErrQueueFull says that a LeakyBucket has no room for the bytes just now.
	ErrQueueFull = errors.New("queue full")
)

// A LimitError says that a request can never be served at once: it is larger than all that the bucket may hold.
type LimitError struct {
	N     int    // bytes asked for
	What  string // "burst" or "queue"
	Limit Size
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d bytes exceed the %s of %v", e.N, e.What, e.Limit)
}

// positive returns q and panics if it is not above zero: with such a limit nothing would ever pass.
func positive[Q interface {
	~int64
	fmt.Stringer
}](what string, q Q) Q {
	if q <= 0 {
		panic(fmt.Sprintf("shaper: a %s of %v lets nothing pass", what, q))
	}
	return q
}
