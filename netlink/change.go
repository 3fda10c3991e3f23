package netlink

import (
	"slices"
	"strings"
)

// A Change is one step from what the kernel has to what the policy wants.
type Change struct {
	Device string `json:"device"`
	// Verb is add, change (in place: queue and counters stay), replace (they are lost) or delete.
	Verb string `json:"verb"`
	// Object is what changes, for people: "class voice", "tbf 5a13: of voice".
	Object string `json:"object"`
	// Fields are the parameters: all of them for what is added, those that differ for what changes.
	Fields []FieldChange `json:"fields,omitempty"`
	// Why is the reason where it does not follow from the fields.
	Why string `json:"why,omitempty"`
	// Command does the same with tc or ip.
	Command string `json:"command"`

	phase phase
	send  request
}

// A FieldChange is one parameter of a change.
type FieldChange struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Why  string `json:"why,omitempty"`
}

// The verbs of a change.
const (
	verbAdd     = "add"
	verbChange  = "change"
	verbReplace = "replace"
	verbDelete  = "delete"
)

// A phase orders the changes of all devices, so that no packet finds what is
// not there yet, or no more: everything is built before the classifier knows
// it, and removed when the classifier has forgotten it.
type phase int

const (
	phaseClear  phase = iota // what stands in the way
	phaseBuild               // qdiscs and classes
	phaseFilter              // after the classifier's own tables
	phaseRemove
	phaseLate // queues of classes that had classes until now
)

func sortByPhase(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int { return int(a.phase - b.phase) })
}

// String is the change in one line.
func (c *Change) String() string {
	var b strings.Builder
	b.WriteString(c.Device + ": " + c.Verb + " " + c.Object)
	for i, f := range c.Fields {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + f.Name)
		if f.From != "" {
			b.WriteString(" " + f.From + " →")
		}
		if f.To != "" {
			b.WriteString(" " + f.To)
		}
	}
	if c.Why != "" {
		b.WriteString(" (" + c.Why + ")")
	}
	return b.String()
}

// added turns parameters into those of something new.
func added(fields []Field) (list []FieldChange) {
	for _, f := range fields {
		list = append(list, FieldChange{Name: f.Name, To: f.Value, Why: f.Why})
	}
	return list
}

// differing returns what of want is not so in got.
func differing(got, want []Field) (list []FieldChange) {
	had := map[string]string{}
	for _, f := range got {
		had[f.Name] = f.Value
	}
	for _, f := range want {
		if from, ok := had[f.Name]; !ok || from != f.Value {
			list = append(list, FieldChange{f.Name, from, f.Value, f.Why})
		}
		delete(had, f.Name)
	}
	for _, f := range got {
		if from, ok := had[f.Name]; ok {
			list = append(list, FieldChange{Name: f.Name, From: from, To: "none"})
		}
	}
	return list
}
