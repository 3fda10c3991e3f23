package classify

import "net/netip"

// Rules is an ordered rule list: the first rule that matches takes the flow,
// and what none matches goes to Default.
type Rules struct {
	List    []Rule
	Default string // the default class's name
}

// A Rule sends the flows that match to a class.
type Rule struct {
	Class string
	Match Match
}

// A Match is a conjunction over its keys; within one key any listed value
// will do, and an empty key matches everything.
type Match struct {
	Proto  []Protocol
	Port   []PortRange // either side's port
	SPort  []PortRange // the source's port
	DPort  []PortRange // the destination's port
	Src    []netip.Prefix
	Dst    []netip.Prefix
	DSCP   []DSCP
	Fwmark []uint32
}
