package admission

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Limits of a request.
const (
	MaxKey  = 256              // bytes
	MaxWait = 30 * time.Second // longer ones are not waited for by anybody behind HTTP
)

// A Request asks for admission.
type Request struct {
	Class string
	Cost  int64         // bytes or requests, at least 1
	Unit  Unit          // what Cost counts; AnyUnit is what the class counts
	Key   string        // has a bucket of its own; "" is the class's
	Wait  time.Duration // for as long as this for the tokens, in order; at most MaxWait
}

// A Decision is the answer. Amounts are in the class's unit.
type Decision struct {
	Granted    bool
	Alone      bool // decided by this host, since the store is away
	NoRoom     bool // refused since the class has no room for another key
	Unit       Unit
	Limit      int64         // the burst
	Remaining  int64         // what could be had now
	RetryAfter time.Duration // of what is not granted: when it would be, if nobody else takes any
	Reset      time.Duration // until the bucket is full
	Window     time.Duration // in which an empty one fills, in whole seconds
}

// An UnknownClassError says that there is no such class.
type UnknownClassError struct{ Name, Near string } // Near is the one that may be meant, or ""

func (e *UnknownClassError) Error() string {
	text := "there is no class " + strconv.Quote(e.Name)
	if e.Near != "" {
		return text + ": did you mean " + e.Near + "?"
	}
	return text + " that programs may ask for; one whose rate is a percentage needs admission.rate"
}

// ErrRequest is what errors of requests are that no class takes.
var ErrRequest = errors.New("request")

type requestError struct{ text string }

func (e *requestError) Error() string        { return e.text }
func (e *requestError) Is(target error) bool { return target == ErrRequest }

func wrongf(format string, args ...any) error { return &requestError{fmt.Sprintf(format, args...)} }

// A TooLargeError says that a cost is more than the bucket ever holds.
type TooLargeError struct {
	Class string
	Cost  int64
	Limit int64
	Unit  Unit
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("class %q: %d %v are more than its burst of %d: ask for less at a time, or give the class a larger burst", e.Class, e.Cost, e.Unit, e.Limit)
}

// An OutageError says that the store is away and the class is closed then.
type OutageError struct {
	Class      string
	RetryAfter time.Duration
	Err        error // what the store said
}

func (e *OutageError) Error() string {
	return fmt.Sprintf("class %q: nobody can say, and on_outage is closed: %v", e.Class, e.Err)
}

func (e *OutageError) Unwrap() error { return e.Err }

// check returns what is wrong with r for c.
func (r *Request) check(c *class) error {
	switch {
	case r.Unit != AnyUnit && r.Unit != c.unit && c.unit == Bytes:
		return wrongf("class %q counts bytes, not requests", c.Name)
	case r.Unit != AnyUnit && r.Unit != c.unit:
		return wrongf("class %q counts requests, not bytes", c.Name)
	case r.Cost < 1:
		return wrongf("a cost of %d: give 1 or more", r.Cost)
	case len(r.Key) > MaxKey:
		return wrongf("a key of %d bytes: give %d at most, a hash of a longer one", len(r.Key), MaxKey)
	case r.Wait < 0 || r.Wait > MaxWait:
		return wrongf("a wait of %v: give 0 to %v", r.Wait, MaxWait)
	case r.Cost > int64(c.burst)/c.each:
		return &TooLargeError{c.Name, r.Cost, int64(c.burst) / c.each, c.unit}
	}
	return nil
}
