package netlink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"shaperd/classify"
	"shaperd/shaper"
)

// office has a class of each kind.
func office(rate shaper.Rate) shaper.Link {
	return shaper.Link{Name: "office", Rate: rate, Classes: []shaper.Class{
		{Name: "voice", Rate: rate / 10, Ceil: rate / 2, Priority: 0},
		{Name: "web", Rate: rate / 4, Ceil: rate, Priority: 2},
		{Name: "staff", Rate: rate / 4, Ceil: rate, Children: []shaper.Class{
			{Name: "mail", Rate: rate / 10, Ceil: rate / 2, Priority: 3},
			{Name: "files", Rate: rate / 10, Ceil: rate / 10, Priority: 3},
		}},
		{Name: "backup", Rate: rate / 20, Ceil: rate / 20, Mode: shaper.Leaky, Priority: 3},
		{Name: "rest", Rate: rate / 100, Ceil: rate, Priority: 7, Default: true},
	}}
}

// rulesFor sends each class of the link a port of its own, from 1001 on, and voice its DSCP.
func rulesFor(l *shaper.Link) (r classify.Rules) {
	port := uint16(1000)
	walk(l.Classes, func(c, _ *shaper.Class) {
		switch {
		case !c.Leaf():
		case c.Default:
			r.Default = c.Name
		default:
			port++
			r.List = append(r.List, classify.Rule{Class: c.Name, Match: classify.Match{Port: []classify.PortRange{{First: port, Last: port}}}})
			if c.Name == "voice" {
				r.List = append(r.List, classify.Rule{Class: c.Name, Match: classify.Match{DSCP: []classify.DSCP{46}}})
			}
		}
	})
	return r
}

func shaping(interfaces ...Interface) Config {
	c := Config{Interfaces: interfaces}
	for _, l := range c.links() {
		c.Rules = rulesFor(l)
	}
	return c
}

func egress(device string, l shaper.Link) Config { return shaping(Interface{Name: device, Egress: l}) }

// change returns the link with one of its classes changed.
func change(l shaper.Link, name string, with func(*shaper.Class)) shaper.Link {
	walk(l.Classes, func(c, _ *shaper.Class) {
		if c.Name == name {
			with(c)
		}
	})
	return l
}

// states are links that differ in everything that a policy can change.
func states() map[string]shaper.Link {
	l := func() shaper.Link { return office(100 * shaper.Mbit) }
	flat := l()
	flat.Classes = append(flat.Classes, flat.Classes[2].Children...)
	flat.Classes[2].Children = nil
	moved := l()
	moved.Classes[1].Children = moved.Classes[2].Children[:1]
	moved.Classes[2].Children = moved.Classes[2].Children[1:]
	other := l()
	other.Classes[4].Default, other.Classes[0].Default = false, true
	deep := shaper.Link{Name: "deep", Rate: 10 * shaper.Mbit, Classes: []shaper.Class{nested(7)}}
	return map[string]shaper.Link{
		"as it is":           l(),
		"faster":             office(shaper.Gbit),
		"much faster":        office(60 * shaper.Gbit),
		"slow":               office(2 * shaper.Mbit),
		"rate":               change(l(), "mail", func(c *shaper.Class) { c.Rate /= 2 }),
		"hard cap":           change(l(), "web", func(c *shaper.Class) { c.Ceil = c.Rate }),
		"leaky":              change(l(), "voice", func(c *shaper.Class) { c.Mode = shaper.Leaky }),
		"leaky default":      change(l(), "rest", func(c *shaper.Class) { c.Mode, c.Ceil = shaper.Leaky, 40*shaper.Mbit }),
		"small burst":        change(l(), "files", func(c *shaper.Class) { c.Burst = 2000 }),
		"large burst":        change(l(), "files", func(c *shaper.Class) { c.Burst = shaper.MiB }),
		"no guarantee":       change(l(), "web", func(c *shaper.Class) { c.Rate = 0 }),
		"no ceil":            change(l(), "web", func(c *shaper.Class) { c.Ceil = 0 }),
		"priority":           change(l(), "web", func(c *shaper.Class) { c.Priority = 6 }),
		"fewer":              {Name: "l", Rate: 100 * shaper.Mbit, Classes: l().Classes[3:]},
		"classes moved out":  flat,
		"class moved across": moved,
		"other default":      other,
		"deep":               deep,
		"no classes":         {Name: "l", Rate: 30 * shaper.Mbit},
		"no classes, leaky":  {Name: "l", Rate: 30 * shaper.Mbit, Classes: []shaper.Class{{Name: "all", Default: true, Mode: shaper.Leaky, Rate: 30 * shaper.Mbit}}},
		"no classes, fast":   {Name: "l", Rate: 40 * shaper.Gbit},
		"unshaped":           {},
	}
}

// From every state every other is reached, and what the kernel then has is what
// the plan says: apply reads it back.
func TestStates(t *testing.T) {
	all := states()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var names []string
	for name := range all {
		names = append(names, name)
	}
	w := newWorld(t, "eth0")
	before := w.everything()
	for round := range 4 {
		if w.withoutBPF = nil; round%2 == 1 {
			w.withoutBPF = errors.New("not tried")
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			t.Log(name)
			both := Interface{Name: "eth0", Egress: all[name], Ingress: all[name], Overhead: random.IntN(2) * 38}
			if random.IntN(4) == 0 {
				both.Ingress = shaper.Link{}
			}
			w.apply(shaping(both))
		}
	}
	if _, err := w.Clear(); err != nil {
		t.Fatal(err)
	}
	if after := w.everything(); after != before {
		t.Errorf("clear leaves something:\n%s\nbefore there was:\n%s", after, before)
	}
}

// everything is all that the kernel has of queueing, as tc and ip show it.
func (w *world) everything() string {
	return w.run("tc qdisc show; ip -br link | sed 's/[0-9a-f:]\\{17\\}//'")
}

// A datapath that is opened anew, as after a crash, finds everything and can remove it.
func TestACrashIsAdopted(t *testing.T) {
	w := newWorld(t, "eth0")
	before := w.everything()
	c := shaping(Interface{Name: "eth0", Egress: office(100 * shaper.Mbit), Ingress: office(10 * shaper.Mbit)})
	w.apply(c)
	second, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if p, err := second.Apply(c); err != nil || len(p.Changes) > 0 {
		t.Errorf("another datapath finds to do: %v, %v", p, err)
	}
	if _, err := second.Clear(); err != nil {
		t.Fatal(err)
	}
	if after := w.everything(); after != before {
		t.Errorf("clear leaves something:\n%s", after)
	}
}

func TestOneRateIsOneMessage(t *testing.T) {
	w := newWorld(t, "eth0")
	l := office(100 * shaper.Mbit)
	w.apply(egress("eth0", l))
	p := w.apply(egress("eth0", change(l, "staff", func(c *shaper.Class) { c.Rate += shaper.Mbit })))
	if len(p.Changes) != 1 || p.Changes[0].Verb != verbChange {
		t.Errorf("changes %v, want one in place", p.Changes)
	}
}

// withShare has one class more, which is shared with other hosts.
func withShare(link, share shaper.Rate) shaper.Link {
	l := office(link)
	l.Classes = append(l.Classes, shaper.Class{Name: "mirror", Rate: share, Ceil: share, Budget: 30 * shaper.Mbit, Priority: 3})
	return l
}

// Whatever a host's share becomes, nothing but the class's rate changes: no bucket
// is refilled, no queue is lost.
func TestAShareIsOneMessage(t *testing.T) {
	w := newWorld(t, "eth0")
	w.apply(egress("eth0", withShare(100*shaper.Mbit, 30*shaper.Mbit)))
	for _, share := range []shaper.Rate{1, 15 * shaper.Mbit, 300 * shaper.Kbit, 0, 29 * shaper.Mbit} {
		p := w.apply(egress("eth0", withShare(100*shaper.Mbit, share)))
		if len(p.Changes) != 1 || p.Changes[0].Verb != verbChange || !strings.HasPrefix(p.Changes[0].Object, "class") {
			t.Errorf("share %s: changes %v, want one of the class", share, p.Changes)
		}
	}
}

func TestForeignQdiscsAreLeftAlone(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 root handle 1: htb default 0x10")
	c := egress("eth0", office(100*shaper.Mbit))
	_, err := w.Apply(c)
	if foreign := (*ForeignError)(nil); !errors.As(err, &foreign) || foreign.Kind != "htb" || !strings.Contains(err.Error(), "takeover: true") {
		t.Errorf("error %v, want that another's htb is there", err)
	}
	w.mustContain(w.run("tc qdisc show dev eth0"), "qdisc htb 1: root")
	c.Interfaces[0].Takeover = true
	w.apply(c)
}

// What another's qdisc was is put back, where the kernel can say all of it.
func TestClearPutsBackWhatWasTakenOver(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 root handle 77: tbf rate 3mbit burst 5000 limit 10000")
	w.takesOverAndPutsBack("tbf 77:")
}

// takesOverAndPutsBack shapes eth0, which has another's qdisc, and clears it.
func (w *world) takesOverAndPutsBack(theirs string) {
	w.Helper()
	before := w.everything()
	c := egress("eth0", office(100*shaper.Mbit))
	if _, err := w.Apply(c); err == nil || !strings.Contains(err.Error(), theirs) {
		w.Errorf("error %v, want that %s is there", err, theirs)
	}
	c.Interfaces[0].Takeover = true
	w.apply(c)
	if _, err := w.Clear(); err != nil {
		w.Fatal(err)
	}
	if after := w.everything(); after != before {
		w.Errorf("after clear:\n%s\nbefore there was:\n%s", after, before)
	}
}

func TestOthersFiltersStay(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress protocol ip pref 7 u32 match ip dport 9 0xffff flowid 1:1")
	theirs := w.run("tc filter show dev eth0 ingress")
	w.apply(shaping(Interface{Name: "eth0", Ingress: office(10 * shaper.Mbit)}))
	w.mustContain(w.run("tc filter show dev eth0 ingress"), "Redirect to device "+ifbName("eth0"), "pref 7")
	if _, err := w.Clear(); err != nil {
		t.Fatal(err)
	}
	if left := w.run("tc filter show dev eth0 ingress"); left != theirs {
		t.Errorf("another's filters are now:\n%s\nand were:\n%s", left, theirs)
	}
}

// A step that the kernel refuses leaves what was there before: nothing, or the policy of before.
func TestARefusedStepUndoesTheOthers(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	// Another's filter where ours would go, of another kind: the redirect is refused, as the last step.
	w.run(fmt.Sprintf("tc qdisc add dev eth1 clsact; tc filter add dev eth1 ingress protocol ip pref %d bpf da bytecode '1,6 0 0 0'", prefRedirect))
	before := w.everything()
	refused := shaping(
		Interface{Name: "eth0", Egress: office(100 * shaper.Mbit), Ingress: office(10 * shaper.Mbit)}, Interface{Name: "eth1", Ingress: office(10 * shaper.Mbit)},
	)
	if _, err := w.Apply(refused); err == nil || !strings.Contains(err.Error(), "u32 filter to "+ifbName("eth1")+" on eth1") {
		t.Fatalf("error %v, want the step and the interface", err)
	}
	if after := w.everything(); after != before {
		t.Errorf("a refused apply leaves:\n%s\nbefore there was:\n%s", after, before)
	}
	c := egress("eth0", office(20*shaper.Mbit))
	w.apply(c)
	if _, err := w.Apply(refused); err == nil {
		t.Fatal("no error")
	}
	if p, err := w.Plan(c); err != nil || len(p.Changes) > 0 {
		t.Errorf("after a refused apply the policy of before is not in force: %v, %v", p, err)
	}
}

func TestUndo(t *testing.T) {
	w := newWorld(t, "eth0")
	old := egress("eth0", office(20*shaper.Mbit))
	w.apply(old)
	p := w.apply(shaping(Interface{Name: "eth0", Egress: office(50 * shaper.Mbit), Ingress: office(50 * shaper.Mbit)}))
	if err := w.Undo(p); err != nil {
		t.Fatal(err)
	}
	if p, err := w.Plan(old); err != nil || len(p.Changes) > 0 {
		t.Errorf("after an undo there is to do: %v, %v", p, err)
	}
}

func TestAnInterfaceThatGoesDuringApply(t *testing.T) {
	w := newWorld(t, "eth0")
	c := shaping(Interface{Name: "eth*", Egress: office(100 * shaper.Mbit), Ingress: office(10 * shaper.Mbit)})
	errs := make(chan error)
	go func() {
		for range 20 {
			_, err := w.Apply(c)
			errs <- err
		}
		close(errs)
	}()
	for working := true; working; {
		w.run("ip link del eth0; ip link add eth0 type veth peer name p-eth0; ip link set eth0 up")
		select {
		case err, ok := <-errs:
			if working = ok; err != nil {
				t.Logf("an apply that was disturbed all the time: %v", err)
			}
		default:
		}
	}
	w.apply(c)
}

// What others write in tc's words is what the plan has.
func TestCommandsDoTheSame(t *testing.T) {
	w := newWorld(t, "eth0")
	c := shaping(Interface{Name: "eth0", Egress: office(100 * shaper.Mbit), Ingress: office(30 * shaper.Mbit), Overhead: 38})
	w.withoutBPF = errors.New("not tried") // which tc cannot load
	p, err := w.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	w.run("set -e\n" + p.Commands())
	if again, err := w.Plan(c); err != nil || len(again.Changes) > 0 {
		t.Errorf("after the commands there is to do: %v, %v", again, err)
	}
}

func TestRatesAbove32Bits(t *testing.T) {
	w := newWorld(t, "eth0")
	w.apply(egress("eth0", office(400*shaper.Gbit)))
	w.mustContain(w.run("tc class show dev eth0; tc qdisc show dev eth0"), "rate 400Gbit ceil 400Gbit", "rate 40Gbit burst")
}

// The kernel warns of quanta that it finds too small or too large.
func TestTheKernelHasNothingToComplainOf(t *testing.T) {
	w := newWorld(t, "eth0")
	complaints := regexp.MustCompile(`(?m)^.*(quantum|HTB: quantum|burst .* is lower).*$`)
	before := complaints.FindAllString(w.run("dmesg"), -1)
	for _, rate := range []shaper.Rate{shaper.Mbit, 100 * shaper.Mbit, 100 * shaper.Gbit} {
		w.apply(egress("eth0", office(rate)))
	}
	if after := complaints.FindAllString(w.run("dmesg"), -1); len(after) > len(before) {
		t.Errorf("the kernel's log says:\n%s", strings.Join(after[len(before):], "\n"))
	}
}

func TestNames(t *testing.T) {
	c := Config{Interfaces: []Interface{{Name: "ppp*"}, {Name: "ppp7"}, {Name: "wan?"}}}
	for device, want := range map[string]string{"ppp0": "ppp*", "ppp7": "ppp7", "wan1": "wan?", "wan10": "", "eth0": ""} {
		got := ""
		if e := c.find(device); e != nil {
			got = e.Name
		}
		if got != want {
			t.Errorf("%s is %q, want %q", device, got, want)
		}
	}
	if a, b := ifbName("enp0s31f6np0.100"), ifbName("enp0s31f6np0.101"); a == b || len(a) > 15 {
		t.Errorf("the devices of similar names are %s and %s", a, b)
	}
}

// A lower rate must not lower the burst in place below what may wait, nor lose the queue for a little.
func TestABurstIsNotLoweredUnderAWaitingPacket(t *testing.T) {
	w := newWorld(t, "eth0")
	with := func(burst shaper.Size) shaper.Link {
		return change(office(100*shaper.Mbit), "files", func(c *shaper.Class) { c.Burst = burst })
	}
	find := func(p *Plan) (verbs string) {
		for i := range p.Changes {
			if p.Changes[i].Object == "tbf of files" {
				verbs += p.Changes[i].Verb
			}
		}
		return verbs
	}
	for _, tt := range []struct {
		from, to shaper.Size
		want     string
	}{
		{200 * shaper.KiB, 100 * shaper.KiB, verbChange}, // both hold the largest packet
		{100 * shaper.KiB, 4 * shaper.KiB, verbReplace},
		{6 * shaper.KiB, 4 * shaper.KiB, verbChange}, // of the limit; the burst is near enough
		{4 * shaper.KiB, 100 * shaper.KiB, verbChange},
	} {
		w.apply(egress("eth0", with(tt.from)))
		if got := find(w.apply(egress("eth0", with(tt.to)))); got != tt.want {
			t.Errorf("burst %s to %s: %q, want %q", tt.from, tt.to, got, tt.want)
		}
		if _, err := w.Clear(); err != nil {
			t.Fatal(err)
		}
	}
}

// A fair queue that the kernel turns out not to have is done without.
func TestWithoutTheFairQueue(t *testing.T) {
	w := newWorld(t, "eth0")
	has := w.kernel.FqCodel
	w.kernel.FqCodel = true
	w.apply(egress("eth0", office(100*shaper.Mbit)))
	if w.kernel.FqCodel != has {
		t.Errorf("the kernel has fq_codel: %v, and it is used: %v", has, w.kernel.FqCodel)
	}
}

// Whoever may only look sees what differs, and is told what he cannot see.
func TestPlanWithoutPrivileges(t *testing.T) {
	w := newWorld(t, "eth0")
	c := egress("eth0", office(100*shaper.Mbit))
	w.apply(c)
	other, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := keepOnly(); err != nil {
		t.Fatal(err)
	}
	p, err := other.Plan(c)
	if err != nil || len(p.Changes) > 0 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "only root can see") {
		t.Errorf("plan %+v, %v, want nothing to do, and a note", p, err)
	}
}
