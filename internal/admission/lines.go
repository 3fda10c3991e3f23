package admission

import (
	"context"
	"math"
	"sync"
	"time"
)

// lines have those who wait for tokens of one key in the store stand one behind
// the other: only the first of them asks. While there is a line, others who come
// do not ask either, or they would take what the first waits for. But when other hosts
// take that, again and again, this one's would have nothing: so the first keeps others
// back for no longer than twice the time it waits for if nobody else takes anything.
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
	until time.Time // it keeps others back
}

// behind returns what one who comes for so many bits is told if there is a line that
// keeps it back: when it would have them.
func (l *lines) behind(c *class, key string, bits int64) (s state, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.byKey[key]
	if in == nil || in.first > 0 && time.Now().After(in.until) {
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

// keep is how long the first keeps others back at least: it has to ask.
const keep = 100 * time.Millisecond

// knows has the line know when its first can have what it waits for.
func (p *place) knows(retry time.Duration) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	now := time.Now()
	if p.in.first == 0 {
		p.in.until = now.Add(2*min(retry, MaxWait) + keep)
	}
	p.in.first, p.in.due = p.bits, now.Add(retry)
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
