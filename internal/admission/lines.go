package admission

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// lines have those who wait for tokens of one key in the store stand one behind the
// other. The first asks, and those behind it for whom there is enough, by the last
// answer; once it is refused it is the head, and nobody else asks. Others who come
// meanwhile do not either, or they would take what the head waits for. But when other
// hosts take that, again and again, this one's would have nothing: so a head keeps
// others back for no longer than twice the time it waits for if nobody else takes any.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

// A line is there while somebody is in it. All of it is guarded by the lines' mu.
type line struct {
	waiting []*place // for their turn, in order
	asking  int
	users   int
	bits    int64     // that all in it wait for
	head    *place    // who is refused, and asks again
	due     time.Time // when the head can have its bits; for the others earning begins then
	until   time.Time // it keeps others back
}

// crowd is how many of a line ask at once, at most: enough for a store that is far away.
const crowd = 16

// behind returns what one who comes for so many bits is told if there is a line that
// keeps it back: when it would have them.
func (l *lines) behind(c *class, key string, bits int64) (s state, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.byKey[key]
	if in == nil || in.head == nil && len(in.waiting) == 0 || in.head != nil && time.Now().After(in.until) {
		return s, false
	}
	due, others := max(time.Until(in.due), 0), in.bits
	if in.head != nil {
		others -= in.head.bits
	}
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
		in = &line{}
		l.byKey[key] = in
	}
	p := &place{of: l, in: in, key: key, bits: bits, turn: make(chan struct{}, 1)}
	in.users++
	in.bits += bits
	in.waiting = append(in.waiting, p)
	in.next(0)
	return p
}

// next gives the first in the line its turn if nobody asks, and those behind it for whom
// so many bits are enough.
func (in *line) next(left int64) {
	for len(in.waiting) > 0 && in.asking < crowd {
		p := in.waiting[0]
		if in.asking > 0 && (in.head != nil || p.bits > left) {
			return
		}
		left -= p.bits
		in.waiting = in.waiting[1:]
		in.asking++
		p.asks = true
		p.turn <- struct{}{}
	}
}

// A place in a line is of one goroutine.
type place struct {
	of   *lines
	in   *line
	key  string
	bits int64
	turn chan struct{} // holds something when it has the turn, until wait takes it
	asks bool          // it has the turn; guarded by the lines' mu
	left int64         // bits that are there after what it was granted
}

// wait waits for the turn to ask, for no longer than d.
func (p *place) wait(ctx context.Context, d time.Duration) (turn bool, err error) {
	select {
	case <-p.turn:
		return true, nil
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.turn:
		return true, nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// keep is how long a head keeps others back at least: it has to ask.
const keep = 100 * time.Millisecond

// refused says that the place, which asked, can have its bits after a time. It is the
// head then, and asks again by itself; or, where there is one, it is the next to have
// a turn: head is false.
func (p *place) refused(retry time.Duration) (head bool) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	in, now := p.in, time.Now()
	if in.head != nil && in.head != p {
		in.asking--
		p.asks = false
		in.waiting = slices.Insert(in.waiting, 0, p)
		return false
	}
	if in.head == nil {
		in.until = now.Add(2*min(retry, MaxWait) + keep)
	}
	in.head, in.due = p, now.Add(retry)
	return true
}

func (p *place) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	in := p.in
	in.bits -= p.bits
	if in.users--; in.users == 0 {
		delete(p.of.byKey, p.key)
	}
	if in.head == p {
		in.head, in.due = nil, time.Now()
	}
	if p.asks {
		in.asking--
	} else {
		in.waiting = slices.DeleteFunc(in.waiting, func(q *place) bool { return q == p })
	}
	in.next(p.left)
}
