package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"shaperd/internal/admission"
	"shaperd/internal/store"
)

// port is one that nothing else is likely to have.
const port = "46379"

// A contender decides once.
type contender struct {
	name   string
	decide func(context.Context) error
}

var errRefused = errors.New("refused")

// shared measures decisions of a class that hosts share.
func shared(ctx context.Context, o options, dir string) error {
	stop, err := start(ctx, filepath.Join(dir, "redis.pid"), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--pidfile", filepath.Join(dir, "redis.pid"), "--dir", dir)
	if err != nil {
		return err
	}
	defer stop()
	ours, err := newAdmission()
	if err != nil {
		return err
	}
	defer ours.store.Close()
	if _, err := ours.Take(ctx, request); err != nil { // makes the data set, in which buckets begin empty
		return err
	}
	bare := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: 2, DisableIdentity: true})
	defer bare.Close()
	source, err := os.ReadFile("internal/admission/take.lua")
	if err != nil {
		return err
	}
	sum, err := bare.ScriptLoad(ctx, string(source)).Result()
	if err != nil {
		return err
	}
	other, err := newThrottled(bare)
	if err != nil {
		return err
	}
	keys := []string{"bare:bucket", "bare:made"}
	all := []contender{
		{"shaperd", ours.decide},
		{"EVALSHA of go-redis", func(ctx context.Context) error {
			return bare.EvalSha(ctx, sum, keys, int64(1e12), int64(1e13), int64(28800)).Err()
		}},
		{"throttled v2", func(ctx context.Context) error {
			limited, _, err := other.RateLimitCtx(ctx, "k", 1)
			if err == nil && limited {
				err = errRefused
			}
			return err
		}},
	}
	for _, callers := range []int{1, 16} {
		if err := compare(ctx, o, callers, all); err != nil {
			return err
		}
	}
	return nil
}

// compare has the contenders take turns, each with so many callers at once.
func compare(ctx context.Context, o options, callers int, all []contender) error {
	rates := make([][]float64, len(all))
	for round := range o.rounds + 1 {
		for i, c := range all {
			rate, err := decisions(ctx, o.turn(), callers, c.decide)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // the first one connects
				rates[i] = append(rates[i], rate)
			}
		}
	}
	fmt.Printf("shared class, %d at once: %s %.0f decisions/s\n", callers, all[0].name, median(rates[0]))
	for i := 1; i < len(all); i++ {
		var ratios []float64
		for round := range rates[i] {
			ratios = append(ratios, rates[i][round]/rates[0][round])
		}
		fmt.Printf("  its time for a decision, in that of %s: %.2f (%s)\n", all[i].name, median(ratios), spread(ratios))
	}
	return nil
}

func decisions(ctx context.Context, length time.Duration, callers int, decide func(context.Context) error) (perSecond float64, err error) {
	var (
		n  atomic.Int64
		mu sync.Mutex
		wg sync.WaitGroup
	)
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for time.Since(began) < length {
				if one := decide(ctx); one != nil {
					mu.Lock()
					defer mu.Unlock()
					err = one
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(began).Seconds(), err
}

type shaperdHost struct {
	*admission.Admission
	store *store.Store
}

func newAdmission() (*shaperdHost, error) {
	s, err := store.New(store.Options{Addrs: []string{"127.0.0.1:" + port}, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	a := admission.New()
	a.SetStore(s, "bench")
	return &shaperdHost{a, s}, a.Update([]admission.Class{{Name: "api", Requests: admission.RequestLimit{PerHour: 1e12, Burst: 1e9}, Shared: true}})
}

var request = admission.Request{Class: "api", Cost: 1}

func (h *shaperdHost) decide(ctx context.Context) error {
	d, err := h.Take(ctx, request)
	if err == nil && (d.Alone || !d.Granted) {
		err = errRefused
	}
	return err
}

func newThrottled(c redis.UniversalClient) (*throttled.GCRARateLimiterCtx, error) {
	s, err := goredisstore.NewCtx(c, "throttled:")
	if err != nil {
		return nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerSec(1e9), MaxBurst: 1e9})
	if err == nil {
		l.SetMaxCASAttemptsLimit(1000) // with less it gives up when several ask at once
	}
	return l, err
}
