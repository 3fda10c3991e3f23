package shaper

import (
	"fmt"
	"strings"
)

// Size is an amount of data in bytes.
type Size int64

// Units of Size. tc's kb, mb and gb are these too: multiples of 1024.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

var sizes = quantity{
	kind: "size", whole: "bytes", example: "64kb", factor: sizeFactor,
	format: func(n int64) string { return Size(n).String() },
}

// ParseSize reads a size such as "64kb", in upper or lower case.
//
//	b           bytes; so is a bare number
//	k kb kib    1024 bytes, and so on with m and g: all powers of 1024, as in tc
//
// Every other text is a *UnitError: bits (kbit), a fraction of a byte, a number above what a Size
// holds, a sign, a space. Nothing is rounded.
func ParseSize(s string) (Size, error) {
	n, err := sizes.parse(s)
	return Size(n), err
}

// String returns the size in the largest unit that divides it, as in "64kib"; ParseSize reads it back.
func (s Size) String() string {
	return formatUnits(int64(s), 1024, "b", "kib", "mib", "gib")
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it is ParseSize.
func (s *Size) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSize(string(b))
	return err
}

func sizeFactor(_, unit string) (f int64, reason, hint string) {
	unit = strings.ToLower(unit)
	switch unit {
	case "", "b":
		return int64(Byte), "", ""
	case "k", "kb", "kib":
		return int64(KiB), "", ""
	case "m", "mb", "mib":
		return int64(MiB), "", ""
	case "g", "gb", "gib":
		return int64(GiB), "", ""
	}
	reason = fmt.Sprintf("unknown unit %q", unit)
	if strings.HasSuffix(unit, "bit") {
		reason = fmt.Sprintf("%q counts bits, a size counts bytes", unit)
	}
	return 0, reason, "use b, kb, mb, gb (powers of 1024) or kib, mib, gib"
}
