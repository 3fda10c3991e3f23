package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/internal/admin"
)

// control does what is asked on the control socket, for any goroutine: what
// changes something is done by the daemon's own.
type control struct{ *daemon }

var errDraining = &admin.RefusedError{Status: http.StatusConflict, Err: errors.New("the daemon ends: it drains")}

// own has f called by the goroutine that owns the daemon, and waits for it.
func (d *daemon) own(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case d.asked <- func() { answer <- f() }:
		return <-answer
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change is own for what is refused once the daemon drains.
func (d *daemon) change(ctx context.Context, f func() error) error {
	return d.own(ctx, func() error {
		if phase(d.phase.Load()) == draining {
			return errDraining
		}
		return f()
	})
}

func (c control) Reload(ctx context.Context) (out *admin.Reloaded, err error) {
	err = c.change(ctx, func() error {
		done, err := c.reload(admin.By(ctx))
		if err != nil {
			return &admin.RefusedError{Err: err}
		}
		out = done
		return nil
	})
	return out, err
}

// Set puts an override into force, in the place of an earlier one of the same class and link.
func (c control) Set(ctx context.Context, r admin.SetRequest) (out *admin.Changed, err error) {
	o := admin.Override{Link: r.Link, Class: r.Class, Rate: r.Rate, Ceil: r.Ceil, Burst: r.Burst}
	switch {
	case r.Rate == "" && r.Ceil == "" && r.Burst == "":
		return nil, &admin.RefusedError{Err: errors.New("nothing to set: give rate, ceil or burst")}
	case r.ForSeconds < 0 || r.ForSeconds > int64((365*24*time.Hour).Seconds()):
		return nil, &admin.RefusedError{Err: fmt.Errorf("%d seconds: give 1 second to a year, or none for until the next reload", r.ForSeconds)}
	case r.ForSeconds > 0:
		until := time.Now().Add(time.Duration(r.ForSeconds) * time.Second).Round(time.Second)
		o.Until = &until
	}
	err = c.change(ctx, func() error {
		if o.Until != nil {
			*o.Until = o.Until.In(c.file.Zone())
		}
		if c.rests(relayOf(r.Link)) {
			return drains(relayOf(r.Link))
		}
		next := slices.DeleteFunc(slices.Clone(c.overrides), func(old admin.Override) bool { return old.Link == o.Link && old.Class == o.Class })
		out, err = c.override(append(next, o))
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Until = o.Until
	return out, nil
}

// Reset ends overrides.
func (c control) Reset(ctx context.Context, r admin.ResetRequest) (out *admin.Changed, err error) {
	err = c.change(ctx, func() error {
		if err := c.file.Knows(r.Link, r.Class); err != nil {
			return &admin.RefusedError{Err: err}
		}
		next := slices.DeleteFunc(slices.Clone(c.overrides), func(o admin.Override) bool {
			return (r.Class == "" || r.Class == o.Class) && (r.Link == "" || r.Link == o.Link)
		})
		out, err = c.override(next)
		return err
	})
	return out, err
}

// override puts the file's policy with other overrides into force, or leaves all as it was.
func (d *daemon) override(overrides []admin.Override) (*admin.Changed, error) {
	p, err := d.file.At(time.Now(), asFile(overrides))
	if err != nil {
		return nil, &admin.RefusedError{Err: err}
	}
	before := d.policy
	if err := d.enforce(p, d.file.token); err != nil {
		return nil, err
	}
	d.overrides = overrides
	d.timed()
	changes := slices.DeleteFunc(RateChanges(before, p), func(c admin.RateChange) bool { return d.rests(relayOf(c.Link)) })
	return &admin.Changed{Changes: changes}, nil
}

// drains is the error of what cannot be done with a relay that was drained by hand.
func drains(relay string) error {
	return &admin.RefusedError{Status: http.StatusConflict, Err: fmt.Errorf("relay %q drains: the next reload starts it again", relay)}
}

// relayOf is the relay that a link is of; "" for an interface's.
func relayOf(link string) string {
	name, ok := strings.CutPrefix(link, "relay ")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, " ")
	return name
}

func asFile(overrides []admin.Override) (all []configs.Override) {
	for _, o := range overrides {
		all = append(all, configs.Override{Link: o.Link, Class: o.Class, Rate: o.Rate, Ceil: o.Ceil, Burst: o.Burst})
	}
	return all
}

// Drain has a relay stop accepting and its sessions end; the next reload starts it again.
func (c control) Drain(ctx context.Context, name string) error {
	return c.change(ctx, func() error {
		if err := c.view.Load().knowsRelay(name); err != nil {
			return err
		}
		i := slices.IndexFunc(c.relays, func(r *relay) bool { return r.config.Name == name })
		if i < 0 {
			return drains(name)
		}
		r := c.relays[i]
		c.retire(r)
		c.relays = slices.Delete(slices.Clone(c.relays), i, i+1)
		c.drained = append(c.drained, r)
		c.publish()
		c.Log.Info("relay drains: the next reload starts it again", "relay", name)
		return nil
	})
}

// SetLogLevel sets what is logged.
func (c control) SetLogLevel(_ context.Context, text string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil || !slices.Contains([]string{"debug", "info", "warn", "error"}, text) {
		return &admin.RefusedError{Err: fmt.Errorf("log level %q: write debug, info, warn or error", text)}
	}
	if c.Level == nil {
		return errors.New("the log has one level only")
	}
	c.Level.Set(level)
	return nil
}
