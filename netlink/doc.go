// Package netlink is the kernel datapath: it shapes network interfaces with the
// kernel's HTB and TBF qdiscs, as a policy says.
//
//	d, err := netlink.Open(log)
//	if err != nil { … }
//	defer d.Close()                  // the kernel goes on shaping
//	plan, err := d.Apply(netlink.Config{Interfaces: …, Rules: …})
//	…
//	_, err = d.Clear()               // leaves nothing behind
//
// It converges: what a policy needs on an interface is a tree of plain values
// (newTree), what the kernel has is read into the same values (observe), the
// difference is a list of changes with their reasons (diff), and these are sent
// in batches and read back (apply). Nothing is written when nothing differs, a
// change is made in place where the kernel can, and when one is refused the
// others are undone.
//
// Only what has a handle or preference of ours is ever changed or removed. All
// sizes are in bytes, all rates in bits per second; the kernel's own units are
// in ticks.go and nowhere else.
//
// The package does not know the relay, files or metrics, and keeps no state
// that the kernel does not have: a datapath opened after a crash finds all of
// it again.
package netlink
