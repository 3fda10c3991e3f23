package u32

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"golang.org/x/sys/unix"

	"shaperd/classify"
)

// A part is one 32-bit word of a packet that is compared: a key of a filter.
type part struct {
	offset      int32
	transport   bool // relative to the transport header, whose place varies
	value, mask uint32
}

// A family is where things are in its header.
type family struct {
	protocol uint16
	variable bool // the header's length varies
	src, dst int32
}

var (
	ipv4 = family{unix.ETH_P_IP, true, 12, 16}
	ipv6 = family{unix.ETH_P_IPV6, false, 8, 24}
)

func (f *family) proto(p classify.Protocol) []part {
	if f.protocol == unix.ETH_P_IP {
		return []part{{offset: 8, value: uint32(p) << 16, mask: 0xff0000}}
	}
	return []part{{offset: 4, value: uint32(p) << 8, mask: 0xff00}}
}

// whole keeps later fragments out, which have no ports.
func (f *family) whole() []part {
	if f.protocol == unix.ETH_P_IP {
		return []part{{offset: 4, mask: 0x1fff}}
	}
	return nil
}

// l4 is the first word of the transport header: both ports.
func (f *family) l4(value, mask uint32) []part {
	if f.variable {
		return []part{{transport: true, value: value, mask: mask}}
	}
	return []part{{offset: 40, value: value, mask: mask}}
}

// dscps compares the six bits of the DSCP, not those of ECN beside them.
func (f *family) dscps(list []classify.DSCP) (out [][]part) {
	for _, d := range list {
		shift := 18
		if f.protocol == unix.ETH_P_IPV6 {
			shift = 22
		}
		out = append(out, []part{{value: uint32(d) << shift, mask: 0x3f << shift}})
	}
	if len(list) == 0 {
		out = append(out, nil)
	}
	return out
}

func (f *family) prefix(p netip.Prefix, at int32) (out []part) {
	b := p.Addr().AsSlice()
	for left := p.Bits(); left > 0; left -= 32 {
		mask := uint32(1<<32 - 1)
		if left < 32 {
			mask <<= 32 - left
		}
		out = append(out, part{offset: at, value: binary.BigEndian.Uint32(b), mask: mask})
		b, at = b[4:], at+4
	}
	return out
}

// merge joins keys: those of the same word become one.
func merge(lists ...[]part) (out []part) {
	for _, list := range lists {
	next:
		for _, k := range list {
			for i := range out {
				if o := &out[i]; o.offset == k.offset && o.transport == k.transport {
					o.value, o.mask = o.value|k.value, o.mask|k.mask
					continue next
				}
			}
			out = append(out, k)
		}
	}
	return out
}

// A masked is all numbers that agree with first where mask has ones.
type masked struct{ first, last, mask uint32 }

// split covers a range of numbers of so many bits with the fewest masks.
func split(first, last uint32, width int) (out []masked) {
	all := uint32(1)<<width - 1
	for n := uint64(first); n <= uint64(last); {
		free := width // bits that may vary
		if n > 0 {
			free = min(free, bits.TrailingZeros64(n))
		}
		for uint64(1)<<free > uint64(last)-n+1 {
			free--
		}
		out = append(out, masked{uint32(n), uint32(n) + 1<<free - 1, all &^ (1<<free - 1)})
		n += 1 << free
	}
	return out
}

// ports covers ranges of ports; no ranges are all ports. Port 0 is none.
func ports(list []classify.PortRange) (out []masked) {
	if len(list) == 0 {
		return []masked{{0, 65535, 0}}
	}
	for _, r := range list {
		out = append(out, split(uint32(max(r.First, 1)), uint32(r.Last), 16)...)
	}
	return out
}
