package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// maxLookups bounds the goroutines that resolve names; more lookups wait in line.
const maxLookups = 64

// A resolver looks names up beside the loop. Its methods belong to the loop;
// outcomes are posted to it.
type resolver struct {
	post    func(func()) bool
	ctx     context.Context
	cancel  context.CancelFunc
	running int
	waiting []lookup
	wg      sync.WaitGroup
}

type lookup struct {
	host string
	done func([]netip.Addr, error)
}

// A lookupError says that a name has no address.
type lookupError struct {
	host string
	err  error
}

func (e *lookupError) Error() string { return fmt.Sprintf("resolve %q: %v", e.host, e.err) }
func (e *lookupError) Unwrap() error { return e.err }

func newResolver(post func(func()) bool) *resolver {
	ctx, cancel := context.WithCancel(context.Background())
	return &resolver{post: post, ctx: ctx, cancel: cancel}
}

// lookup calls done in the loop with at least one address, or an error.
func (r *resolver) lookup(host string, done func([]netip.Addr, error)) {
	if r.running == maxLookups {
		r.waiting = append(r.waiting, lookup{host, done})
		return
	}
	r.running++
	r.wg.Go(func() {
		addrs, err := net.DefaultResolver.LookupNetIP(r.ctx, "ip", host)
		if err == nil && len(addrs) == 0 {
			err = errors.New("no address")
		}
		if err != nil {
			err = &lookupError{host, err}
		}
		for i := range addrs {
			addrs[i] = addrs[i].Unmap()
		}
		r.post(func() { r.finished(done, addrs, err) })
	})
}

func (r *resolver) finished(done func([]netip.Addr, error), addrs []netip.Addr, err error) {
	r.running--
	if len(r.waiting) > 0 && r.ctx.Err() == nil {
		next := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.lookup(next.host, next.done)
	}
	done(addrs, err)
}

// close cancels the lookups under way; their outcomes are dropped.
func (r *resolver) close() {
	r.cancel()
	r.wg.Wait()
}
