package classify

import "net/netip"

// A Flow is what a classifier decides on. The zero value of a field means
// "not known" for the addresses and ports, and DSCP 0 (best effort) and no
// mark for the others.
type Flow struct {
	// Proto is the IP protocol number of the payload, after IPv6 extension headers.
	Proto Protocol
	// Src and Dst are the two ends. A port of 0 is one the protocol does not have.
	Src, Dst netip.AddrPort
	// DSCP is the upper six bits of the TOS or traffic class octet.
	DSCP DSCP
	// Fwmark is the packet's netfilter mark, where there is one.
	Fwmark uint32
}

// Protocol is an IP protocol number.
type Protocol uint8

// Protocols that rules name most often.
const (
	ICMP   Protocol = 1
	TCP    Protocol = 6
	UDP    Protocol = 17
	ICMPv6 Protocol = 58
)

// DSCP is a differentiated services code point, 0 to 63.
type DSCP uint8

// PortRange is an inclusive range of ports.
type PortRange struct{ First, Last uint16 }
