package netlink

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Plan is the difference between a policy and the kernel.
type Plan struct {
	// Changes are what Apply would do, in order.
	Changes []Change `json:"changes"`
	// Missing are the names and patterns of the policy that no interface has.
	Missing []string `json:"missing,omitempty"`
	// Notes are what the policy wants and the kernel cannot do exactly so, in words.
	Notes []string `json:"notes,omitempty"`

	before     []*site // what was there before it was applied
	classifier *classifier
	config     Config // that was in force then
}

// A site is one interface with what it is to have: a tree for what leaves, and
// one at a device of ours for what arrives.
type site struct {
	config  *Interface // nil when the policy does not know it any more
	device  *Device
	servant *Device // for what arrives; nil until it is made, or when there is none
	egress  tree
	ingress tree
	wrong   error // why it cannot have them

	egressHas, ingressHas *state
}

// sites decides what every interface is to have. Interfaces that the policy
// does not name are included where something of ours is left.
func (d *Datapath) sites(c *Config) (sites []*site, minors map[string]uint16, missing []string, err error) {
	devices, err := d.devices()
	if err != nil {
		return nil, nil, nil, err
	}
	states, err := d.socket.observe()
	if err != nil {
		return nil, nil, nil, err
	}
	if minors, err = newMinors(c.links()); err != nil {
		return nil, nil, nil, err
	}
	servants := map[string]*Device{}
	d.forget(devices)
	for _, dev := range devices {
		if dev.servant() {
			name, _ := dev.serves()
			servants[name] = dev
		}
	}
	found := map[*Interface]bool{}
	for _, dev := range devices {
		if dev.servant() {
			continue
		}
		entry := c.find(dev.Name)
		if entry != nil && dev.Loopback && entry.Name != dev.Name {
			entry = nil // a pattern that means all does not mean this
		}
		found[entry] = true
		servant := servants[dev.Name]
		delete(servants, dev.Name)
		s := &site{config: entry, device: dev, servant: servant}
		s.plan(d.kernel, minors)
		sites = append(sites, s)
	}
	for _, orphan := range servants { // their interface has gone
		sites = append(sites, &site{servant: orphan})
	}
	for _, s := range sites {
		s.observe(states, d.prior)
	}
	for i := range c.Interfaces {
		if e := &c.Interfaces[i]; !found[e] {
			missing = append(missing, e.Name)
		}
	}
	return sites, minors, missing, nil
}

// classify gives the trees with classes their filters; nil when there are none.
func (d *Datapath) classify(c *Config, minors map[string]uint16, sites []*site, dry bool) (*classifier, error) {
	var trees []*tree
	for _, s := range sites {
		for _, t := range []*tree{&s.egress, &s.ingress} {
			if len(t.classes) > 0 {
				trees = append(trees, t)
			}
		}
	}
	if len(trees) == 0 {
		return nil, nil
	}
	if c == &d.config && d.current != nil { // compiled already
		for _, t := range trees {
			t.filters = d.current.filters
		}
		return d.current, nil
	}
	cl, err := d.newClassifier(c.Rules, minors, sites, dry)
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		t.filters = cl.filters
	}
	return cl, nil
}

// forget drops what is remembered of devices that have gone.
func (d *Datapath) forget(devices []*Device) {
	there := map[int]bool{}
	for _, dev := range devices {
		there[dev.Index] = true
	}
	maps.DeleteFunc(d.prior, func(index int, _ foreign) bool { return !there[index] })
	maps.DeleteFunc(d.meters, func(k meterKey, _ *meter) bool { return !there[k.index] })
}

// plan makes the trees of a site.
func (s *site) plan(k Kernel, minors map[string]uint16) {
	if s.config == nil {
		return
	}
	var errs [2]error
	s.device.queueTime = s.config.Queue
	if s.config.Egress.Rate > 0 {
		s.egress, errs[0] = newTree(&s.config.Egress, s.device, k, s.config.Overhead, minors)
	}
	if s.config.Ingress.Rate > 0 {
		s.ingress, errs[1] = newTree(&s.config.Ingress, s.device, k, s.config.Overhead, minors)
	}
	s.wrong = errors.Join(errs[:]...)
}

func (s *site) wantsIngress() bool { return len(s.ingress.qdiscs) > 0 }

// observe picks what the kernel has at the site.
func (s *site) observe(states map[int32]*state, prior map[int]foreign) {
	at := func(d *Device) *state {
		if d == nil || states[int32(d.Index)] == nil {
			return &state{}
		}
		return states[int32(d.Index)]
	}
	s.egressHas, s.ingressHas = at(s.device), at(s.servant)
	if s.device != nil {
		s.egressHas.prior = prior[s.device.Index]
	}
}

// check returns why the site cannot be as the policy wants it: that does not
// fit, or another has put something at the root.
func (s *site) check() error {
	if s.wrong != nil || s.device == nil || len(s.egress.qdiscs) == 0 || s.config.Takeover || s.egressHas.other.kernelsOwn() {
		return s.wrong
	}
	return &ForeignError{s.device.Name, s.egressHas.other.kind, s.egressHas.other.handle}
}

// checkAll returns what keeps any of the sites from being as the policy wants it.
func checkAll(sites []*site) error {
	var errs []error
	for _, s := range sites {
		errs = append(errs, s.check())
	}
	return errors.Join(errs...)
}

// diff returns the changes of a site. A device of ours that is not made yet is
// stood in for by one without a number: such changes can be shown, not sent.
func (s *site) diff() (changes []Change) {
	if s.device == nil {
		return nil
	}
	changes = diff(s.device, s.egressHas, s.egress)
	if !s.wantsIngress() {
		hookAdded := false
		if s.servant != nil {
			_, hookAdded = s.servant.serves()
		}
		return append(changes, hook(s.device, s.egressHas, nil, hookAdded)...)
	}
	to := s.servant
	if to == nil {
		on := *s.device
		on.Name, on.Index = ifbName(s.device.Name), 0
		to = &on
	}
	changes = append(changes, diff(to, s.ingressHas, s.ingress)...)
	return append(changes, hook(s.device, s.egressHas, to, false)...)
}

// servantChanges are the devices of ours that come and go.
func (s *site) servantChanges() (before, after []Change) {
	switch {
	case s.servant == nil && s.wantsIngress():
		name, alias := ifbName(s.device.Name), aliasPrefix+s.device.Name
		if s.egressHas.hook == "" {
			alias += aliasHook
		}
		before = append(before, Change{
			Device: name, Verb: verbAdd, Object: "device", Why: "shapes what arrives at " + s.device.Name,
			Command: fmt.Sprintf("ip link add %s txqueuelen %d mtu %d type ifb; ip link set %s alias %q up", name, directQlen, s.device.MTU, name, alias),
		})
	case s.servant != nil && !s.wantsIngress():
		after = append(after, Change{
			Device: s.servant.Name, Verb: verbDelete, Object: "device", Why: "nothing arrives that is to be shaped",
			Command: "ip link del " + s.servant.Name,
		})
	}
	return before, after
}

// plan compares the policy with the kernel and writes nothing.
func (d *Datapath) plan(c *Config) (*Plan, error) {
	sites, minors, missing, err := d.sites(c)
	if err == nil {
		err = checkAll(sites)
	}
	if err != nil {
		return nil, err
	}
	cl, err := d.classify(c, minors, sites, true)
	if err != nil {
		return nil, err
	}
	p := &Plan{Missing: missing, Notes: d.notes(sites, cl)}
	if cl != nil {
		p.Changes = cl.change()
	}
	var before, after []Change
	for _, s := range sites {
		made, gone := s.servantChanges()
		before, after = append(before, made...), append(after, gone...)
		p.Changes = append(p.Changes, s.diff()...)
	}
	sortByPhase(p.Changes)
	p.Changes = slices.Concat(before, p.Changes, after)
	return p, nil
}

// notes are what the policy wants and the kernel cannot do exactly so.
func (d *Datapath) notes(sites []*site, cl *classifier) (notes []string) {
	if cl != nil {
		notes = cl.notes()
	}
	for _, s := range sites {
		if s.config != nil && s.config.Overhead > 0 {
			notes = append(notes, fmt.Sprintf("the overhead of %s is added once to each offloaded packet: for exact rates turn offloads off (ethtool -K %s tso off gso off gro off)",
				s.device.Name, s.device.Name))
		}
	}
	return append(notes, d.bypasses(sites)...)
}

// Commands is the plan as commands of tc and ip, one a line.
func (p *Plan) Commands() string {
	var b strings.Builder
	for i := range p.Changes {
		b.WriteString(p.Changes[i].Command + "\n")
	}
	return b.String()
}
