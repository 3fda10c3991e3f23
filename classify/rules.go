package classify

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
