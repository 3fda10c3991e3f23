package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
)

// Who finds all connections in use has learned nothing of the server: it does not
// count as away for others.
func TestTooManyRequestsAtOnceAreNoOutage(t *testing.T) {
	r := storetest.Start(t)
	s := open(t, store.Options{Addrs: []string{r.Addr()}, Timeout: 3 * time.Second})
	var busy sync.WaitGroup
	for range s.Connections() {
		busy.Go(func() { // until something is there
			if err := s.Client().BLPop(context.Background(), 0, "shaperd:{test}:list").Err(); err != nil {
				t.Errorf("a request that is under way: %v", err)
			}
		})
	}
	storetest.Eventually(t, "all connections to be in use", func() bool {
		return int(s.Client().PoolStats().TotalConns) == s.Connections() && s.Client().PoolStats().IdleConns == 0
	})
	var late sync.WaitGroup
	for range 10 { // more than the breaker tolerates
		late.Go(func() {
			if err := s.Do(context.Background(), call()); err == nil {
				t.Error("there was a connection")
			}
		})
	}
	late.Wait()
	if err := s.Problem(); err != nil {
		t.Errorf("a problem of the server: %v", err)
	}
	for range s.Connections() {
		r.Do("RPUSH", "shaperd:{test}:list", "x")
	}
	busy.Wait()
	if err := s.Do(context.Background(), call()); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
