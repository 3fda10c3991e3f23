package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"shaperd/conn"
	"shaperd/internal/measure"
	"shaperd/shaper"
)

// Tolerance is how far a class may be off its promise, in percent.
const Tolerance = 2

const (
	// DefaultLength is long enough for rates that are exact to a few tenths of a percent.
	DefaultLength = 14 * time.Second
	// MinLength is long enough that a turn more or less of a class makes no difference.
	MinLength = 10 * time.Second

	settleTime     = 600 * time.Millisecond // from a change until rates are measured
	burstsLength   = 2 * time.Second        // of the last step, about
	burstsPerClass = 5
	quietTime      = 60 * time.Millisecond // before each burst: every bucket fills
	burstTime      = 20 * time.Millisecond // how much a class sends beyond its burst, at its ceil
)

// Options say how the demo is run.
type Options struct {
	Length time.Duration // of all steps together
	JSON   bool          // print the report only, for programs
}

// An OffError says what was not as promised.
type OffError struct {
	What    string
	Percent int // the tolerance
}

func (e *OffError) Error() string {
	return fmt.Sprintf("off by more than %d %%: %s", e.Percent, e.What)
}

// Run shows the demo on out: as moving bars if that is a terminal, else as a
// line each second, and then as a table. It returns an *OffError if a class was
// off its promise, and the context's cause when ctx is done. It puts a terminal
// back in order in any case.
func Run(ctx context.Context, out io.Writer, o Options) error {
	phase := (max(o.Length, MinLength) - burstsLength) / time.Duration(len(phases))
	return run(ctx, out, o.JSON, phase, promises)
}

// A phase is a time in which the same classes send.
type phase struct {
	name  string
	quiet string // the class that sends nothing
	text  string
}

var phases = []phase{
	{"all send", "", "Each class wants more than there is. Guarantees come first; the spare is borrowed by priority, then in proportion to guarantees."},
	{"web is quiet", "web", "The web's servers have nothing to send. The others borrow what it leaves: the link stays full."},
	{"web is back", "", "The web's servers send again. Its guarantee is there at once, whatever bulk had borrowed."},
}

// stepText returns the name of a step, and what it shows; the one after the phases is the bursts.
func stepText(step int) (name, text string) {
	if step < len(phases) {
		return phases[step].name, phases[step].text
	}
	return "bursts", "All is quiet, then one class after another sends alone. Its burst leaves at once, the rest at its ceil. A leaky class never bursts."
}

// A demo is one run. All of it belongs to the goroutine in run.
type demo struct {
	base    time.Time
	total   time.Duration
	link    shaper.Link
	classes []*class
	view    view
	closers []func()

	step     int // in phases, or len(phases): the bursts
	promised []promise
	report   report
}

// promiser is promises, or what a test puts in its place.
type promiser func(link shaper.Link, sends func(class string) bool) []promise

func run(ctx context.Context, out io.Writer, asJSON bool, length time.Duration, promised promiser) error {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &demo{base: time.Now(), total: length*time.Duration(len(phases)) + burstsLength}
	defer d.close()
	d.closers = append(d.closers, func() { cancel(nil) })
	if err := d.connect(ctx, cancel); err != nil {
		return err
	}
	d.view = newView(out, asJSON)
	d.view.open()
	err := d.steps(ctx, length, promised)
	d.view.close()
	if err != nil {
		return err
	}
	return conclude(out, asJSON, &d.report, d.report.print)
}

func (d *demo) now() time.Duration { return time.Since(d.base) }

// connect starts the relay and all connections; whatever breaks later is told to fail.
func (d *demo) connect(ctx context.Context, fail func(error)) error {
	cfg, err := loadPolicy()
	if err != nil {
		return err
	}
	d.link = cfg.Download
	ports := map[string]uint16{}
	for i := range d.link.Classes {
		c, err := newClass(&d.link.Classes[i], fail)
		if err != nil {
			return err
		}
		d.closers = append(d.closers, c.close)
		d.classes = append(d.classes, c)
		ports[c.Name] = c.addr().Port()
	}
	pointAt(cfg.Rules, ports)
	relay, err := conn.New(cfg, nil)
	if err != nil {
		return err
	}
	relayCtx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := relay.Run(relayCtx); err != nil {
			fail(fmt.Errorf("relay: %w", err))
		}
	}()
	d.closers = append(d.closers, func() { stop(); <-ended })
	addr := relay.Addrs()[0]
	for _, c := range d.classes {
		if err := c.connect(ctx, addr, connections[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

// close undoes connect: the relay ends last, since it waits for its sessions.
func (d *demo) close() {
	for _, c := range d.closers {
		c()
	}
}

func (d *demo) steps(ctx context.Context, length time.Duration, promised promiser) error {
	for i, p := range phases {
		d.step = i
		sends := func(class string) bool { return class != p.quiet }
		d.promised = promised(d.link, sends)
		for _, c := range d.classes {
			c.keepSending(sends(c.Name))
		}
		settle := min(settleTime, length/3)
		if err := d.wait(ctx, settle); err != nil {
			return err
		}
		for _, c := range d.classes {
			c.from = c.got.Now()
		}
		if err := d.wait(ctx, length-settle); err != nil {
			return err
		}
		d.measure(p.name, length-settle)
	}
	d.step = len(phases)
	return d.bursts(ctx)
}

// measure notes what each class got in the span since its time from.
func (d *demo) measure(name string, span time.Duration) {
	r := phaseResult{Phase: name, Seconds: span.Seconds()}
	for i, c := range d.classes {
		p := &d.promised[i]
		rate, each := measure.Rate(c.got.Since(c.from), span, len(c.clients))
		r.Classes = append(r.Classes, newClassResult(p, len(c.clients), rate*8, measure.Jain(each)))
	}
	d.report.Phases = append(d.report.Phases, r)
}

// bursts has each class send alone after quiet times.
func (d *demo) bursts(ctx context.Context) error {
	for _, c := range d.classes {
		c.keepSending(false)
		most, reason := c.mostAtOnce()
		d.report.Bursts = append(d.report.Bursts, burstResult{Class: c.Name, Configured: most, Reason: reason})
	}
	if err := d.until(ctx, d.allArrived); err != nil {
		return err
	}
	for i, c := range d.classes {
		for range burstsPerClass {
			if err := d.wait(ctx, quietTime); err != nil {
				return err
			}
			if err := d.burst(ctx, c, &d.report.Bursts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// burst has c send its burst and some more, and notes in r what came at once if
// it is the most so far. It is counted from before the class began to send:
// whatever comes late on its way makes it smaller, and nothing makes it larger.
func (d *demo) burst(ctx context.Context, c *class, r *burstResult) error {
	perSecond := float64(c.Ceil) / 8
	began := c.got.Now()
	c.sendOnce(int(r.Configured) + int(perSecond*burstTime.Seconds()))
	if err := d.until(ctx, c.arrived); err != nil {
		return err
	}
	r.Measured = max(r.Measured, int64(measure.Burst(c.got.Since(began), began, perSecond)))
	return nil
}

func (d *demo) allArrived() bool {
	return !slices.ContainsFunc(d.classes, func(c *class) bool { return !c.arrived() })
}

func (d *demo) wait(ctx context.Context, t time.Duration) error {
	end := d.now() + t
	return d.until(ctx, func() bool { return d.now() >= end })
}

// until draws what happens until ok reports true.
func (d *demo) until(ctx context.Context, ok func() bool) error {
	return until(ctx, ok, func() {
		if now := d.now(); d.view.due(now) {
			d.view.draw(d.frame(now, d.view.window()))
		}
	})
}

// frame is what is to be seen now, with rates taken over the window before.
func (d *demo) frame(now, window time.Duration) *frame {
	f := &frame{elapsed: now, total: d.total, step: d.step, link: float64(d.link.Rate)}
	for _, c := range d.classes {
		f.connections += len(c.clients)
	}
	if d.step == len(phases) {
		f.bursts = d.report.Bursts
		return f
	}
	for i, c := range d.classes {
		f.rates = append(f.rates, liveRate{d.promised[i], float64(c.got.Bytes(c.got.Now()-window)) * 8 / window.Seconds(), len(c.clients)})
	}
	return f
}
