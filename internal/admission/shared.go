package admission

import (
	"context"
	"errors"
	"time"
)

// takeShared decides for a shared class: in the store or, while that is away,
// alone. It waits as Take does; those of one host and key are served in order.
func (a *Admission) takeShared(ctx context.Context, c *class, n int, r *Request) (granted, alone bool, s state, err error) {
	cl, deadline := a.cluster.Load(), time.Time{}
	for {
		granted, s, ok, err := cl.take(ctx, c, n, r.Key)
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return false, false, s, context.Cause(ctx)
			case errors.Is(err, errCrowded): // the store is well
				return false, false, state{retry: cl.patience(), reset: cl.patience()}, nil
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
