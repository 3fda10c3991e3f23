package admission

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"shaperd/shaper"
)

// keys are the buckets of a class's keys, bounded in number. A full bucket is
// as good as none, so those are dropped that are full; which come first is known
// from a heap. Where none is full and there is no room, a new key has to wait for
// the first to be. Order of use would not do: what was used long ago may still be
// empty, and what was used just now full again.
type keys struct {
	mu     sync.Mutex
	base   time.Time
	limits limits
	start  shaper.Size // tokens of a new bucket
	most   int
	byKey  map[string]*keyed
	order  byFull
}

// A keyed bucket is in the heap except while somebody waits on it: then it must not be dropped.
type keyed struct {
	*shaper.TokenBucket
	key     string
	full    time.Duration // since base
	place   int           // in the heap
	waiting int
}

func newKeys(l limits, start shaper.Size, most int) *keys {
	return &keys{base: time.Now(), limits: l, start: start, most: most, byKey: map[string]*keyed{}}
}

// take takes n tokens of a key's bucket, or none. It returns the state after it;
// ok is false when there is no room for the key.
func (k *keys) take(key string, n int) (granted bool, s state, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, wait := k.find(key)
	if b == nil {
		return false, state{retry: wait, reset: wait, full: true}, false
	}
	granted, s = take(b.TokenBucket, n, k.limits)
	k.settle(b)
	return granted, s, true
}

// hold returns a key's bucket, which stays until it is released.
func (k *keys) hold(key string) (b *keyed, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b, wait = k.find(key); b == nil {
		return nil, wait
	}
	if b.waiting++; b.waiting == 1 {
		heap.Remove(&k.order, b.place)
	}
	return b, 0
}

func (k *keys) release(b *keyed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.full = k.fullAt(b)
		heap.Push(&k.order, b)
	}
}

func (k *keys) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.byKey)
}

// set changes the limits and keeps the levels.
func (k *keys) set(l limits, start shaper.Size, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := k.limits != l
	k.limits, k.start, k.most = l, start, most
	if !changed {
		return
	}
	for _, b := range k.byKey {
		b.SetRate(l.rate)
		b.SetBurst(l.burst)
		b.full = k.fullAt(b)
	}
	heap.Init(&k.order)
}

// find returns the bucket of a key, a new one where there is room, or how long
// there is none. Called with mu held.
func (k *keys) find(key string) (b *keyed, wait time.Duration) {
	if b := k.byKey[key]; b != nil {
		return b, 0
	}
	now := time.Since(k.base)
	// Two go for each that comes, so that the table shrinks when it has been large.
	for range 2 {
		k.drop(now)
	}
	for len(k.byKey) >= k.most && k.drop(now) { // there may be fewer places than before
	}
	if len(k.byKey) >= k.most {
		if len(k.order) == 0 {
			return nil, k.limits.window() // all of them are waited on
		}
		return nil, max(k.order[0].full-now, 1)
	}
	b = &keyed{TokenBucket: shaper.NewTokenBucket(k.limits.rate, k.start), key: key, full: now}
	b.SetBurst(k.limits.burst)
	k.byKey[key] = b
	heap.Push(&k.order, b)
	return b, 0
}

// drop forgets the bucket that is full first, if it is.
func (k *keys) drop(now time.Duration) bool {
	if len(k.order) == 0 || k.order[0].full > now {
		return false
	}
	b := heap.Pop(&k.order).(*keyed)
	delete(k.byKey, b.key)
	return true
}

// settle puts a bucket in its place after something was taken.
func (k *keys) settle(b *keyed) {
	b.full = k.fullAt(b)
	if b.waiting == 0 {
		heap.Fix(&k.order, b.place)
	}
}

func (k *keys) fullAt(b *keyed) time.Duration {
	d := b.RetryAfter(int(k.limits.burst))
	now := time.Since(k.base) // read later than the level: never too early
	return now + min(d, math.MaxInt64-now)
}

// byFull implements heap.Interface: the bucket that is full first is first.
type byFull []*keyed

func (h byFull) Len() int           { return len(h) }
func (h byFull) Less(i, j int) bool { return h[i].full < h[j].full }
func (h byFull) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *byFull) Push(x any) {
	b := x.(*keyed)
	b.place = len(*h)
	*h = append(*h, b)
}

func (h *byFull) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}
