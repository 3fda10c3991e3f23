// Package classify decides which class takes a flow.
//
// Rules are an ordered list: the first that matches wins, and what none
// matches goes to the default class.
//
//	classifier, err := classify.Compile(classify.Rules{
//		List:    []classify.Rule{{Class: "web", Match: classify.Match{DPort: []classify.PortRange{{443, 443}}}}},
//		Default: "bulk",
//	})
//	class, rule := classifier.Classify(&flow)
//
// A Classifier is immutable and safe for concurrent use; deciding allocates
// nothing and costs about the same with ten rules and with ten thousand. A
// Decoder turns packets into flows, and ReadCapture the files that tcpdump and
// Wireshark write.
//
// The package knows nothing of rates, sockets or YAML, and it keeps no state
// from flow to flow: a fragment is classified by what it carries itself.
package classify
