package configs

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Scalars that are addresses to listen on or to connect to.

// A listenAddr is an address of this host with a port, which may be 0.
type listenAddr struct{ netip.AddrPort }

func (*listenAddr) format() format {
	return format{what: "an address and a port", example: `"127.0.0.1:8443"`, pattern: `^([0-9.]+|\[[0-9A-Fa-f:.]+(%[^\]]+)?\]):[0-9]{1,5}$`}
}

func (l *listenAddr) parse(text string) error {
	a, err := netip.ParseAddrPort(text)
	if err == nil {
		if a.Addr().Is4In6() {
			return textErrorf("write "+netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String(), "an IPv4 address in IPv6 form")
		}
		l.AddrPort = a
		return nil
	}
	if err := noPort(text, "8443"); err != nil {
		return err
	}
	host, port, ok := cutPort(text)
	if !ok {
		port = text
	}
	switch {
	case !ok && !isPort(port):
		return textErrorf(`write an address and a port, such as "127.0.0.1:8443"`, "it is no address and port")
	case !isPort(port):
		return textErrorf("write 1 to 65535, or 0 for one that the kernel chooses", "its port is not from 0 to 65535")
	}
	switch a, err := netip.ParseAddr(host); {
	case host == "" || host == "*":
		return textErrorf(fmt.Sprintf(`write "127.0.0.1:%s" for this host only, or "[::]:%[1]s" for all addresses`, port), "it has no address")
	case err == nil && a.Is6():
		return textErrorf(fmt.Sprintf("write [%s]:%s", a, port), "an IPv6 address is in brackets")
	case host == "localhost":
		return textErrorf(fmt.Sprintf(`write "127.0.0.1:%s" or "[::1]:%[1]s"`, port), "it is a name, not an address")
	}
	return textErrorf(fmt.Sprintf(`write an address, such as "127.0.0.1:%s"`, port), "%s is no address", quote(host))
}

// A metricsAddr is a listenAddr, or zero for "off".
type metricsAddr struct{ listenAddr }

func (*metricsAddr) format() format {
	f := new(listenAddr).format()
	return format{what: f.what + ", or off", example: `"127.0.0.1:9477"`, pattern: "^off$|" + f.pattern}
}

func (m *metricsAddr) parse(text string) error {
	if text == "off" {
		return nil
	}
	return m.listenAddr.parse(text)
}

// A hostPort is where to connect to: an address or a name, and a port.
type hostPort struct {
	text string
	addr netip.AddrPort // the zero one for a name
}

func (*hostPort) format() format {
	return format{what: "a host and a port", example: `"10.0.0.5:443"`, pattern: `^([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+(%[^\]]+)?\]):[0-9]{1,5}$`}
}

func (h *hostPort) parse(text string) error {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if _, _, hasPort := cutPort(host); !hasPort {
			host += ":443"
		}
		return textErrorf("write "+host, "a relay forwards TCP and knows no URLs")
	}
	if err := noPort(text, "443"); err != nil {
		return err
	}
	host, port, ok := cutPort(text)
	switch {
	case !ok && isPort(text), ok && host == "":
		return textErrorf("write a host and a port, such as 10.0.0.5:443", "it has no host")
	case !ok:
		return textErrorf(fmt.Sprintf("write %s:443", text), "it has no port")
	case !isPort(port) || strings.Trim(port, "0") == "":
		return textErrorf("write 1 to 65535", "its port is not from 1 to 65535")
	}
	if err := knownHost(host); err != nil {
		return err
	}
	a, err := netip.ParseAddr(host)
	switch {
	case err == nil && a.Is6() && text[0] != '[':
		return textErrorf(fmt.Sprintf("write [%s]:%s", a, port), "an IPv6 address is in brackets")
	case err == nil && a.IsUnspecified():
		return textErrorf("write the address of a host", "it is the address of no host")
	}
	n, _ := strconv.ParseUint(port, 10, 16) // isPort
	if host == "localhost" {
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	h.text, h.addr = text, netip.AddrPortFrom(a.Unmap(), uint16(n))
	return nil
}

// cutPort splits host:port at the last colon and takes the brackets off.
func cutPort(text string) (host, port string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(text[:i], "["), "]"), text[i+1:], true
}

// noPort returns the error of an address that has no port, or no brackets to
// tell the port from it; such as port would be right.
func noPort(text, port string) error {
	if !isAddr(strings.Trim(text, "[]")) {
		return nil
	}
	if host, last, _ := cutPort(text); text[0] != '[' && strings.Contains(host, ":") {
		if isAddr(host) && isPort(last) {
			return textErrorf(fmt.Sprintf("write [%s]:%s", host, last), "an IPv6 address is in brackets")
		}
	}
	return textErrorf("write "+net.JoinHostPort(strings.Trim(text, "[]"), port), "it has no port")
}

func isAddr(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// knownHost returns what is wrong with a host that can be neither an address nor a name.
func knownHost(host string) error {
	switch {
	case isAddr(host), isHostname(host) && strings.Trim(host, "0123456789.") != "":
		return nil
	case strings.Trim(host, "0123456789.") == "":
		return textErrorf("write an IPv4 address such as 10.0.0.5", "%s is no address", quote(host))
	}
	return textErrorf("write an address or a host's name", "%s is no host", quote(host))
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// isHostname reports whether a resolver could know the name (RFC 1123, and the
// underscores that people use).
func isHostname(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if len(host) == 0 || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || !consistsOf(label, "-_") || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}
