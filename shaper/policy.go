package shaper

import "fmt"

// A Link is one direction of one place of enforcement together with the class
// tree that shares it. It is a plain value: configs produces it, and both
// datapaths take it as it is. The zero Link is unlimited and has no classes.
type Link struct {
	// Name identifies the link in logs and metrics, for example "relay web download".
	Name string
	// Rate is the link's total rate in bits per second; 0 means unlimited.
	Rate Rate
	// Burst is how many bytes may leave at once after a quiet time; 0 derives it from Rate.
	Burst Size
	// Classes share the link. Their guarantees never exceed Rate when Rate is set.
	Classes []Class
}

// A Class is a named kind of traffic with its share of the link. A class with
// Children is an inner class: it carries no traffic of its own and its
// children share its Rate and Ceil.
type Class struct {
	// Name is unique within the link.
	Name string
	// Rate is the guarantee in bits per second. Zero guarantees nothing: the class lives from what it borrows.
	Rate Rate
	// Ceil is the most the class may reach by borrowing, in bits per second; 0 means no limit of its own.
	Ceil Rate
	// Budget is the rate that hosts share, in bits per second, of which Rate is this host's part: it changes
	// often, may be nothing, and is the most that the class may send. 0 is no shared class.
	Budget Rate
	// Burst is how many bytes may leave at once after a quiet time; 0 derives it from the rates.
	Burst Size
	// Mode says whether the class may burst.
	Mode Mode
	// Priority orders the borrowers: 0 borrows first, 7 last.
	Priority uint8
	// Default marks the class that takes what no rule matches; exactly one leaf of a tree with classes has it.
	Default bool
	// Children nest further classes inside this one.
	Children []Class
}

// Leaf reports whether the class carries traffic of its own.
func (c *Class) Leaf() bool { return len(c.Children) == 0 }

// Mode says how a class lets bytes out.
type Mode uint8

const (
	// Token lets up to the burst leave at once after a quiet time.
	Token Mode = iota
	// Leaky holds a steady output: quiet time earns nothing.
	Leaky
)

// ParseMode reads "token" or "leaky".
func ParseMode(s string) (Mode, error) {
	switch s {
	case "token":
		return Token, nil
	case "leaky":
		return Leaky, nil
	}
	return Token, fmt.Errorf("unknown mode %q: write token or leaky", s)
}

// String returns the mode as the policy file spells it.
func (m Mode) String() string {
	if m == Leaky {
		return "leaky"
	}
	return "token"
}

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMode(string(b))
	return err
}
