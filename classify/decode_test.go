package classify

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

var (
	client4, server4 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.2")
	client6, server6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
)

func serialize(t testing.TB, list ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, list...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func ip4(proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, TOS: 46<<2 | 3, Protocol: proto, SrcIP: client4.AsSlice(), DstIP: server4.AsSlice()}
}

func ip6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, TrafficClass: 46<<2 | 3, NextHeader: next, SrcIP: client6.AsSlice(), DstIP: server6.AsSlice()}
}

func tcp() *layers.TCP { return &layers.TCP{SrcPort: 40000, DstPort: 443, SYN: true, Window: 1000} }
func udp() *layers.UDP { return &layers.UDP{SrcPort: 40000, DstPort: 443} }

func ethernet(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: kind}
}

// raw are bytes as they are.
func raw(b ...byte) gopacket.Payload { return gopacket.Payload(b) }

func TestDecode(t *testing.T) {
	withPorts := func(proto Protocol, v6 bool) Flow {
		f := Flow{Proto: proto, DSCP: 46, Src: netip.AddrPortFrom(client4, 40000), Dst: netip.AddrPortFrom(server4, 443)}
		if v6 {
			f.Src, f.Dst = netip.AddrPortFrom(client6, 40000), netip.AddrPortFrom(server6, 443)
		}
		return f
	}
	noPorts := func(proto Protocol, v6 bool) Flow {
		f := withPorts(proto, v6)
		f.Src, f.Dst = netip.AddrPortFrom(f.Src.Addr(), 0), netip.AddrPortFrom(f.Dst.Addr(), 0)
		return f
	}
	options := ip4(layers.IPProtocolTCP)
	options.Options = []layers.IPv4Option{{OptionType: 7, OptionLength: 11, OptionData: make([]byte, 9)}}
	first, later := ip4(layers.IPProtocolUDP), ip4(layers.IPProtocolUDP)
	first.Flags = layers.IPv4MoreFragments
	later.Flags, later.FragOffset = layers.IPv4MoreFragments, 185
	udpHeader := raw(0x9c, 0x40, 0x01, 0xbb, 0, 8, 0, 0)
	tag := func(kind layers.EthernetType) *layers.Dot1Q { return &layers.Dot1Q{VLANIdentifier: 5, Type: kind} }
	for _, tc := range []struct {
		name   string
		packet []byte
		want   Flow
	}{
		{"ipv4 tcp", serialize(t, ip4(layers.IPProtocolTCP), tcp()), withPorts(TCP, false)},
		{"ipv4 udp", serialize(t, ip4(layers.IPProtocolUDP), udp()), withPorts(UDP, false)},
		{"ipv4 options", serialize(t, options, tcp()), withPorts(TCP, false)},
		{"ipv4 first fragment", serialize(t, first, udpHeader), withPorts(UDP, false)},
		{"ipv4 later fragment", serialize(t, later, udpHeader), noPorts(UDP, false)},
		{"ipv4 icmp", serialize(t, ip4(layers.IPProtocolICMPv4), raw(8, 0, 0, 0)), noPorts(ICMP, false)},
		{"ipv4 gre", serialize(t, ip4(layers.IPProtocolGRE), raw(0, 0)), noPorts(47, false)},
		{"ipv4 sctp", serialize(t, ip4(layers.IPProtocolSCTP), raw(0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0)), withPorts(SCTP, false)},
		{"ipv4 authenticated", serialize(t, ip4(layers.IPProtocolAH), raw(6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1), tcp()), withPorts(TCP, false)},
		{"ipv6 tcp", serialize(t, ip6(layers.IPProtocolTCP), tcp()), withPorts(TCP, true)},
		{"ipv6 icmp", serialize(t, ip6(layers.IPProtocolICMPv6), raw(128, 0, 0, 0)), noPorts(ICMPv6, true)},
		{"ipv6 hop-by-hop", serialize(t, ip6(layers.IPProtocolIPv6HopByHop), raw(6, 0, 5, 2, 0, 0, 1, 0), tcp()), withPorts(TCP, true)},
		{"ipv6 all extensions", serialize(t, ip6(layers.IPProtocolIPv6HopByHop), raw(43, 0, 5, 2, 0, 0, 1, 0),
			raw(60, 0, 0, 0, 0, 0, 0, 0), raw(44, 0, 1, 4, 0, 0, 0, 0), raw(51, 0, 0, 1, 0, 0, 0, 1),
			raw(17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1), udpHeader), withPorts(UDP, true)},
		{"ipv6 later fragment", serialize(t, ip6(layers.IPProtocolIPv6Fragment), raw(17, 0, 5, 0xa9, 0, 0, 0, 1), udpHeader), noPorts(UDP, true)},
		{"ipv6 no next header", serialize(t, ip6(layers.IPProtocolNoNextHeader)), noPorts(59, true)},
		{"ethernet", serialize(t, ethernet(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP), tcp()), withPorts(TCP, false)},
		{"vlan", serialize(t, ethernet(layers.EthernetTypeDot1Q), tag(layers.EthernetTypeIPv6), ip6(layers.IPProtocolTCP), tcp()), withPorts(TCP, true)},
		{"two vlan tags", serialize(t, ethernet(layers.EthernetTypeQinQ), tag(layers.EthernetTypeDot1Q), tag(layers.EthernetTypeIPv4),
			ip4(layers.IPProtocolTCP), tcp()), withPorts(TCP, false)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NewDecoder()
			decode := d.IP
			if strings.HasPrefix(tc.name, "e") || strings.Contains(tc.name, "vlan") {
				decode = d.Ethernet
			}
			var f Flow
			if err := decode(tc.packet, &f); err != nil || f != tc.want {
				t.Fatalf("%v, %v; want %v", f, err, tc.want)
			}
			if n := testing.AllocsPerRun(100, func() { _ = decode(tc.packet, &f) }); n != 0 {
				t.Errorf("%v allocations per packet", n)
			}
			for n := range tc.packet { // cut anywhere: an error or a flow, never a panic, never another packet's ports
				err := decode(tc.packet[:n], &f)
				if err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrNotIP) {
					t.Fatalf("cut to %d bytes: %v", n, err)
				}
				if err == nil && f.Src.Port() != 0 && f != tc.want {
					t.Fatalf("cut to %d bytes: %v", n, f)
				}
			}
			if tc.packet[0]>>4 == 4 || tc.packet[0]>>4 == 6 {
				if dscp, err := HeaderDSCP(tc.packet); err != nil || dscp != 46 {
					t.Fatalf("HeaderDSCP = %v, %v", dscp, err)
				}
			}
		})
	}
	if err := NewDecoder().Ethernet(serialize(t, ethernet(layers.EthernetTypeARP), raw(make([]byte, 28)...)), &Flow{}); !errors.Is(err, ErrNotIP) {
		t.Fatalf("arp: %v", err)
	}
}

// The captures were taken in a network namespace of one TCP connection over IPv4
// with TOS 0xb8, one over IPv6 with traffic class 0x20, and two UDP datagrams,
// the second in fragments: tcpdump -i lo (and any) -s 96 -w FILE.
func TestCapturesOfTcpdump(t *testing.T) {
	want := `tcp 127.0.0.1:48443 -> 127.0.0.1:8443 dscp ef
tcp 127.0.0.1:8443 -> 127.0.0.1:48443 dscp cs0
tcp [::1]:48022 -> [::1]:8022 dscp cs1
tcp [::1]:8022 -> [::1]:48022 dscp cs0
udp 127.0.0.1:45353 -> 127.0.0.1:5353 dscp ef
udp 127.0.0.1 -> 127.0.0.1 dscp ef
`
	for _, file := range []string{"lo.pcap", "lo.pcapng", "any.pcap"} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := ReadCapture(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range c.Flows {
				fmt.Fprintln(&got, f.Flow)
			}
			if got.String() != want {
				t.Errorf("flows:\n%swant:\n%s", &got, want)
			}
			if f := c.Flows[0]; f.Packets < 3 || f.Bytes < 200 {
				t.Errorf("first flow: %d packets, %d bytes", f.Packets, f.Bytes)
			}
			if strings.HasSuffix(file, "ng") {
				return // its reader takes the end of the file within a block for the end of the capture
			}
			if _, err := ReadCapture(bytes.NewReader(data[:len(data)*2/3])); err == nil || !strings.Contains(err.Error(), "packet ") {
				t.Errorf("cut short: %v; want an error that names the packet", err)
			}
		})
	}
	for name, data := range map[string]string{"empty": "", "text": "port 80 goes to web\n"} {
		if _, err := ReadCapture(strings.NewReader(data)); err == nil {
			t.Errorf("%s: taken for a capture", name)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	d := NewDecoder()
	var f Flow
	for name, packet := range map[string][]byte{
		"ipv4": serialize(b, ip4(layers.IPProtocolTCP), tcp()), "ipv6": serialize(b, ip6(layers.IPProtocolTCP), tcp()),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = d.IP(packet, &f)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(serialize(f, ip4(layers.IPProtocolTCP), tcp()))
	f.Add(serialize(f, ip6(layers.IPProtocolIPv6HopByHop), raw(6, 0, 5, 2, 0, 0, 1, 0), tcp()))
	f.Add(serialize(f, ethernet(layers.EthernetTypeDot1Q), &layers.Dot1Q{Type: layers.EthernetTypeIPv4}, ip4(layers.IPProtocolUDP), udp()))
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, packet []byte) {
		var a, b Flow
		for _, decode := range []func([]byte, *Flow) error{d.IP, d.Ethernet} {
			errA, errB := decode(packet, &a), decode(packet, &b)
			if a != b || (errA == nil) != (errB == nil) {
				t.Fatalf("the same packet twice: %v %v, %v %v", a, errA, b, errB)
			}
		}
	})
}

func FuzzCapture(f *testing.F) {
	for _, file := range []string{"lo.pcap", "lo.pcapng", "any.pcap"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, _ := ReadCapture(bytes.NewReader(data)); c == nil {
			t.Fatal("no capture")
		}
	})
}

// A tunnel's packet is the tunnel's flow, not that of what it carries.
func TestTunnelsAreNotLookedInto(t *testing.T) {
	var f Flow
	for _, outer := range []gopacket.SerializableLayer{ip4(layers.IPProtocolIPv4), ip6(layers.IPProtocolIPv4)} {
		frame := serialize(t, ethernet(layers.EthernetTypeIPv4), outer, ip4(layers.IPProtocolTCP), tcp())
		if _, ok := outer.(*layers.IPv6); ok {
			frame = serialize(t, ethernet(layers.EthernetTypeIPv6), outer, ip4(layers.IPProtocolTCP), tcp())
		}
		if err := NewDecoder().Ethernet(frame, &f); err != nil || f.Proto != 4 || f.Src.Port() != 0 || f.Dst.Port() != 0 {
			t.Errorf("%v, %v, want protocol ipip without ports", f, err)
		}
	}
}
