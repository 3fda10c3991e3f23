package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"shaperd/internal/store"
)

// slowRedis is a round trip that leaves little of a request's deadline.
const slowRedis = store.DefaultTimeout / 4

// askRedis has the Redis of shared classes report on itself; nil where there is none.
func (f *Facts) askRedis() {
	if f.Policy.Shared.Cluster == "" {
		return
	}
	s, err := store.New(store.Options(f.Policy.Shared.Redis))
	if err != nil {
		f.RedisErr = err
		return
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := s.Check(ctx)
	f.Redis, f.RedisErr = &r, err
}

// checkRedis looks at the Redis of shared classes.
func checkRedis(f *Facts) (list []Finding) {
	const cost = "shared classes have what on_outage says, and their budgets do not follow demand"
	r := f.Redis
	switch {
	case f.RedisErr != nil:
		found, cure := f.RedisErr.Error(), "see what the error says, then run doctor again"
		if away, ok := errors.AsType[*store.AwayError](f.RedisErr); ok {
			found, cure = away.Problem(), away.Cure
		}
		return all(problem(found, cost+": "+f.Policy.Shared.OnOutage, cure))
	case r == nil:
		return nil
	}
	if r.Eviction != "noeviction" && r.Eviction != "" {
		found := fmt.Sprintf("%s %s at %s may drop keys when its memory is full (%s)", r.Software, r.Version, r.Server, r.Eviction)
		const cure = "CONFIG SET maxmemory-policy noeviction, and the same in its file; or a Redis for this alone"
		if class, ok := f.sharedAdmission(); ok {
			list = append(list, problem(found, fmt.Sprintf("a bucket that is dropped is full again: programs get more of class %s than its rate", class), cure))
		} else {
			list = append(list, warning(found, "budgets whose keys are dropped stand still for a lease's time", cure))
		}
	}
	if r.Latency > slowRedis {
		list = append(list, warning(fmt.Sprintf("%s %s at %s takes %v to answer", r.Software, r.Version, r.Server, r.Latency.Round(time.Millisecond)),
			fmt.Sprintf("one that takes longer than %v counts as away", store.DefaultTimeout), "use one that is nearer"))
	}
	if list == nil {
		list = all(ok("%s %s at %s answers in %v", r.Software, r.Version, r.Server, r.Latency.Round(10*time.Microsecond)))
	}
	return list
}

// sharedAdmission is a shared class that programs are meant to ask for: one of
// requests, or where the policy has an address to ask at, one of bytes.
func (f *Facts) sharedAdmission() (class string, ok bool) {
	a := &f.Policy.Admission
	for _, c := range a.Classes {
		if c.Shared && (c.PerHour > 0 || a.Listen.IsValid() && c.Rate > 0) {
			return c.Name, true
		}
	}
	return "", false
}
