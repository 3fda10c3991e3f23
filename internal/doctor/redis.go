package doctor

import (
	"context"
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
func checkRedis(f *Facts) []Finding {
	const cost = "shared classes have what on_outage says, and their budgets do not follow demand"
	switch r := f.Redis; {
	case f.RedisErr != nil:
		return all(problem(f.RedisErr.Error(), cost+": "+f.Policy.Shared.OnOutage, "see what the error says, then run doctor again"))
	case r == nil:
		return nil
	case r.Latency > slowRedis:
		return all(warning(fmt.Sprintf("%s %s at %s takes %v to answer", r.Software, r.Version, r.Server, r.Latency.Round(time.Millisecond)),
			fmt.Sprintf("one that takes longer than %v counts as away", store.DefaultTimeout), "use one that is nearer"))
	case r.Eviction != "noeviction" && r.Eviction != "":
		return all(warning(fmt.Sprintf("%s %s at %s may drop keys when its memory is full (%s)", r.Software, r.Version, r.Server, r.Eviction),
			"budgets whose keys are dropped stand still for a lease's time", "maxmemory-policy noeviction, or a Redis for this alone"))
	default:
		return all(ok("%s %s at %s answers in %v", r.Software, r.Version, r.Server, r.Latency.Round(10*time.Microsecond)))
	}
}
