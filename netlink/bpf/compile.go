package bpf

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"shaperd/classify"
)

// Bounds of the program's maps.
const (
	maxGroups       = 32        // as in classifier.c
	maxSets         = 1<<16 - 1 // of rules, in one key of a group
	maxCombinations = 1 << 20
)

// key is one of the things that a rule may look at.
type key int

const (
	keyProto key = iota
	keySPort
	keyDPort
	keySrc
	keyDst
	keyDSCP
	keyFwmark
	numKeys
)

// Tables are rules compiled for the program. They are values; nothing of the
// kernel is in them.
type Tables struct {
	control, other uint16
	groups         []group
	combinations   map[combination]decision // with generation 0
	fingerprint    [sha256.Size]byte
}

// A group has the rules that use the same keys. Each of its keys has a table
// from a value to the set of rules that accept it; 0 is none.
type group struct {
	first        int32
	keys         uint32
	proto        [256]uint16
	dscp         [64]uint16
	sport, dport *[65536]uint16 // nil when not used
	prefixes     [2][]prefix    // of the source, of the destination
	marks        map[uint32]uint16
}

type prefix struct {
	netip.Prefix
	set uint16
}

// A variant is a rule, or one half of a rule that takes a port on either side.
type variant struct {
	rule  int32
	match *classify.Match
	sport []classify.PortRange
	dport []classify.PortRange
}

// Compile turns rules into tables. Minors gives the number of each rule's class
// and of the default class, control that of the class for control traffic,
// which comes before all rules. An error says which rule does not fit, and why.
func Compile(rules classify.Rules, minors map[string]uint16, control uint16) (*Tables, error) {
	t := &Tables{control: control, other: minors[rules.Default], combinations: map[combination]decision{}}
	byKeys := map[uint32][]variant{}
	for i := range rules.List {
		if _, ok := minors[rules.List[i].Class]; !ok {
			return nil, fmt.Errorf("rule %d: class %q has no number", i+1, rules.List[i].Class)
		}
		m := &rules.List[i].Match
		for _, side := range m.Sides() {
			v := variant{int32(i), m, side[0], side[1]}
			k := v.keys()
			byKeys[k] = append(byKeys[k], v)
		}
	}
	if len(byKeys) > maxGroups {
		return nil, fmt.Errorf("the rules use %d different sets of keys: the kernel's classifier has room for %d", len(byKeys), maxGroups)
	}
	order := make([]uint32, 0, len(byKeys))
	for k := range byKeys {
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(byKeys[a][0].rule, byKeys[b][0].rule), cmp.Compare(a, b))
	})
	for n, k := range order {
		if err := t.addGroup(n, k, byKeys[k], rules, minors); err != nil {
			return nil, err
		}
	}
	t.fingerprint = fingerprint(rules, minors, control)
	return t, nil
}

func (v *variant) keys() (k uint32) {
	for i, used := range [numKeys]bool{
		len(v.match.Proto) > 0, len(v.sport) > 0, len(v.dport) > 0, len(v.match.Src) > 0, len(v.match.Dst) > 0,
		len(v.match.DSCP) > 0, len(v.match.Fwmark) > 0,
	} {
		if used {
			k |= 1 << i
		}
	}
	return k
}

// addGroup makes the tables of a group, and its combinations.
func (t *Tables) addGroup(n int, keys uint32, list []variant, rules classify.Rules, minors map[string]uint16) error {
	g := group{first: list[0].rule, keys: keys}
	in := make([][numKeys][]uint16, len(list)) // the sets that each variant is in, by key
	for k := range numKeys {
		if keys&(1<<k) == 0 {
			continue
		}
		sets := newSets(list)
		g.fill(k, sets, list)
		if sets.full {
			return fmt.Errorf("rule %d and others with the same keys overlap in too many ways for the kernel's classifier", list[0].rule+1)
		}
		for v, ids := range sets.of {
			in[v][k] = ids
		}
	}
	t.groups = append(t.groups, g)
	for v := range list {
		if err := t.combine(n, &in[v], decision{uint32(list[v].rule), uint32(minors[rules.List[list[v].rule].Class])}); err != nil {
			return err
		}
	}
	return nil
}

// combine adds the combinations of sets that mean a rule; an earlier rule that has one keeps it.
func (t *Tables) combine(group int, in *[numKeys][]uint16, d decision) error {
	var add func(k key, c combination) error
	add = func(k key, c combination) error {
		for ; k < numKeys && in[k] == nil; k++ {
		}
		if k == numKeys {
			if old, ok := t.combinations[c]; !ok || d.Rule < old.Rule {
				t.combinations[c] = d
			}
			if len(t.combinations) > maxCombinations {
				return fmt.Errorf("rule %d: the rules make more than %d combinations, too many for the kernel's classifier: use fewer overlapping lists", d.Rule+1, maxCombinations)
			}
			return nil
		}
		for _, id := range in[k] {
			next := c
			next.Sets[k] = id
			if err := add(k+1, next); err != nil {
				return err
			}
		}
		return nil
	}
	return add(0, combination{Of: owner{Group: uint8(group)}})
}

// Fingerprint tells tables from others: what they mean, and to which program.
func (t *Tables) Fingerprint() [sha256.Size]byte { return t.fingerprint }

func fingerprint(rules classify.Rules, minors map[string]uint16, control uint16) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(object)
	number := func(n int) { h.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	number(int(control))
	number(int(minors[rules.Default]))
	for i := range rules.List {
		r := &rules.List[i]
		number(int(minors[r.Class]))
		text := r.Match.String()
		number(len(text))
		h.Write([]byte(text))
	}
	h.Sum(sum[:0])
	return sum
}
