package classify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DSCP is a differentiated services code point, 0 to 63.
type DSCP uint8

// dscpNames are the standard names: RFC 2474 (CS), 2597 (AF), 3246 (EF), 5865
// (voice-admit) and 8622 (LE).
var dscpNames = map[string]DSCP{
	"cs0": 0, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32, "cs5": 40, "cs6": 48, "cs7": 56,
	"af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20, "af23": 22,
	"af31": 26, "af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38,
	"ef": 46, "va": 44, "le": 1,
}

// dscpAliases are further spellings.
var dscpAliases = map[string]DSCP{"voice-admit": 44, "be": 0, "df": 0, "default": 0}

// dscpText is the canonical name by value, empty where there is none.
var dscpText = func() (text [64]string) {
	for name, d := range dscpNames {
		text[d] = name
	}
	return text
}()

// A ValueError says that a text is no value of its kind.
type ValueError struct {
	Kind string // "DSCP", "protocol", "port", ...
	Text string // as given
	Cure string // what would be right
}

func (e *ValueError) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Text, e.Cure) }

// ParseDSCP reads a DSCP: a standard name in any case, or a number from 0 to
// 63, also in hexadecimal. Its error is a *ValueError.
func ParseDSCP(s string) (DSCP, error) {
	name := strings.ToLower(s)
	if d, ok := dscpNames[name]; ok {
		return d, nil
	}
	if d, ok := dscpAliases[name]; ok {
		return d, nil
	}
	n, err := number(s, 8)
	switch {
	case err != nil:
		return 0, &ValueError{"DSCP", s, "write a name such as ef, cs1 or af41, or a number from 0 to 63"}
	case n > 63 && n%4 == 0:
		return 0, &ValueError{"DSCP", s, fmt.Sprintf("above 63; if this is a TOS octet, its DSCP is %v", DSCP(n>>2))}
	case n > 63:
		return 0, &ValueError{"DSCP", s, "above 63, the largest DSCP"}
	}
	return DSCP(n), nil
}

// DSCPNames returns the standard names in alphabetical order.
func DSCPNames() []string {
	var names []string
	for name := range dscpNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// String returns the standard name, or the number where there is none.
func (d DSCP) String() string {
	if d < 64 && dscpText[d] != "" {
		return dscpText[d]
	}
	return strconv.Itoa(int(d))
}

// MarshalText implements encoding.TextMarshaler.
func (d DSCP) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *DSCP) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDSCP(string(b))
	return err
}

// TOS returns the octet of the IPv4 header that carries d, with no ECN bits.
func (d DSCP) TOS() uint8 { return uint8(d) << 2 }

// number reads a decimal or hexadecimal number without sign.
func number(s string, bits int) (uint64, error) {
	if digits, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(digits, 16, bits)
	}
	return strconv.ParseUint(s, 10, bits)
}
