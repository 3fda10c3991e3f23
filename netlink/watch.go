package netlink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	settleTime = 100 * time.Millisecond // after a notification, for what comes with it
	settleMost = 400 * time.Millisecond // since the first of them
	// Whoever changes back what was repaired is fought ever more slowly.
	firstBackoff = time.Second
	mostBackoff  = time.Minute
	quietTime    = 5 * time.Minute // after which it is forgotten
)

// A condition is what is known of an interface beyond what the kernel has.
type condition struct {
	index   int // of the interface when it was last put into force
	repairs uint64
	last    time.Time     // of the last repair
	backoff time.Duration // until the next
	due     time.Time     // a repair waits until then
	problem string        // why it is not as the policy wants it; empty when it is
	other   string        // who was seen to change it last
}

// events are what the kernel says that others changed, since they were last taken.
type events struct {
	first, last time.Time
	by          map[int32]string // by index of the device: who
}

// Run keeps the kernel as the last Apply has it: it puts interfaces that come
// into force and repairs what others change, within a second, until ctx is
// done. Then it returns nil and leaves all as it is. It is called once.
func (d *Datapath) Run(ctx context.Context) error {
	if err := d.listener.hear(settleTime / 2); err != nil {
		return err
	}
	heard := make(chan message, 64)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		defer close(heard)
		d.listener.listen(ctx, heard)
	}()
	defer func() { <-listening }()
	d.watch(ctx, heard)
	return nil
}

// listen passes on what it hears until ctx is done. After a loss it says so by a message without a type.
func (s *socket) listen(ctx context.Context, to chan<- message) {
	pass := func(m message) bool {
		select {
		case to <- m:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for ctx.Err() == nil {
		messages, err := s.receive()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil: // most of all ENOBUFS: read all again
			messages = []message{{}}
		}
		for _, m := range messages {
			m.body = append([]byte(nil), m.body...)
			if !pass(m) {
				return
			}
		}
	}
}

// watch repairs after what it hears has settled, and what waits for its backoff.
func (d *Datapath) watch(ctx context.Context, heard <-chan message) {
	ev := events{by: map[int32]string{}}
	now := time.Now()
	ev.first, ev.last = now, now // what happened before anybody listened
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-heard:
			if !ok {
				return
			}
			d.note(&ev, &m)
		case <-timer.C:
			if !ev.first.IsZero() && time.Now().Before(ev.due()) {
				break
			}
			d.repair(ev.by)
			ev = events{by: map[int32]string{}}
		}
		if next := d.nextRepair(ev.due()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// due is when the events have settled; zero without any.
func (e *events) due() time.Time {
	if e.first.IsZero() {
		return time.Time{}
	}
	due := e.last.Add(settleTime)
	if most := e.first.Add(settleMost); most.Before(due) {
		return most
	}
	return due
}

// note takes down a notification, unless we caused it.
func (d *Datapath) note(e *events, m *message) {
	if m.port != 0 && m.port == d.port {
		return
	}
	now := time.Now()
	if e.first.IsZero() {
		e.first = now
	}
	e.last = now
	switch m.typ {
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC, unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER:
		t, _ := parseTcmsg(m.body)
		e.by[t.index] = whose(m.port)
	}
}

// whose names the process of a netlink port, as far as it can be known: most
// programs' first socket has the number of their process.
func whose(port uint32) string {
	if port == 0 {
		return ""
	}
	name, err := os.ReadFile("/proc/" + strconv.Itoa(int(port)) + "/comm")
	if err != nil {
		return fmt.Sprintf("process %d, which has ended", port)
	}
	return fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), port)
}

// nextRepair is when something is to be done: after the events, or when a backoff ends. Zero is never.
func (d *Datapath) nextRepair(next time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conditions {
		if !c.due.IsZero() && (next.IsZero() || c.due.Before(next)) {
			next = c.due
		}
	}
	return next
}

// repair brings the kernel back to the policy in force. By says who changed what, by index.
func (d *Datapath) repair(by map[int32]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	seen, arrived := map[string]*site{}, map[string]bool{}
	d.condition("").due = time.Time{}
	plan, err := d.apply(&d.config, func(s *site, err error) bool {
		if s.device == nil {
			return false
		}
		if s.config == nil && len(s.diff()) == 0 {
			return true
		}
		seen[s.device.Name] = s
		c := d.condition(s.device.Name)
		c.due = time.Time{}
		arrived[s.device.Name] = c.index != s.device.Index
		if who := by[int32(s.device.Index)]; who != "" {
			c.other = who
		}
		if s.servant != nil && by[int32(s.servant.Index)] != "" {
			c.other = by[int32(s.servant.Index)]
		}
		if err != nil {
			d.problem(s.device.Name, err.Error())
			return true
		}
		return !arrived[s.device.Name] && len(s.diff()) > 0 && c.wait(now)
	})
	if err != nil {
		d.log.Error("repair", "error", err)
		d.retry(now)
		return
	}
	delete(d.conditions, "")
	changed := map[string]*Change{}
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if changed[c.Device] == nil {
			changed[c.Device] = c
		}
	}
	for name, s := range seen {
		c := d.condition(name)
		if s.check() == nil && c.due.IsZero() {
			d.problem(name, "")
		}
		first := changed[name]
		if first == nil && s.servant != nil {
			first = changed[s.servant.Name]
		}
		switch {
		case first == nil:
		case arrived[name]:
			d.log.Info("interface is shaped", "interface", name)
		default:
			d.repaired(name, c, first, now)
		}
	}
	for name, c := range d.conditions {
		if seen[name] == nil { // it has gone; who comes back is still known for a while
			if c.due, c.index, c.problem = (time.Time{}), 0, ""; c.last.Add(quietTime).Before(now) {
				delete(d.conditions, name)
			}
		}
	}
}

// wait reports whether the interface's next repair is not due yet, and sets when it is.
func (c *condition) wait(now time.Time) bool {
	if now.Sub(c.last) > quietTime {
		c.backoff = 0
	}
	if at := c.last.Add(c.backoff); c.backoff > 0 && now.Before(at) {
		c.due = at
		return true
	}
	return false
}

// retry has all be tried again after an apply that failed.
func (d *Datapath) retry(now time.Time) {
	c := d.condition("") // of no interface
	c.last, c.backoff = now, min(max(2*c.backoff, firstBackoff), mostBackoff)
	c.due = now.Add(c.backoff)
}

func (d *Datapath) repaired(name string, c *condition, first *Change, now time.Time) {
	fights := c.repairs > 0 && now.Sub(c.last) < quietTime
	if fights {
		c.backoff = min(max(2*c.backoff, firstBackoff), mostBackoff)
	}
	log := d.log.With("interface", name, "first", first.String())
	if c.other != "" {
		log = log.With("changed_by", c.other)
	}
	if fights {
		log.Warn("repaired again: another program manages this interface too", "next_repair_after", c.backoff)
	} else {
		log.Warn("repaired")
	}
	c.repairs++
	c.last, c.other = now, ""
}

func (d *Datapath) condition(name string) *condition {
	c := d.conditions[name]
	if c == nil {
		c = &condition{}
		d.conditions[name] = c
	}
	return c
}

// problem notes why an interface is not as the policy wants it, and logs it once.
func (d *Datapath) problem(name, text string) {
	c := d.condition(name)
	if text != "" && text != c.problem {
		d.log.Warn("not shaped", "interface", name, "reason", text)
	}
	c.problem = text
}
