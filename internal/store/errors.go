package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// cures says what to do about what a server answers, by the beginning of its answer.
var cures = []struct{ prefix, cure string }{
	{"NOAUTH", "it wants a password: put it into a file, and name that with shared.password_file"},
	{"WRONGPASS", "wrong user or password: see the user in shared.redis and the file of shared.password_file"},
	{"ERR AUTH", "it has no password: remove shared.password_file"},
	{"ERR Client sent AUTH", "it has no password: remove shared.password_file"},
	{"NOPERM", "the user may not run scripts on keys that begin with shaperd: give it \"~shaperd:* +@scripting +@hash +@string +@read +@write +@keyspace +time +info +ping\""},
	{"READONLY", "it is a replica: name the master, or Sentinels with shared.sentinel"},
	{"OOM", "it is out of memory: raise its maxmemory, or let it evict other keys first (volatile-lru)"},
	{"LOADING", "it reads its data: it will be there soon"},
	{"BUSY", "another script does not end: see SCRIPT KILL"},
	{"MISCONF", "it does not write, since it could not save its data: see its log"},
	{"CLUSTERDOWN", "the Redis Cluster lacks a part: see CLUSTER INFO"},
	{"MASTERDOWN", "its master is away"},
	{"ERR Write commands not allowed after non deterministic commands", "it is too old: Redis 5 or Valkey is needed"},
	{"ERR unknown command", "it is too old, or lacks scripts: Redis 5 or Valkey is needed"},
	{"ERR invalid DB index", "it has no such database: see the number at the end of shared.redis"},
	{"ERR DB index is out of range", "it has no such database: see the number at the end of shared.redis"},
}

// explain makes an error say what is wrong with the Redis, and the cure.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, c := range cures {
		if strings.HasPrefix(text, c.prefix) || strings.Contains(text, ": "+c.prefix) {
			return fmt.Errorf("redis: %w; %s", err, c.cure)
		}
	}
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout), isNet && timeout.Timeout():
		return fmt.Errorf("redis: no answer in time: %w", err)
	case strings.Contains(text, "all sentinels"):
		return fmt.Errorf("redis: %w; see that they are up, and that shared.sentinel is the master's name", err)
	case strings.Contains(text, "certificate"), strings.Contains(text, "tls:"):
		return fmt.Errorf("redis: %w; see shared.ca_file, and that the server speaks TLS", err)
	case isNet:
		return fmt.Errorf("redis: %w; see that it is up, and the addresses of shared.redis", err)
	}
	return fmt.Errorf("redis: %w", err)
}

// ofScript reports whether an error was raised by the script itself.
func ofScript(err error) bool { return redis.HasErrorPrefix(err, "SHAPERD") }
