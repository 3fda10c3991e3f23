package u32

import (
	"strings"
	"testing"

	"shaperd/classify"
)

func TestSplitCoversARangeAndNothingElse(t *testing.T) {
	for _, r := range [][2]uint32{{0, 65535}, {1, 65534}, {80, 80}, {1, 1}, {1024, 65535}, {5060, 5061}, {7, 4000}, {65535, 65535}} {
		covered := map[uint32]int{}
		for _, m := range split(r[0], r[1], 16) {
			for n := uint32(0); n <= 65535; n++ {
				if n&m.mask == m.first {
					covered[n]++
				}
			}
		}
		for n := uint32(0); n <= 65535; n++ {
			want := 0
			if n >= r[0] && n <= r[1] {
				want = 1
			}
			if covered[n] != want {
				t.Fatalf("%d to %d: %d is covered %d times, want %d", r[0], r[1], n, covered[n], want)
			}
		}
	}
	if got := len(split(1, 65534, 16)); got != 30 {
		t.Errorf("1 to 65534 takes %d masks, want 30", got)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	rule := classify.Rule{Class: "a", Match: classify.Match{
		SPort: []classify.PortRange{{First: 1, Last: 65534}}, DPort: []classify.PortRange{{First: 1, Last: 65534}},
	}}
	rules := classify.Rules{Default: "a"}
	for range 100 {
		rules.List = append(rules.List, rule)
	}
	if _, err := Compile(rules, map[string]uint16{"a": 3}, 2, 1, 0x100); err == nil || !strings.Contains(err.Error(), "more than 200000 u32 filters") {
		t.Errorf("error %v, want that there are too many filters", err)
	}
	if _, err := Compile(rules, map[string]uint16{"b": 3}, 2, 1, 0x100); err == nil || !strings.Contains(err.Error(), `rule 1: class "a" has no number`) {
		t.Errorf("error %v, want the class without a number", err)
	}
}

// More filters than a hash table holds go into several, all before what comes after them.
func TestTablesAreChained(t *testing.T) {
	rules := classify.Rules{Default: "a"}
	for n := range 6000 {
		rules.List = append(rules.List, classify.Rule{Class: "a", Match: classify.Match{
			Proto: []classify.Protocol{classify.TCP}, DPort: []classify.PortRange{{First: uint16(n + 1), Last: uint16(n + 1)}},
		}})
	}
	table, err := Compile(rules, map[string]uint16{"a": 3}, 2, 1, 0x100)
	if err != nil {
		t.Fatal(err)
	}
	tables, seen := 0, map[[2]uint32]bool{}
	for _, n := range table.Nodes {
		if n.IsTable() {
			tables++
		}
		at := [2]uint32{uint32(n.Slot), n.Handle}
		if seen[at] {
			t.Fatalf("two nodes of slot %d have the handle %x", n.Slot, n.Handle)
		}
		seen[at] = true
	}
	if tables != 4 {
		t.Errorf("%d tables, want two for each family", tables)
	}
}
