package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"shaperd/internal/store"
)

//go:embed take.lua
var takeSource string

var takeScript = store.NewScript(takeSource)

// A cluster is where shared classes are decided.
type cluster struct {
	store *store.Store
	name  string
	gate  chan struct{} // holds something for each decision under way
}

func newCluster(s *store.Store, name string) *cluster {
	return &cluster{s, name, make(chan struct{}, s.Connections())}
}

var (
	errNoStore = errors.New("no store is set")
	errCrowded = errors.New("too many ask at once")
)

// patience is how long a decision waits for others to end: much longer than the
// store takes to find that its server is away.
func (s *cluster) patience() time.Duration { return 10 * s.store.Timeout() }

// enter waits for a connection of the store to be free, so that a wait for one
// does not look like a server that does not answer. The caller calls leave.
func (s *cluster) enter(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(s.patience())
	defer t.Stop()
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-t.C:
		return errCrowded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *cluster) leave() { <-s.gate }

// bitsPerToken makes the rate, in bits per second, whole units.
const bitsPerToken = 8

// call is one decision of the script.
func (s *cluster) call(c *class, n int, key string) *store.Call {
	// One hash tag: in a Redis Cluster all of a class is on one node.
	prefix := "shaperd:{" + s.name + ":" + c.Name + "}:take:"
	call := &store.Call{
		Script: takeScript,
		Keys:   []string{prefix + "bucket", prefix + "made"},
		Args:   []any{int64(c.rate), bitsPerToken * int64(c.burst), bitsPerToken * int64(n)},
	}
	if key != "" {
		call.Keys = []string{prefix + "key:" + key, prefix + "made", prefix + "keys"}
		call.Args = append(call.Args, key, c.Keys)
	}
	return call
}

// do asks for all in one round trip. The error is errCrowded, ctx's, or that the
// store is of no use.
func (s *cluster) do(ctx context.Context, calls ...*store.Call) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.store.Do(ctx, calls...)
}

// take is one decision, in an order that all hosts agree on. Errors are those of do,
// errNoStore, or that the answer is none of ours.
func (s *cluster) take(ctx context.Context, c *class, n int, key string) (granted bool, out state, ok bool, err error) {
	if s == nil {
		return false, out, false, errNoStore
	}
	call := s.call(c, n, key)
	if err := s.do(ctx, call); err != nil {
		return false, out, false, err
	}
	answer, err := numbers(call.Value)
	if err != nil {
		return false, out, false, err
	}
	verdict, level, rem := answer[0], answer[1], answer[2]
	if verdict < 0 {
		wait := time.Duration(min(level, int64(math.MaxInt64/time.Microsecond))) * time.Microsecond
		return false, state{retry: wait, reset: wait, full: true}, false, nil
	}
	out = state{tokens: level / bitsPerToken, reset: earns(c, bitsPerToken*int64(c.burst)-level, rem)}
	if verdict == 0 {
		out.retry = max(earns(c, bitsPerToken*int64(n)-level, rem), time.Microsecond)
	}
	return verdict == 1, out, true, nil
}

// numbers are the three that the script answers.
func numbers(v any) (n [3]int64, err error) {
	list, _ := v.([]any)
	for i := range n {
		var ok bool
		if len(list) == len(n) {
			n[i], ok = list[i].(int64)
		}
		if !ok {
			return n, fmt.Errorf("take from a shared class: the store answers %v", v)
		}
	}
	return n, nil
}

// earns returns how long the class takes to earn so many bits, of which rem
// millionths are there, in whole microseconds as the script counts.
func earns(c *class, missing, rem int64) time.Duration {
	if missing <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(missing), 1_000_000)
	lo, borrow := bits.Sub64(lo, uint64(rem), 0)
	lo, carry := bits.Add64(lo, uint64(c.rate)-1, 0)
	hi += carry - borrow
	if hi >= uint64(c.rate) {
		return math.MaxInt64
	}
	us, _ := bits.Div64(hi, lo, uint64(c.rate))
	if us > uint64(math.MaxInt64/time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
