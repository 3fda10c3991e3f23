package netlink

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// applyTries is how often an apply begins again because an interface came or went meanwhile.
const applyTries = 5

// apply brings the kernel to what c says, all of it or nothing: when a step is
// refused, what was there before is put back. It returns what it changed.
// Leave decides about interfaces that cannot be as c wants them, or need not be
// now: true leaves such a one as it is, and its error is for leave to keep; with
// a nil leave they fail the apply.
func (d *Datapath) apply(c *Config, leave func(*site, error) bool) (p *Plan, err error) {
	for range applyTries {
		p, err = d.applyOnce(c, leave)
		switch {
		case errors.Is(err, unix.ENODEV):
		case d.kernel.FqCodel && errors.Is(err, unix.ENOENT) && strings.Contains(err.Error(), kindFqCodel):
			d.log.Warn("the kernel has no fq_codel after all (module sch_fq_codel): fifos queue", "error", err)
			d.kernel.FqCodel = false
		default:
			return p, err
		}
	}
	return p, err
}

func (d *Datapath) applyOnce(c *Config, leave func(*site, error) bool) (p *Plan, err error) {
	sites, minors, missing, err := d.sites(c)
	if err != nil {
		return nil, err
	}
	cl, err := d.classify(c, minors, sites, false)
	if err != nil {
		return nil, err
	}
	settled := false
	defer func() {
		if cl != nil && !settled {
			err = errors.Join(err, d.drop(cl))
		}
	}()
	if leave != nil {
		sites = slices.DeleteFunc(sites, func(s *site) bool { return leave(s, s.check()) })
	}
	if err := checkAll(sites); err != nil {
		return nil, err
	}
	for _, s := range sites {
		if s.device != nil && len(s.egress.qdiscs) > 0 && s.egressHas.root() == nil {
			d.prior[s.device.Index] = s.egressHas.other
			s.egressHas.prior = s.egressHas.other
		}
	}
	before := d.snapshot(sites)
	p = &Plan{Missing: missing, before: before, classifier: cl}
	if err = d.execute(sites, p, cl); err == nil && len(p.Changes) > 0 {
		err = d.verify(sites)
	}
	if err != nil {
		return nil, errors.Join(err, d.restore(before))
	}
	if settled = true; cl != nil {
		d.settle(cl)
	}
	p.Notes = d.notes(sites, cl)
	for _, s := range sites {
		if s.device != nil && s.config != nil {
			d.condition(s.device.Name).index = s.device.Index
		}
	}
	return p, nil
}

// execute sends the changes of the sites, and adds them to the plan.
func (d *Datapath) execute(sites []*site, p *Plan, cl *classifier) error {
	var changes, after []Change
	if cl != nil {
		changes = cl.change()
	}
	for _, s := range sites {
		made, gone := s.servantChanges()
		if len(made) > 0 {
			servant, err := d.addServant(s.device)
			if err != nil {
				return err
			}
			if s.servant = servant; s.egressHas.hook == "" {
				if err := d.rememberHook(servant); err != nil {
					return fmt.Errorf("write the alias of %s: %w", servant.Name, explain(err))
				}
			}
		}
		p.Changes, after = append(p.Changes, made...), append(after, gone...)
		changes = append(changes, s.diff()...)
	}
	sortByPhase(changes)
	p.Changes = slices.Concat(p.Changes, changes, after)
	built := slices.IndexFunc(changes, func(c Change) bool { return c.phase >= phaseFilter })
	if built < 0 {
		built = len(changes)
	}
	if err := d.send(changes[:built]); err != nil {
		return err
	}
	if cl != nil {
		if err := cl.update(); err != nil {
			return err
		}
	}
	if err := d.send(changes[built:]); err != nil {
		return err
	}
	for _, s := range sites {
		if s.servant != nil && !s.wantsIngress() {
			if err := d.removeServant(s.servant); err != nil {
				return err
			}
			s.servant = nil
		}
	}
	return nil
}

// send sends the changes in order. What is to be deleted may have gone already.
func (d *Datapath) send(changes []Change) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.send.typ == 0 })
	requests := make([]request, len(changes))
	for i := range changes {
		requests[i] = changes[i].send
	}
	return d.socket.do(requests, func(i int, err error) error {
		if gone := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL); gone && changes[i].Verb == verbDelete {
			return nil
		}
		return changes[i].refused(err)
	})
}

// verify reads all again: the kernel may have taken something and meant something else.
func (d *Datapath) verify(sites []*site) error {
	states, err := d.socket.observe()
	if err != nil {
		return err
	}
	for _, s := range sites {
		s.observe(states, d.prior)
		left := s.diff()
		if slices.ContainsFunc(left, func(c Change) bool { return strings.Contains(c.Command, " match mark ") }) {
			return errors.New("the kernel's u32 filters do not look at marks (CONFIG_CLS_U32_MARK): remove fwmark from the rules, or allow eBPF (CAP_BPF and CAP_PERFMON)")
		}
		if len(left) > 0 {
			return fmt.Errorf("the kernel took it and has something else: still to do: %s", left[0].String())
		}
	}
	return nil
}

// snapshot returns sites that want what the given ones have.
func (d *Datapath) snapshot(sites []*site) (before []*site) {
	for _, s := range sites {
		b := *s
		b.egress, b.ingress = s.egressHas.wanted(), s.ingressHas.wanted()
		b.egress.filters, b.ingress.filters = d.resend(s.egressHas.filters), d.resend(s.ingressHas.filters)
		before = append(before, &b)
	}
	return before
}

// restore puts back what a snapshot has, as far as it can.
func (d *Datapath) restore(before []*site) error {
	states, err := d.socket.observe()
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	for _, s := range before {
		if s.device != nil && s.servant == nil { // it may have been made meanwhile
			if l, err := d.links.LinkByName(ifbName(s.device.Name)); err == nil {
				if dev := newDevice(l); dev.servant() {
					s.servant = dev
				}
			}
		}
		s.observe(states, d.prior)
	}
	if err := d.execute(before, &Plan{}, nil); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("undo: %w", err)
	}
	return nil
}
