package netlink

import (
	"testing"

	"shaperd/shaper"
)

func TestBursts(t *testing.T) {
	type bursts = map[string]shaper.Size
	given := change(office(100*shaper.Mbit), "files", func(c *shaper.Class) { c.Burst = 64 * shaper.KiB })
	sole := shaper.Link{Rate: 50 * shaper.Mbit, Classes: []shaper.Class{{Name: "all", Rate: 50 * shaper.Mbit, Default: true}}}
	for _, tt := range []struct {
		name string
		link shaper.Link
		mtu  int
		want bursts // of some
	}{
		{"what the ceil earns, or two packets where it is steady", office(100 * shaper.Mbit), 1500, bursts{"voice": 62500, "files": 12500, "backup": 3028, "rest": 125000}},
		{"large packets", office(10 * shaper.Mbit), 9000, bursts{"voice": 18028, "backup": 18028}},
		{"from the policy", given, 1500, bursts{"files": 64 * shaper.KiB}},
		{"a bucket at the root", sole, 1500, bursts{"all": 62500}},
		{"no class", shaper.Link{Rate: shaper.Mbit}, 1500, bursts{"": 3028}},
	} {
		got, err := Bursts(&tt.link, tt.mtu)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for class, want := range tt.want {
			if got[class] != want {
				t.Errorf("%s: class %q has a burst of %s, want %s", tt.name, class, got[class], want)
			}
		}
		if _, inner := got["staff"]; inner {
			t.Errorf("%s: %v, want none for a class with others inside", tt.name, got)
		}
	}
	if got, err := Bursts(&shaper.Link{Rate: 7 * shaper.Kbit}, 1500); err == nil {
		t.Errorf("a link too slow for the kernel has %v", got)
	}
}
