package classify

import (
	"strconv"
	"strings"
)

// PortRange is an inclusive range of ports, 1 to 65535.
type PortRange struct{ First, Last uint16 }

// ParsePortRange reads a port, or two with a dash between them. Its error is a *ValueError.
func ParsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	a, err := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b := a
	if err == nil && isRange {
		b, err = strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	}
	switch {
	case err != nil || a == 0:
		return PortRange{}, &ValueError{"port", s, "write a number from 1 to 65535, or a range such as 5060-5061"}
	case b < a:
		return PortRange{}, &ValueError{"port", s, "the range is reversed: write " + PortRange{uint16(b), uint16(a)}.String()}
	}
	return PortRange{uint16(a), uint16(b)}, nil
}

// Contains reports whether the range has the port.
func (r PortRange) Contains(port uint16) bool { return r.First <= port && port <= r.Last }

// String returns the range as the policy file spells it.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return strconv.Itoa(int(r.First)) + "-" + strconv.Itoa(int(r.Last))
}

// MarshalText implements encoding.TextMarshaler.
func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *PortRange) UnmarshalText(b []byte) (err error) {
	*r, err = ParsePortRange(string(b))
	return err
}
