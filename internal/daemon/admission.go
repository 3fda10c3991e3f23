package daemon

import (
	"fmt"

	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/internal/admission"
	"shaperd/internal/admission/api"
	"shaperd/internal/metrics"
	"shaperd/internal/store"
)

// prepareAdmission binds the address if it is another.
func (d *daemon) prepareAdmission(c *change) error {
	p := c.policy
	c.moving = d.policy == nil || p.Admission.Listen != d.policy.Admission.Listen
	if !c.moving || !p.Admission.Listen.IsValid() {
		return nil
	}
	s, err := api.Listen(p.Admission.Listen, &d.token, d.admission)
	if err != nil {
		return fmt.Errorf("%s: admission: %w", p.Name, err)
	}
	c.admitter = &endpoint{Server: s, readiness: make(readiness), what: "admission"}
	return nil
}

// commitAdmission has programs ask for the classes of the policy, where it says.
func (d *daemon) commitAdmission(c *change) {
	if err := d.admission.Update(admissionClasses(c.policy)); err != nil { // what configs lets pass is in order
		d.Log.Error("admission", "error", err)
	}
	if c.token != "" {
		d.token.Set(c.token)
	}
	if !c.moving {
		return
	}
	if d.admitter != nil {
		d.admitter.running.stop()
	}
	if d.admitter = c.admitter; d.admitter != nil {
		d.admitter.running = d.tasks.start(d.admitter)
		d.tasks.awaitReady(d.admitter)
		d.Log.Info("programs may ask for admission", "listen", d.admitter.Addr())
	}
}

// admissionClasses is what the policy lets programs take.
func admissionClasses(p *configs.Policy) (all []admission.Class) {
	outage, _ := store.ParseOutage(p.Shared.OnOutage) // where something is shared, newSharing has read it
	for _, c := range p.Admission.Classes {
		if c.Rate == 0 && c.PerHour == 0 {
			continue // a percentage, and nobody says of what
		}
		all = append(all, admission.Class{
			Name: c.Name, Rate: c.Rate, Burst: c.Burst, Requests: admission.RequestLimit{PerHour: c.PerHour, Burst: c.Requests},
			Keys: p.Admission.Keys, Shared: c.Shared, OnOutage: outage,
		})
	}
	return all
}

// admissionSnapshot returns what was decided so far. Any goroutine may call it.
func (d *daemon) admissionSnapshot() (all []metrics.Admission) {
	for _, s := range d.admission.Stats() {
		all = append(all, metrics.Admission{
			Class: s.Class, Alone: s.Alone, Keys: s.Keys, Waiters: s.Waiting,
			Decisions: map[string]uint64{"granted": s.Granted, "refused": s.Refused, "too_large": s.TooLarge, "outage": s.Outage},
		})
	}
	return all
}

// admitted is what programs asked for, for the status.
func (d *daemon) admitted(v *view) []admin.Admission {
	all := []admin.Admission{}
	stats := map[string]admission.Stats{}
	for _, s := range d.admission.Stats() {
		stats[s.Class] = s
	}
	for _, c := range v.policy.Admission.Classes {
		s, ok := stats[c.Name]
		if !ok {
			continue // it admits nobody
		}
		out := admin.Admission{
			Class: c.Name, Unit: "bytes", Rate: int64(c.Rate), Burst: int64(c.Burst), Shared: c.Shared,
			Granted: s.Granted, Refused: s.Refused, TooLarge: s.TooLarge, Outage: s.Outage, Keys: s.Keys, Waiting: s.Waiting,
		}
		if c.PerHour > 0 {
			out.Unit, out.PerHour, out.Burst = "requests", c.PerHour, c.Requests
		}
		all = append(all, out)
	}
	return all
}
