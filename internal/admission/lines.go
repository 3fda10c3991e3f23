package admission

import (
	"context"
	"sync"
	"time"
)

// lines have those who wait for tokens of one key in the store stand one behind
// the other: only the first of them asks.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

type line struct {
	first chan struct{} // holds something while somebody is first
	users int
}

// enter waits until the caller is first in a key's line, or no longer than d:
// then it may ask once more all the same. The caller calls end to leave.
func (l *lines) enter(ctx context.Context, key string, d time.Duration) (end func(), err error) {
	l.mu.Lock()
	if l.byKey == nil {
		l.byKey = map[string]*line{}
	}
	in := l.byKey[key]
	if in == nil {
		in = &line{first: make(chan struct{}, 1)}
		l.byKey[key] = in
	}
	in.users++
	l.mu.Unlock()

	leave := func(first bool) {
		if first {
			<-in.first
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if in.users--; in.users == 0 {
			delete(l.byKey, key)
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case in.first <- struct{}{}:
		return func() { leave(true) }, nil
	case <-t.C:
		return func() { leave(false) }, nil
	case <-ctx.Done():
		leave(false)
		return nil, context.Cause(ctx)
	}
}
