package classify

import (
	"slices"
	"strconv"
	"strings"
)

// Protocol is an IP protocol number.
type Protocol uint8

// Protocols that rules name most often.
const (
	ICMP   Protocol = 1
	TCP    Protocol = 6
	UDP    Protocol = 17
	ICMPv6 Protocol = 58
	SCTP   Protocol = 132
)

// protocols are IANA's names of what is met as the payload of IP.
var protocols = map[string]Protocol{
	"icmp": ICMP, "igmp": 2, "ipip": 4, "tcp": TCP, "udp": UDP, "dccp": 33, "gre": 47, "esp": 50, "ah": 51,
	"icmpv6": ICMPv6, "ospf": 89, "pim": 103, "vrrp": 112, "l2tp": 115, "sctp": SCTP, "udplite": 136,
}

// ParseProtocol reads a protocol's name in any case, or its number. Its error is a *ValueError.
func ParseProtocol(s string) (Protocol, error) {
	if p, ok := protocols[strings.ToLower(s)]; ok {
		return p, nil
	}
	n, err := number(s, 8)
	if err != nil {
		return 0, &ValueError{"protocol", s, "write a name such as tcp, udp or icmp, or a number from 0 to 255"}
	}
	return Protocol(n), nil
}

// ProtocolNames returns the names that ParseProtocol knows, in alphabetical order.
func ProtocolNames() []string {
	var names []string
	for name := range protocols {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// String returns the name, or the number where there is none.
func (p Protocol) String() string {
	for name, q := range protocols {
		if p == q {
			return name
		}
	}
	return strconv.Itoa(int(p))
}

// HasPorts reports whether the protocol has port numbers.
func (p Protocol) HasPorts() bool {
	switch p {
	case TCP, UDP, SCTP, 33, 136:
		return true
	}
	return false
}

// MarshalText implements encoding.TextMarshaler.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Protocol) UnmarshalText(b []byte) (err error) {
	*p, err = ParseProtocol(string(b))
	return err
}
