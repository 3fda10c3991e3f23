package classify

import (
	"encoding"
	"errors"
	"strings"
	"testing"
)

func TestNamesOfTheDSCPStandards(t *testing.T) {
	for text, want := range map[string]DSCP{
		"ef": 46, "EF": 46, "va": 44, "voice-admit": 44, "le": 1, "be": 0, "df": 0, "default": 0, "cs0": 0, "cs7": 56,
		"af11": 10, "af43": 38, "0": 0, "63": 63, "0x2e": 46,
	} {
		if got, err := ParseDSCP(text); err != nil || got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, err, want)
		}
	}
	for class := range 4 {
		for drop := range 3 {
			name := "af" + string(rune('1'+class)) + string(rune('1'+drop))
			if got, err := ParseDSCP(name); err != nil || int(got) != 8*(class+1)+2*(drop+1) { // RFC 2597
				t.Errorf("%s = %d, %v", name, got, err)
			}
		}
	}
	if _, err := ParseDSCP("184"); err == nil || !strings.Contains(err.Error(), "its DSCP is ef") {
		t.Errorf("a TOS octet: %v", err)
	}
}

func TestWrongValuesNameTheCure(t *testing.T) {
	for _, tc := range []struct{ kind, text, cure string }{
		{"dscp", "af44", "ef, cs1 or af41"}, {"dscp", "64", "its DSCP is cs2"}, {"dscp", "65", "above 63"}, {"dscp", "-1", "0 to 63"}, {"dscp", "", "0 to 63"},
		{"proto", "http", "tcp, udp"}, {"proto", "256", "0 to 255"},
		{"port", "0", "1 to 65535"}, {"port", "65536", "1 to 65535"}, {"port", "90-80", "write 80-90"}, {"port", "80-", "5060-5061"}, {"port", "http", "1 to 65535"},
		{"prefix", "10.0.0.1/8", "write 10.0.0.0/8"}, {"prefix", "10.0.0.0/33", "192.0.2.0/24"}, {"prefix", "example.net", "192.0.2.0/24"}, {"prefix", "fe80::1%eth0", "192.0.2.0/24"},
	} {
		var err error
		switch tc.kind {
		case "dscp":
			_, err = ParseDSCP(tc.text)
		case "proto":
			_, err = ParseProtocol(tc.text)
		case "port":
			_, err = ParsePortRange(tc.text)
		case "prefix":
			_, err = ParsePrefix(tc.text)
		}
		var value *ValueError
		if !errors.As(err, &value) || value.Text != tc.text || !strings.Contains(value.Cure, tc.cure) {
			t.Errorf("%s %q: %v; want the cure %q", tc.kind, tc.text, err, tc.cure)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, s := range []string{"ef", "46", "tcp", "5060-5061", "0x1", "icmpv6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		roundTrip[DSCP](t, text)
		roundTrip[Protocol](t, text)
		roundTrip[PortRange](t, text)
		if p, err := ParsePrefix(text); err == nil {
			if q, err := ParsePrefix(p.String()); err != nil || p != q {
				t.Fatalf("%q: %v, again %v, %v", text, p, q, err)
			}
		}
	})
}

func roundTrip[T comparable, P interface {
	*T
	encoding.TextUnmarshaler
	encoding.TextMarshaler
}](t *testing.T, text string) {
	var v, again T
	if P(&v).UnmarshalText([]byte(text)) != nil {
		return
	}
	out, err := P(&v).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if err := P(&again).UnmarshalText(out); err != nil || v != again {
		t.Fatalf("%q: %v, written %q, read %v, %v", text, v, out, again, err)
	}
}
