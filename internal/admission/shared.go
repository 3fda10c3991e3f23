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
}

var errNoStore = errors.New("no store is set")

// bitsPerToken makes the rate, in bits per second, whole units.
const bitsPerToken = 8

// take runs the script: one decision, in an order that all hosts agree on.
func (s *cluster) take(ctx context.Context, c *class, n int, key string) (granted bool, out state, ok bool, err error) {
	if s == nil {
		return false, out, false, errNoStore
	}
	// One hash tag: in a Redis Cluster all of a class is on one node.
	prefix := "shaperd:{" + s.name + ":" + c.Name + "}:take:"
	call := store.Call{
		Script: takeScript,
		Keys:   []string{prefix + "bucket", prefix + "made"},
		Args:   []any{int64(c.rate), bitsPerToken * int64(c.burst), bitsPerToken * int64(n)},
	}
	if key != "" {
		call.Keys = []string{prefix + "key:" + key, prefix + "made", prefix + "keys"}
		call.Args = append(call.Args, key, c.Keys)
	}
	if err := s.store.Do(ctx, &call); err != nil {
		return false, out, false, err
	}
	answer, err := numbers(call.Value)
	if err != nil {
		return false, out, false, err
	}
	verdict, level, rem := answer[0], answer[1], answer[2]
	if verdict < 0 {
		wait := time.Duration(level) * time.Microsecond
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

// takeShared decides for a shared class: in the store or, while that is away,
// alone. It waits as Take does; those of one host and key are served in order.
func (a *Admission) takeShared(ctx context.Context, c *class, n int, r *Request) (granted, alone bool, s state, err error) {
	cl, deadline := a.cluster.Load(), time.Time{}
	for {
		granted, s, ok, err := cl.take(ctx, c, n, r.Key)
		if err != nil {
			if ctx.Err() != nil {
				return false, false, s, context.Cause(ctx)
			}
			granted, s, err = a.takeAlone(ctx, c, n, r, deadline, err)
			return granted, true, s, err
		}
		c.alone.put(false)
		switch {
		case granted || !ok || s.retry > r.Wait:
			return granted, false, s, nil
		case deadline.IsZero():
			if r.Wait == 0 || !a.enter(c) {
				return false, false, s, nil
			}
			defer a.leave(c)
			deadline = time.Now().Add(r.Wait)
			end, err := c.lines.enter(ctx, r.Key, r.Wait)
			if err != nil {
				return false, false, s, err
			}
			defer end()
		case s.retry > time.Until(deadline):
			return false, false, s, nil
		default:
			if err := sleep(ctx, s.retry); err != nil {
				return false, false, s, err
			}
		}
	}
}

// takeAlone is what this host does while the store is away, which err says why.
func (a *Admission) takeAlone(ctx context.Context, c *class, n int, r *Request, deadline time.Time, err error) (bool, state, error) {
	if c.OnOutage == Closed {
		c.counts.outage.Add(1)
		return false, state{}, &OutageError{c.Name, outageRetry, err}
	}
	c.alone.put(true)
	rest := *r
	if !deadline.IsZero() {
		rest.Wait = max(time.Until(deadline), 0)
	}
	return a.takeLocal(ctx, c, n, &rest)
}

// outageRetry is when it is worth asking again: the store is tried that often or nearly so.
const outageRetry = time.Second

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TakeSource is the script of a decision, for those who measure it.
func TakeSource() string { return takeSource }

// Begin has the store know the shared classes, whose buckets start empty there and
// earn from then on: not only from the first request. It blocks for a request each.
func (a *Admission) Begin(ctx context.Context) error {
	cl := a.cluster.Load()
	for _, c := range *a.classes.Load() {
		if !c.Shared {
			continue
		}
		if _, _, _, err := cl.take(ctx, c, 0, ""); err != nil {
			return err
		}
	}
	return nil
}
