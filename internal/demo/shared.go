package demo

import (
	"context"
	"io"
	"time"

	"shaperd/internal/measure"
	"shaperd/shaper"
)

// sharedWindow is what the sum of all relays is never more in than the rate's
// part of it and the burst.
const sharedWindow = 100 * time.Millisecond

// SharedOptions say how the demo of shared classes is run.
type SharedOptions struct {
	Program string // a shaperd, to be run three times
	JSON    bool   // print the report only, for programs
}

// A sharedDemo is one run. All of it belongs to the goroutine in runShared.
type sharedDemo struct {
	class                  *shaper.Class
	folder                 string // of files and sockets, until the end
	redisServer, redisPort string
	redis                  *process
	hosts                  []*host
	got                    *measure.Recorder // of all clients
	sampled                time.Duration     // when the last sample was taken, of got's clock

	steps       []sharedStep
	begins      []time.Duration // of the steps, since base
	base, total time.Duration   // base is of got's clock
	step        int
	promised    []float64
	view        view
	report      sharedReport
}

// RunShared shows on out how hosts share a class: three shaperd with a relay each
// divide one rate by a Redis, while what their clients want changes and the Redis
// dies and comes back empty. It needs redis-server on PATH, and returns an
// *OffError if a relay was off its share, or all together above the rate.
func RunShared(ctx context.Context, out io.Writer, o SharedOptions) error {
	return runShared(ctx, out, o, sharedSteps, promisedShares)
}

func runShared(ctx context.Context, out io.Writer, o SharedOptions, steps []sharedStep, promised sharer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &sharedDemo{got: measure.NewRecorder(), steps: steps, view: newView(out, o.JSON)}
	for _, s := range steps {
		d.begins = append(d.begins, d.total)
		d.total += s.settle + s.length
	}
	defer d.close()
	defer cancel(nil) // first: what breaks from here on is meant to
	if err := d.build(ctx, o.Program, cancel); err != nil {
		return err
	}
	d.view.open()
	err := d.run(ctx, cancel, promised)
	d.view.close()
	if err != nil {
		return err
	}
	return conclude(out, o.JSON, &d.report, d.print)
}

func (d *sharedDemo) run(ctx context.Context, fail func(error), promised sharer) error {
	rate := float64(d.class.Budget)
	d.report.Rate, d.report.Burst = rate, int64(d.class.Burst)
	d.base = d.got.Now()
	for i := range d.steps {
		s := &d.steps[i]
		d.step, d.promised = i, promised(rate, s)
		began := d.got.Now()
		switch s.redis {
		case dies:
			d.redis.kill()
		case returns:
			if err := d.startRedis(ctx, fail); err != nil {
				return err
			}
		case stays:
		}
		for n, h := range d.hosts {
			h.want(s.wants[n])
		}
		if err := d.show(ctx, s.settle); err != nil {
			return err
		}
		from := d.got.Now()
		if err := d.show(ctx, s.length); err != nil {
			return err
		}
		d.measure(s, began, from)
	}
	return nil
}

// measure notes what each relay's clients got since from, and the most that all
// got at once in any window since the step began.
func (d *sharedDemo) measure(s *sharedStep, began, from time.Duration) {
	list := d.got.Since(from)
	r := sharedStepResult{Step: s.name, Seconds: s.length.Seconds()}
	for i, h := range d.hosts {
		rate, _ := measure.Rate(of(i, list), s.length, connectionsPerRelay)
		r.add(h.name, d.promised[i], rate*8)
	}
	r.Most = measure.Most(d.got.Since(began-sharedWindow), sharedWindow)
	r.AtMost = d.report.atMost()
	d.report.Steps = append(d.report.Steps, r)
}

// show draws what happens for a time.
func (d *sharedDemo) show(ctx context.Context, length time.Duration) error {
	end := d.got.Now() + length
	return until(ctx, func() bool { return d.got.Now() >= end }, func() {
		d.sample()
		if now := d.got.Now() - d.base; d.view.due(now) {
			d.view.draw(d.frame(now))
		}
	})
}

// sample adds to the picture what has arrived lately, if it is time.
func (d *sharedDemo) sample() {
	now := d.got.Now()
	span := now - d.sampled
	if span < kernelSample {
		return
	}
	list := d.got.Since(d.sampled)
	d.sampled = now
	for i, h := range d.hosts {
		bytes := 0
		for _, a := range of(i, list) {
			bytes += a.N
		}
		h.samples = append(h.samples, sample{now - d.base, float64(bytes) * 8 / span.Seconds()})
	}
}
