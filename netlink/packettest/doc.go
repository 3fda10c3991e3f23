// Package packettest makes packets of all shapes, and random rules and packets
// that often meet, for the tests of the kernel's classifiers:
//
//	c := packettest.Chooser{Rand: rand.New(rand.NewPCG(seed, 0))}
//	frame := c.Packet().Bytes()
//
// It is for tests only.
package packettest
