package admission

import (
	"context"
	"errors"
	"time"

	"shaperd/internal/store"
)

// recheck is how long the first in a line sleeps at most before it asks again: the
// store may have gone meanwhile.
const recheck = time.Second

// errChanged is that a reload gave the class other numbers: who waits asks anew, for
// the rest of its time.
var errChanged = errors.New("the class has changed")

// takeShared decides for a shared class: in the store or, while that is away,
// alone. What fails since there is another store is asked there. It waits as Take
// does; those of one host and key are served in order, and while somebody waits
// nobody else gets what they wait for.
func (a *Admission) takeShared(ctx context.Context, c *class, n int, r *Request) (granted, alone bool, s state, err error) {
	bits, deadline := bitsPerToken*int64(n), time.Now().Add(r.Wait)
	var in *place // nil while the caller does not wait
	head := false // it has the turn already
	join := func() bool {
		ok := a.enter(c)
		if ok {
			in = c.lines.enter(r.Key, bits)
		}
		return ok
	}
	quit := func() {
		if in != nil {
			in.leave()
			a.leave(c)
			in, head = nil, false
		}
	}
	defer quit()
	if s, busy := c.lines.behind(c, r.Key, bits); busy && (s.retry > r.Wait || !join()) {
		return false, false, s, nil
	}
	for {
		if in != nil && !head {
			turn, err := in.wait(ctx, time.Until(deadline))
			if err != nil {
				return false, false, s, err
			}
			if !turn {
				quit()
				if s, busy := c.lines.behind(c, r.Key, bits); busy {
					return false, false, s, nil
				}
			}
		}
		switch now := (*a.classes.Load())[r.Class]; {
		case now == c:
		case now == nil || !now.Shared || now.limits != c.limits || now.lines != c.lines:
			r.Wait = max(time.Until(deadline), 0)
			return false, false, s, errChanged
		default:
			c = now
		}
		cl := a.cluster.Load()
		granted, s, ok, err := cl.take(ctx, c, n, r.Key)
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return false, false, s, context.Cause(ctx)
			case a.cluster.Load() != cl: // by a reload, which closes the old store
				continue
			case errors.Is(err, errCrowded): // the store is well
				return false, false, state{retry: cl.patience(), reset: cl.patience()}, nil
			}
			quit() // the line is of those who wait for the store
			granted, s, err = a.takeAlone(ctx, c, n, r, deadline, err)
			if err == errBack { //nolint:errorlint // it is not wrapped
				continue
			}
			return granted, true, s, err
		}
		c.alone.answered()
		switch {
		case granted || !ok || s.retry > time.Until(deadline):
			if in != nil {
				in.left = bitsPerToken * s.tokens
			}
			return granted, false, s, nil
		case in == nil:
			if !join() {
				return false, false, s, nil
			}
		default:
			if head = in.refused(s.retry); !head {
				continue
			}
			if err := sleep(ctx, min(s.retry, recheck)); err != nil {
				return false, false, s, err
			}
		}
	}
}

// takeAlone is what this host does while the store is away, which err says why.
func (a *Admission) takeAlone(ctx context.Context, c *class, n int, r *Request, deadline time.Time, err error) (bool, state, error) {
	if c.OnOutage == store.OutageClosed {
		c.counts.outage.Add(1)
		return false, state{}, &OutageError{c.Name, outageRetry, err}
	}
	back := c.alone.failed()
	rest := *r
	rest.Wait = max(time.Until(deadline), 0)
	if rest.Wait == 0 {
		return a.takeLocal(ctx, c, n, &rest)
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-back:
			cancel(errBack)
		case <-limited.Done():
		}
	}()
	return a.takeLocal(limited, c, n, &rest)
}

// errBack is that the store has answered somebody while one waited alone.
var errBack = errors.New("the store is back")

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

// Begin has the store know the shared classes, whose buckets start empty there and
// earn from then on: not only from the first request. It blocks for one round trip.
func (a *Admission) Begin(ctx context.Context) error {
	cl := a.cluster.Load()
	if cl == nil {
		return errNoStore
	}
	var calls []*store.Call
	for _, c := range *a.classes.Load() {
		if c.Shared {
			calls = append(calls, cl.call(c, 0, ""))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return cl.do(ctx, calls...)
}
