// Package u32 compiles rules to filters of the kernel's u32 classifier: the
// fallback where eBPF is not permitted.
//
//	table, err := u32.Compile(rules, minors, control, major, 0x100)
//	for _, n := range table.Nodes { … } // to be added in this order
//
// It is exact in what it can see, and says what it cannot: u32 looks at fixed
// places, so IPv6 extension headers hide the ports, and tags and PPPoE hide
// everything. Its cost grows with the number of rules.
//
// The package is pure: it talks to no kernel.
package u32
