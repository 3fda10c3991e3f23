package netlink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Netlink attributes are written and read by hand: the library's requests
// cannot express bursts in bytes, 64-bit rates, size tables or leaf queues, and
// a batch has no use for one allocation per attribute.

var native = binary.NativeEndian

// typeMask leaves out the flags of an attribute's type.
const typeMask = 0x3fff

// attrs is a sequence of attributes that is being written.
type attrs []byte

func align(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

func (a *attrs) bytes(typ uint16, value []byte) {
	*a = native.AppendUint16(*a, uint16(unix.NLA_HDRLEN+len(value)))
	*a = native.AppendUint16(*a, typ)
	*a = append(*a, value...)
	*a = append(*a, make([]byte, align(len(*a))-len(*a))...)
}

func (a *attrs) u32(typ uint16, v uint32) { a.bytes(typ, native.AppendUint32(nil, v)) }
func (a *attrs) u64(typ uint16, v uint64) { a.bytes(typ, native.AppendUint64(nil, v)) }
func (a *attrs) text(typ uint16, s string) {
	a.bytes(typ, append([]byte(s), 0))
}

func (a *attrs) nest(typ uint16, inner attrs) { a.bytes(typ, inner) }

// attributes calls use with each attribute of b, up to where b is malformed.
func attributes(b []byte, use func(typ uint16, value []byte)) {
	for len(b) >= unix.NLA_HDRLEN {
		n := int(native.Uint16(b))
		if n < unix.NLA_HDRLEN || n > len(b) {
			return
		}
		use(native.Uint16(b[2:])&typeMask, b[unix.NLA_HDRLEN:n])
		b = b[min(align(n), len(b)):]
	}
}

// u32At and the like return 0 where the value is too short.
func u32At(b []byte, at int) uint32 {
	if len(b) < at+4 {
		return 0
	}
	return native.Uint32(b[at:])
}

func u64At(b []byte, at int) uint64 {
	if len(b) < at+8 {
		return 0
	}
	return native.Uint64(b[at:])
}

func textOf(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// tcmsg is struct tcmsg.
type tcmsg struct {
	index  int32
	handle Handle
	parent Handle
	info   uint32
}

const tcmsgLen = 20

func (m tcmsg) append(b []byte) []byte {
	b = append(b, unix.AF_UNSPEC, 0, 0, 0)
	b = native.AppendUint32(b, uint32(m.index))
	b = native.AppendUint32(b, uint32(m.handle))
	b = native.AppendUint32(b, uint32(m.parent))
	return native.AppendUint32(b, m.info)
}

func parseTcmsg(b []byte) (m tcmsg, rest []byte) {
	if len(b) < tcmsgLen {
		return m, nil
	}
	return tcmsg{
		index: int32(u32At(b, 4)), handle: Handle(u32At(b, 8)), parent: Handle(u32At(b, 12)), info: u32At(b, 16),
	}, b[tcmsgLen:]
}
