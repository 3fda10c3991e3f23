// Package store is the Redis or Valkey that the hosts of a cluster share:
//
//	s, err := store.New(store.Options{Addrs: []string{"10.0.0.9:6379"}, PasswordFile: path})
//	defer s.Close()
//	call := &store.Call{Script: script, Keys: []string{"shaperd:{edge:web:download}:lease"}, Args: []any{"r1"}}
//	err = s.Do(ctx, call) // one round trip, whatever the number of calls
//	answer := call.Value
//
// A Redis that is away costs nothing: each request has a deadline, and after a
// few failures a circuit breaker refuses requests without making them, but for
// one now and then that tries. An error of the server or of the way to it is a
// *AwayError, which says what is wrong and what cures it.
//
// A Store owns its connections, and Close ends them. All methods may be called
// from any goroutine; those with a context block for no longer than the
// deadline of a request, New and Problem not at all. It logs nothing.
//
// The package knows no keys and no scripts, and holds no state of the cluster.
package store
