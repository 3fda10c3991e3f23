package doctor

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A listening is a TCP socket that listens on this host.
type listening struct {
	netip.AddrPort
	inode string
}

// An address is one that the policy listens on, and for what.
type address struct {
	netip.AddrPort
	subject string
}

// addresses returns all that the policy listens on, but those whose port the kernel chooses.
func (f *Facts) addresses() (list []address) {
	add := func(a netip.AddrPort, subject string) {
		if a.IsValid() && a.Port() != 0 {
			list = append(list, address{a, subject})
		}
	}
	for i := range f.Policy.Relays {
		r := &f.Policy.Relays[i]
		for _, a := range r.Listen {
			add(a, relayPrefix+r.Name)
		}
	}
	add(f.Policy.Metrics, metricsSubject)
	add(f.Policy.Admission.Listen, admissionSubject)
	return list
}

func checkListen(f *Facts) (list []Finding) {
	taken, known := f.listening()
	for _, a := range f.addresses() {
		if !known {
			return all(info("what listens on this host is not known", "an address in use is found only at the start", ""))
		}
		finding := ok("%s is free", a).of(a.subject)
		for _, other := range taken {
			if !collide(a.AddrPort, other.AddrPort) {
				continue
			}
			if x := f.inUse(a, other).of(a.subject); x.Verdict > finding.Verdict {
				finding = x
			}
		}
		list = append(list, finding)
	}
	return list
}

// collide reports whether two sockets cannot listen side by side, as far as can be seen.
func collide(a, b netip.AddrPort) bool {
	if a.Port() != b.Port() {
		return false
	}
	x, y := a.Addr().Unmap(), b.Addr().Unmap()
	switch {
	case x == y:
		return true
	case x.Is4() == y.Is4():
		return x.IsUnspecified() || y.IsUnspecified()
	}
	return dualStack(a, b)
}

// dualStack reports whether one of the two is a wildcard of IPv6 and the other
// of IPv4: the one takes the other along, unless it was told not to, which is not to be seen.
func dualStack(a, b netip.AddrPort) bool {
	x, y := a.Addr().Unmap(), b.Addr().Unmap()
	return x.Is4() != y.Is4() && (x.Is6() && x.IsUnspecified() || y.Is6() && y.IsUnspecified())
}

// listening reads the sockets that listen in this network namespace.
func (f *Facts) listening() (list []listening, known bool) {
	for _, table := range []string{"tcp", "tcp6"} {
		text := f.read("proc/thread-self/net/" + table)
		known = known || text != ""
		for line := range strings.Lines(text) {
			const listens = "0A"
			if c := strings.Fields(line); len(c) > 9 && c[3] == listens {
				if a, err := parseHexAddr(c[1]); err == nil {
					list = append(list, listening{a, c[9]})
				}
			}
		}
	}
	return list, known
}

// parseHexAddr reads an address as /proc/net/tcp has it: words of 32 bits in the
// machine's order, a colon, the port.
func parseHexAddr(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("address %q: not of 4 or 16 bytes with a port", s)
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}
