package configs

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"shaperd/classify"
	"shaperd/internal/near"
)

// Scalars that say which traffic: what a match is made of.

type protocol struct{ classify.Protocol }

func (*protocol) format() format {
	return format{what: "a protocol", example: "tcp", pattern: `^[a-zA-Z][a-zA-Z0-9-]*$`, number: [2]int64{0, 255}}
}

func (p *protocol) parse(text string) (err error) {
	p.Protocol, err = classify.ParseProtocol(text)
	return splitError(err, classify.ProtocolNames())
}

type ports struct{ classify.PortRange }

func (*ports) format() format {
	return format{what: "a port or a range", example: "5060-5061", pattern: `^[0-9]{1,5}(-[0-9]{1,5})?$`, number: [2]int64{1, 65535}}
}

func (p *ports) parse(text string) (err error) {
	p.PortRange, err = classify.ParsePortRange(text)
	return splitError(err, nil)
}

type prefix struct{ netip.Prefix }

func (*prefix) format() format {
	return format{what: "an address or a prefix", example: "192.0.2.0/24", pattern: `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`}
}

func (p *prefix) parse(text string) (err error) {
	p.Prefix, err = classify.ParsePrefix(text)
	return splitError(err, nil)
}

type dscp struct{ classify.DSCP }

func (*dscp) format() format {
	return format{what: "a DSCP", example: "ef", pattern: `^[a-zA-Z][a-zA-Z0-9-]*$`, number: [2]int64{0, 63}}
}

func (d *dscp) parse(text string) (err error) {
	d.DSCP, err = classify.ParseDSCP(text)
	return splitError(err, classify.DSCPNames())
}

// splitError splits what classify says of a text that is no value into what is
// wrong and the cure: one of the names, if it is a misspelling.
func splitError(err error, names []string) error {
	var v *classify.ValueError
	if !errors.As(err, &v) {
		return err
	}
	if meant := near.Words(v.Text, names); len(meant) > 0 {
		return unknown(v.Text, v.Kind, names)
	}
	if reason, cure, ok := strings.Cut(v.Cure, ": write "); ok {
		return textErrorf("write "+cure, "%s", reason)
	}
	if reason, cure, ok := strings.Cut(v.Cure, "; "); ok {
		return textErrorf(cure, "%s", reason)
	}
	return textErrorf(v.Cure, "it is no %s", v.Kind)
}

// A fwmark is a netfilter mark, 0 for packets without one.
type fwmark uint32

func (*fwmark) format() format {
	return format{what: "a mark", example: "0x10", pattern: `^0[xX][0-9a-fA-F]{1,8}$`, number: [2]int64{0, 1<<32 - 1}}
}

func (m *fwmark) parse(text string) error {
	digits, base := text, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return textErrorf("write 0 to 0xffffffff", "it is no 32-bit number")
	}
	*m = fwmark(n)
	return nil
}

// A socketMark is a fwmark to set.
type socketMark struct{ fwmark }

func (*socketMark) format() format {
	f := new(fwmark).format()
	f.number[0] = 1
	return f
}

func (m *socketMark) parse(text string) error {
	err := m.fwmark.parse(text)
	if err == nil && m.fwmark == 0 {
		return textErrorf("remove the key", "0 is no mark")
	}
	return err
}
