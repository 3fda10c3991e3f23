// Package storetest runs real Redis servers for tests:
//
//	redis := storetest.Start(t)
//	s, err := store.New(store.Options{Addrs: []string{redis.Addr()}})
//	redis.Pause() // hangs as an overloaded one does
//
// A server listens on a free port of the loopback, saves nothing, and is killed
// when its test ends, or the tests' process does. Failures fail the test. It
// needs redis-server, and redis-sentinel for Sentinels.
//
// It is for tests only, and knows nothing of what they store.
package storetest
