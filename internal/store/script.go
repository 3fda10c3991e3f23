package store

import (
	"context"
	"crypto/sha1" // names a script, as Redis does
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// A Script is a Lua program that the server runs atomically. It must be the
// same text on all hosts.
type Script struct{ source, sum string }

// NewScript makes a Script.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source, hex.EncodeToString(sum[:])}
}

// A Call is one run of a script, with its answer.
type Call struct {
	Script *Script
	Keys   []string // all that the script uses; in a Redis Cluster those of one call have one hash tag
	Args   []any

	Value any   // int64, string, nil, or []any of these
	Err   error // *AwayError, or what the script says
}

// Do runs the calls in one round trip, and in another one those whose script the
// server does not know yet. It sets the Value and Err of each and returns the
// first error. A call whose Err is nil was run once; one with an error may have
// been run or not.
func (s *Store) Do(ctx context.Context, calls ...*Call) error {
	if len(calls) == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithValue(ctx, patience{}, ctx), s.timeout) // for both
	defer cancel()
	s.run(bounded, calls, func(p redis.Pipeliner, c *Call) *redis.Cmd {
		return p.EvalSha(bounded, c.Script.sum, c.Keys, c.Args...)
	})
	var unknown []*Call
	for _, c := range calls {
		if redis.HasErrorPrefix(c.Err, "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	s.run(bounded, unknown, func(p redis.Pipeliner, c *Call) *redis.Cmd {
		return p.Eval(bounded, c.Script.source, c.Keys, c.Args...)
	})
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

func (s *Store) run(ctx context.Context, calls []*Call, add func(redis.Pipeliner, *Call) *redis.Cmd) {
	if len(calls) == 0 {
		return
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = add(pipe, c)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for i, c := range calls {
		c.Value, c.Err = cmds[i].Result()
		if errors.Is(c.Err, redis.Nil) {
			c.Err = nil
		}
	}
}
