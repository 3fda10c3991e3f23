package configs

import (
	"strings"

	"shaperd/shaper"
)

// Scalars that are words: names, switches, kinds, logins.

const maxName = 63

// A name is safe as a metric's label and in a link's name.
type name string

func (*name) format() format {
	return format{what: "a name", example: "web", pattern: `^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`}
}

func (n *name) parse(text string) error {
	switch {
	case text == "" || len(text) > maxName:
		return textErrorf("write 1 to 63 letters, digits, - _ or .", "its length is %d", len(text))
	case !consistsOf(text, "-_."):
		return textErrorf("use letters a to z, digits, - _ and . only", "a character that a name may not have")
	case strings.ContainsRune("-_.", rune(text[0])):
		return textErrorf("begin with a letter or digit", "it begins with %q", text[:1])
	}
	*n = name(text)
	return nil
}

// consistsOf reports whether text has ASCII letters, digits and those of others only.
func consistsOf(text, others string) bool {
	for i := range len(text) {
		c := text[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

// An interfaceName is what the kernel takes as one, or a pattern of such names.
type interfaceName string

func (*interfaceName) format() format {
	return format{what: "an interface's name or a pattern", example: "eth0", pattern: `^[^/:\s]{1,15}$`}
}

func (n *interfaceName) parse(text string) error {
	switch {
	case text == "" || len(text) > 15:
		return textErrorf("write 1 to 15 characters", "its length is %d", len(text))
	case strings.ContainsAny(text, "/: \t\n") || text == "." || text == "..":
		return textErrorf("write it as \"ip link\" shows it, without what follows @", "no interface can have this name")
	}
	*n = interfaceName(text)
	return nil
}

type boolean bool

func (*boolean) format() format {
	return format{what: "true or false", example: "true", enum: []string{"true", "false"}}
}

func (f *boolean) parse(text string) error {
	if text != "true" && text != "false" {
		return textErrorf("write true or false", "it is neither true nor false")
	}
	*f = text == "true"
	return nil
}

type mode struct{ shaper.Mode }

func (*mode) format() format {
	return format{what: "token or leaky", example: "leaky", enum: []string{"token", "leaky"}}
}

func (m *mode) parse(text string) (err error) {
	if m.Mode, err = shaper.ParseMode(text); err != nil {
		return unknown(text, "mode", m.format().enum)
	}
	return nil
}

// onExit is whether the kernel keeps shaping when the daemon ends.
type onExit struct{ keep bool }

func (*onExit) format() format {
	return format{what: "keep or clear", example: "keep", enum: []string{"keep", "clear"}}
}

func (o *onExit) parse(text string) error {
	if o.keep = text == "keep"; !o.keep && text != "clear" {
		return unknown(text, "value", o.format().enum)
	}
	return nil
}

// pageSwitch is whether the web page is served.
type pageSwitch struct{ off bool }

func (*pageSwitch) format() format {
	return format{what: "on or off", example: "off", enum: []string{"on", "off"}}
}

func (s *pageSwitch) parse(text string) error {
	if s.off = text == "off"; !s.off && text != "on" {
		return unknown(text, "value", s.format().enum)
	}
	return nil
}

type relayKind struct{ RelayKind }

func (*relayKind) format() format {
	return format{what: "forward or socks5", example: "forward", enum: []string{"forward", "socks5"}}
}

func (k *relayKind) parse(text string) error {
	switch text {
	case "forward":
		k.RelayKind = Forward
	case "socks5":
		k.RelayKind = SOCKS5
	default:
		return unknown(text, "kind of relay", k.format().enum)
	}
	return nil
}

// A user is a login's name, a password its secret: both are 1 to 255 bytes in RFC 1929.
type user string

func (*user) format() format {
	return format{what: "a user's name", example: "alice"}
}

func (u *user) parse(text string) error {
	*u = user(text)
	return loginLength(text)
}

type password string

func (*password) format() format {
	return format{what: "a password", example: `"correct horse"`}
}

func (p *password) parse(text string) error {
	*p = password(text)
	return loginLength(text)
}

func (*password) secret(string) bool { return true }

func loginLength(text string) error {
	if len(text) < 1 || len(text) > 255 {
		return textErrorf("write 1 to 255 bytes: SOCKS5 has no room for others", "its length is %d bytes", len(text))
	}
	return nil
}
