package classify

import "slices"

// A Classifier is a compiled rule list. It is immutable, and safe for
// concurrent use.
//
// Rules are grouped by the keys they use, so that within a group every rule
// says something about the same dimensions of a flow, and there are few
// groups. A dimension of a group is a table from the flow's value to the rules
// that accept it. To decide, the shortest of these lists is walked, and each
// of its rules looked up in the others. So the cost follows the number of
// rules that agree with a flow in its rarest value, not the number of rules.
type Classifier struct {
	rules  Rules
	groups []group // by their first rule
}

// Compile prepares rules for classification. The rules must not be changed afterwards.
func Compile(rules Rules) (*Classifier, error) {
	byKeys := map[keys][]int32{}
	for i := range rules.List {
		k := keysOf(&rules.List[i].Match)
		byKeys[k] = append(byKeys[k], int32(i))
	}
	c := &Classifier{rules: rules}
	for k, list := range byKeys {
		c.groups = append(c.groups, newGroup(k, list, rules.List))
	}
	slices.SortFunc(c.groups, func(a, b group) int { return int(a.first - b.first) })
	return c, nil
}

// Classify returns the class that takes f and the index of the rule that says
// so, or -1 for the default. It does not allocate.
func (c *Classifier) Classify(f *Flow) (class string, rule int) {
	best := int32(len(c.rules.List))
	v := valuesOf(f)
	for i := range c.groups {
		g := &c.groups[i]
		if g.first >= best {
			break
		}
		best = min(best, g.match(c.rules.List, f, &v, best, nil))
	}
	if int(best) == len(c.rules.List) {
		return c.rules.Default, -1
	}
	return c.rules.List[best].Class, int(best)
}

// keys is the set of keys that a match uses: one bit for each dimension.
type keys uint8

func keysOf(m *Match) (k keys) {
	for d := range numDimensions {
		if dimensions[d].used(m) {
			k |= 1 << d
		}
	}
	return k
}

// A group has the rules that use the same keys.
type group struct {
	first   int32 // the group's first rule
	rules   []int32
	tables  []table // the largest first: where a flow has no rule at all, that shows soonest
	compare bool    // a dimension has no table: candidates are compared with the flow
}

func newGroup(k keys, list []int32, rules []Rule) group {
	g := group{first: list[0], rules: list}
	for d := range numDimensions {
		if k&(1<<d) == 0 {
			continue
		}
		if t, ok := newTable(d, list, rules); ok {
			g.tables = append(g.tables, t)
		} else {
			g.compare = true
		}
	}
	slices.SortStableFunc(g.tables, func(a, b table) int { return len(b.starts) - len(a.starts) })
	return g
}

// match returns the first rule of the group, if it comes before limit, that
// takes the flow and that accept agrees with, where accept is not nil; else limit.
func (g *group) match(rules []Rule, f *Flow, v *values, limit int32, accept func(rule int32) bool) int32 {
	var sets [numDimensions][2]*ruleSet
	candidates, shortest, least := [2][]int32{g.rules}, -1, len(g.rules)
	for i := range g.tables {
		sets[i] = g.tables[i].lookup(v)
		a, b := sets[i][0].rules(), sets[i][1].rules()
		if len(a)+len(b) == 0 {
			return limit
		}
		if shortest < 0 || len(a)+len(b) < least {
			candidates, shortest, least = [2][]int32{a, b}, i, len(a)+len(b)
		}
	}
	for _, list := range candidates {
	next:
		for _, r := range list {
			if r >= limit {
				break
			}
			for i := range g.tables {
				if i != shortest && !sets[i][0].has(r) && !sets[i][1].has(r) {
					continue next
				}
			}
			if g.compare && rules[r].Match.Mismatch(f) != "" || accept != nil && !accept(r) {
				continue
			}
			limit = r
			break
		}
	}
	return limit
}
