package classify

import (
	"fmt"
	"net/netip"
	"strconv"
)

// A Flow is what a classifier decides on. The zero value of a field means
// "not known" for the addresses and ports, DSCP 0 (best effort), no mark.
type Flow struct {
	// Proto is the IP protocol number of the payload, after IPv6 extension headers.
	Proto Protocol
	// Src and Dst are the two ends. A port of 0 is one that the packet does not have:
	// its protocol has none, or it is a later fragment.
	Src, Dst netip.AddrPort
	// DSCP is the upper six bits of the TOS or traffic class octet.
	DSCP DSCP
	// Fwmark is the packet's netfilter mark, where there is one.
	Fwmark uint32
}

// String returns the flow for people: "tcp 192.0.2.1:40000 -> 198.51.100.2:443 dscp cs0".
func (f Flow) String() string {
	s := fmt.Sprintf("%v %s -> %s dscp %v", f.Proto, end(f.Src), end(f.Dst), f.DSCP)
	if f.Fwmark != 0 {
		s += fmt.Sprintf(" fwmark %#x", f.Fwmark)
	}
	return s
}

func end(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid() && a.Port() == 0:
		return "?"
	case !a.Addr().IsValid():
		return ":" + strconv.Itoa(int(a.Port()))
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}
