package admission

import (
	"context"
	"math"
	"sync"
	"time"
)

// lines have those who wait for tokens of one key in the store stand one behind
// the other: only the first of them asks. While there is a line, others who come
// do not ask either, or they would take what the first waits for.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

// A line is there while somebody is in it. All but turn is guarded by the lines' mu.
type line struct {
	turn  chan struct{} // holds something while somebody is first
	users int
	bits  int64     // that all in it wait for
	first int64     // of these, that the first waits for, once it is known until when
	due   time.Time // when the first can have them; for the others earning begins then
}

// behind returns what one who comes for so many bits is told if there is a line:
// when it would have them.
func (l *lines) behind(c *class, key string, bits int64) (s state, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.byKey[key]
	if in == nil {
		return s, false
	}
	due, others := max(time.Until(in.due), 0), in.bits-in.first
	const longest = math.MaxInt64 - MaxWait // due is no later than the longest wait
	s.retry = due + min(earns(c, others+bits, 0), longest)
	s.reset = due + min(earns(c, others+bitsPerToken*int64(c.burst), 0), longest)
	return s, true
}

// enter puts the caller at the end of a key's line. It calls leave in the end.
func (l *lines) enter(key string, bits int64) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[string]*line{}
	}
	in := l.byKey[key]
	if in == nil {
		in = &line{turn: make(chan struct{}, 1)}
		l.byKey[key] = in
	}
	in.users++
	in.bits += bits
	return &place{of: l, in: in, key: key, bits: bits}
}

// A place in a line is of one goroutine.
type place struct {
	of    *lines
	in    *line
	key   string
	bits  int64
	first bool
}

// wait waits to be the first, for no longer than d: first is false then.
func (p *place) wait(ctx context.Context, d time.Duration) (first bool, err error) {
	if p.first {
		return true, nil
	}
	select {
	case p.in.turn <- struct{}{}:
		p.first = true
		return true, nil
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case p.in.turn <- struct{}{}:
		p.first = true
		return true, nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// knows has the line know when its first can have what it waits for.
func (p *place) knows(retry time.Duration) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.in.first, p.in.due = p.bits, time.Now().Add(retry)
}

func (p *place) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.in.bits -= p.bits
	if p.in.users--; p.in.users == 0 {
		delete(p.of.byKey, p.key)
	}
	if p.first {
		p.in.first, p.in.due = 0, time.Now()
		<-p.in.turn
	}
}
