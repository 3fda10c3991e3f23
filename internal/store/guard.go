package store

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A guard is around every request of the client: the breaker, the deadline, and
// errors that say what is wrong.
type guard struct{ s *Store }

// guarded marks the context of a request: what the library asks for it, to make
// a connection for example, is part of it.
type guarded struct{}

// patience marks a context that has a request's deadline already. Its value is
// the context of the caller, whose own end is not the server's fault.
type patience struct{}

// DialHook implements redis.Hook.
func (g guard) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (g guard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return g.s.request(ctx, []redis.Cmder{cmd}, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (g guard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return g.s.request(ctx, cmds, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

func (s *Store) request(ctx context.Context, cmds []redis.Cmder, next func(context.Context) error) error {
	if ctx.Value(guarded{}) != nil {
		return next(ctx)
	}
	caller := ctx
	if of, ok := ctx.Value(patience{}).(context.Context); ok {
		caller = of
	}
	ticket, refused := s.breaker.allow(time.Now())
	if refused != nil {
		p := *refused
		p.refused = true
		for _, cmd := range cmds {
			cmd.SetErr(&p)
		}
		return &p
	}
	bounded, cancel := context.WithTimeout(context.WithValue(ctx, guarded{}, true), s.timeout)
	defer cancel()
	err := next(bounded)
	if err != nil && !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		for _, cmd := range cmds { // there was no connection to send them on
			cmd.SetErr(err)
		}
	}
	var worst *AwayError
	answered := false
	note := func(p *AwayError) {
		if !p.crowded && worst == nil { // what follows may only be that the connection has ended
			worst = p
		}
	}
	for _, cmd := range cmds {
		if p := s.explain(cmd.Err()); p != nil {
			cmd.SetErr(p)
			note(p)
		} else {
			answered = true
		}
	}
	if p := s.explain(err); p != nil {
		err = p
		note(p)
	}
	if worst != nil && caller.Err() != nil {
		s.breaker.report(ticket, time.Now(), nil, false)
		return err
	}
	if worst != nil && answered { // some of it: one node of a cluster is away, others are not
		p := *worst
		p.local = true
		worst = &p
	}
	s.breaker.report(ticket, time.Now(), worst, answered)
	return err
}
