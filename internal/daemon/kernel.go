package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"

	"shaperd/configs"
	"shaperd/internal/metrics"
	"shaperd/netlink"
)

// A kernel is the task that keeps the interfaces shaped. What it shapes is in
// force before it runs; when it ends, the kernel is left without anything of
// ours, unless it is to keep it.
type kernel struct {
	*netlink.Datapath
	readiness
	lock    *lock
	running *running       // nil until started
	keep    atomic.Bool    // what shapes stays when the task ends
	has     netlink.Config // what was put into force last
}

// shape puts a policy with the shares into force on the interfaces, all of it or nothing.
func (k *kernel) shape(p *configs.Policy, s shares) (*netlink.Plan, error) {
	next := KernelConfig(s.policy(p))
	plan, err := k.Apply(next)
	if err != nil {
		return nil, describeKernel(p, err)
	}
	k.has = next
	return plan, nil
}

// reshape is shape for other shares of the policy in force: it writes nothing where none has changed.
func (k *kernel) reshape(p *configs.Policy, s shares) error {
	if k == nil || reflect.DeepEqual(KernelConfig(s.policy(p)), k.has) {
		return nil
	}
	_, err := k.shape(p, s)
	return err
}

func (k *kernel) Run(ctx context.Context) error {
	close(k.readiness)
	err := k.Datapath.Run(ctx)
	if !k.keep.Load() {
		_, clearing := k.Clear()
		err = errors.Join(err, clearing)
	}
	k.Close()
	return err
}

func (k *kernel) String() string { return "kernel datapath" }

// Close gives back the datapath and its lock; the kernel keeps what it has.
func (k *kernel) Close() {
	k.Datapath.Close()
	k.lock.Close()
}

// KernelConfig is what the policy says of interfaces.
func KernelConfig(p *configs.Policy) netlink.Config {
	c := netlink.Config{Rules: p.Rules}
	for _, i := range p.Interfaces {
		c.Interfaces = append(c.Interfaces, netlink.Interface{
			Name: i.Name, Egress: i.Egress, Ingress: i.Ingress, Overhead: i.Overhead, Queue: i.Queue, Takeover: i.Takeover,
		})
	}
	return c
}

// prepareKernel puts the policy into force on the interfaces, all of it or
// nothing, before anything else is committed: it is the only part that can fail
// then. It opens the datapath with the first policy that has interfaces.
func (d *daemon) prepareKernel(c *change) error {
	k := d.kernel
	switch {
	case len(c.policy.Interfaces) == 0:
		return nil
	case k == nil:
		held, err := lockKernel()
		if err != nil {
			return err
		}
		path, err := netlink.Open(d.Log)
		if err != nil {
			held.Close()
			return err
		}
		k = &kernel{Datapath: path, lock: held, readiness: make(readiness)}
	}
	plan, err := k.shape(c.policy, d.shares)
	if err != nil {
		if k != d.kernel {
			k.Close()
		}
		return err
	}
	c.kernel = k
	for i := range plan.Changes {
		d.Log.Debug("kernel", "change", plan.Changes[i].String())
	}
	for _, note := range plan.Notes {
		d.Log.Warn("kernel", "note", note)
	}
	for _, name := range plan.Missing {
		d.Log.Warn("waiting for an interface", "interface", name)
	}
	d.Log.Info("kernel datapath is in force", "interfaces", len(c.policy.Interfaces), "changes", len(plan.Changes))
	return nil
}

// describeKernel names the place in the policy for errors that are about one interface.
func describeKernel(p *configs.Policy, err error) error {
	var out []error
	for _, e := range Reasons(err) {
		line := 0
		device := ""
		if foreign, ok := errors.AsType[*netlink.ForeignError](e); ok {
			device = foreign.Device
		} else if missing, ok := errors.AsType[*netlink.MissingError](e); ok {
			device = missing.Device
		}
		for _, i := range p.Interfaces {
			if i.Name == device {
				line = i.Line
			}
		}
		if line > 0 {
			e = fmt.Errorf("%s:%d: %w", p.Name, line, e)
		} else {
			e = fmt.Errorf("%s: %w", p.Name, e)
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}

// commitKernel starts or ends the task that keeps the interfaces shaped.
func (d *daemon) commitKernel(k *kernel) {
	switch k {
	case d.kernel:
	case nil: // no interfaces any more
		d.kernel.keep.Store(false)
		d.kernel.running.stop()
		<-d.kernel.running.ended
		d.Log.Info("kernel datapath removed")
	default:
		k.running = d.tasks.start(k)
		d.tasks.awaitReady(k)
	}
	if d.kernel = k; k != nil {
		k.keep.Store(d.policy.KeepOnExit)
	}
	d.shaping.Store(k)
}

// kernelSnapshot returns the statistics of the kernel datapath. Any goroutine may call it.
func (d *daemon) kernelSnapshot() (m metrics.Kernel) {
	if k := d.shaping.Load(); k != nil {
		s, err := k.Stats()
		switch {
		case err == nil:
			m = kernelMetrics(s)
		case errors.Is(err, os.ErrClosed): // its task has ended
		default:
			d.Log.Warn("read the kernel's counters", "error", err)
			d.readErrors.Add(1)
		}
	}
	m.ReadErrors = d.readErrors.Load()
	return m
}

func kernelMetrics(s netlink.Stats) (m metrics.Kernel) {
	for _, l := range s.Links {
		out := metrics.KernelLink{
			Name: l.Name, Rate: l.Rate, Applied: l.Applied, Achieved: l.Achieved,
			Bytes: l.Bytes, Packets: l.Packets, Drops: l.Drops, Overlimits: l.Overlimits, Unshaped: l.Unshaped,
		}
		for _, c := range l.Classes {
			out.Classes = append(out.Classes, metrics.KernelClass(c))
		}
		m.Links = append(m.Links, out)
	}
	for _, i := range s.Interfaces {
		m.Interfaces = append(m.Interfaces, metrics.KernelInterface{Name: i.Name, Present: i.Present, Drift: i.Drift, Repairs: i.Repairs})
	}
	return m
}

// PlanKernel compares the interfaces of the policy with the kernel's. It writes nothing.
func PlanKernel(p *configs.Policy) (*netlink.Plan, error) {
	return withKernel(p, (*netlink.Datapath).Plan)
}

// ApplyKernel puts the policy into force on its interfaces, all of it or
// nothing, and undoes it unless keep says that it is to stay. An interface that
// is named, not matched by a pattern, has to exist.
func ApplyKernel(p *configs.Policy, keep func(*netlink.Plan) bool) (*netlink.Plan, error) {
	return withLock(p, func(k *netlink.Datapath, c netlink.Config) (*netlink.Plan, error) {
		if err := k.Require(c); err != nil {
			return nil, err
		}
		plan, err := k.Apply(c)
		if err != nil || keep(plan) {
			return plan, err
		}
		if err := k.Undo(plan); err != nil {
			return nil, err
		}
		return nil, errors.New("not confirmed: what was there before is back")
	})
}

// ClearKernel removes all that shaperd has in the kernel.
func ClearKernel() (*netlink.Plan, error) {
	return withLock(&configs.Policy{}, func(k *netlink.Datapath, _ netlink.Config) (*netlink.Plan, error) { return k.Clear() })
}

// withLock is withKernel for what writes: not beside a daemon, which would undo it.
func withLock(p *configs.Policy, do func(*netlink.Datapath, netlink.Config) (*netlink.Plan, error)) (*netlink.Plan, error) {
	held, err := lockKernel()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	return withKernel(p, do)
}

func withKernel(p *configs.Policy, do func(*netlink.Datapath, netlink.Config) (*netlink.Plan, error)) (*netlink.Plan, error) {
	k, err := netlink.Open(nil)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	plan, err := do(k, KernelConfig(p))
	if err != nil {
		return nil, describeKernel(p, err)
	}
	return plan, nil
}
