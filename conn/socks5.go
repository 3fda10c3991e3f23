package conn

import (
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
	"slices"
)

// The server's side of the SOCKS5 handshake (RFC 1928) with user name and
// password (RFC 1929), as a pure function over what the client has sent.

// stage is how far a handshake has come.
type stage uint8

const (
	greeting stage = iota
	login
	request
)

// SOCKS5 reply codes (RFC 1928, section 6).
const (
	replyOK              = 0x00
	replyFailure         = 0x01
	replyNetUnreachable  = 0x03
	replyHostUnreachable = 0x04
	replyRefused         = 0x05
	replyBadCommand      = 0x07
	replyBadAddress      = 0x08
)

// A socksStep is the outcome of one look at the client's bytes. The zero value
// asks for more of them.
type socksStep struct {
	used    int    // bytes consumed
	reply   []byte // to send at once
	refused Refusal
	host    string     // the destination, when the request is complete: a name,
	addr    netip.Addr // or an address
	port    uint16
}

// complete reports whether the step named the destination.
func (st *socksStep) complete() bool { return st.port != 0 }

// socksNext looks at what is in buf at the given stage. Without users it asks for no login.
func socksNext(at stage, buf []byte, users map[string]string) (socksStep, stage) {
	switch at {
	case greeting:
		return socksGreeting(buf, len(users) > 0)
	case login:
		step := socksLogin(buf, users)
		if step.used == 0 {
			return step, login
		}
		return step, request
	default:
		return socksRequest(buf), request
	}
}

func socksGreeting(buf []byte, auth bool) (socksStep, stage) {
	if len(buf) > 0 && buf[0] != 5 {
		return socksStep{refused: RefusedProtocol}, greeting
	}
	if len(buf) < 2 || len(buf) < 2+int(buf[1]) {
		return socksStep{}, greeting
	}
	used := 2 + int(buf[1])
	method, next := byte(0), request
	if auth {
		method, next = 2, login
	}
	if slices.Contains(buf[2:used], method) {
		return socksStep{used: used, reply: []byte{5, method}}, next
	}
	return socksStep{used: used, reply: []byte{5, 0xff}, refused: RefusedLogin}, greeting
}

// socksLogin returns the zero step until the whole message is there.
func socksLogin(buf []byte, users map[string]string) socksStep {
	if len(buf) > 0 && buf[0] != 1 {
		return socksStep{refused: RefusedProtocol}
	}
	if len(buf) < 2 {
		return socksStep{}
	}
	passwordAt := 2 + int(buf[1])
	if len(buf) <= passwordAt || len(buf) <= passwordAt+int(buf[passwordAt]) {
		return socksStep{}
	}
	used := passwordAt + 1 + int(buf[passwordAt])
	want, known := users[string(buf[2:passwordAt])]
	password := buf[passwordAt+1 : used]
	if subtle.ConstantTimeCompare([]byte(want), password) == 1 && known {
		return socksStep{used: used, reply: []byte{1, 0}}
	}
	return socksStep{used: used, reply: []byte{1, 1}, refused: RefusedLogin}
}

func socksRequest(buf []byte) socksStep {
	if len(buf) > 0 && buf[0] != 5 {
		return socksStep{refused: RefusedProtocol}
	}
	if len(buf) < 5 {
		return socksStep{}
	}
	var st socksStep
	addrAt, addrLen := 4, 0
	switch buf[3] {
	case 1:
		addrLen = 4
	case 3:
		addrAt, addrLen = 5, int(buf[4])
	case 4:
		addrLen = 16
	default:
		return socksStep{refused: RefusedRequest, reply: socksReply(replyBadAddress, netip.AddrPort{})}
	}
	end := addrAt + addrLen
	if len(buf) < end+2 {
		return socksStep{}
	}
	st.used = end + 2
	st.port = binary.BigEndian.Uint16(buf[end:])
	if buf[3] == 3 {
		st.host = string(buf[addrAt:end])
		if a, err := netip.ParseAddr(st.host); err == nil && a.Zone() == "" {
			st.addr = a.Unmap() // some clients send addresses as names
		}
	} else {
		a, _ := netip.AddrFromSlice(buf[addrAt:end])
		st.addr = a.Unmap()
	}
	switch {
	case buf[1] != 1:
		return socksStep{used: st.used, refused: RefusedRequest, reply: socksReply(replyBadCommand, netip.AddrPort{})}
	case st.port == 0 || addrLen == 0:
		return socksStep{used: st.used, refused: RefusedRequest, reply: socksReply(replyFailure, netip.AddrPort{})}
	}
	return st
}

// socksReply is a reply with the address that the relay uses towards the destination.
func socksReply(code byte, bound netip.AddrPort) []byte {
	b := []byte{5, code, 0, 1}
	addr := bound.Addr().Unmap()
	switch {
	case addr.Is6():
		b[3] = 4
		b = append(b, addr.AsSlice()...)
	case addr.Is4():
		b = append(b, addr.AsSlice()...)
	default:
		b = append(b, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint16(b, bound.Port())
}
