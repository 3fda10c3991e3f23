package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// capture writes a file with a web and an SSH flow, and a packet that is no IP.
func capture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	packet := func(kind layers.EthernetType, above ...gopacket.SerializableLayer) {
		t.Helper()
		mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
		all := append([]gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: kind}}, above...)
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, all...); err != nil {
			t.Fatal(err)
		}
		info := gopacket.CaptureInfo{Timestamp: time.Unix(0, 0), CaptureLength: len(buf.Bytes()), Length: len(buf.Bytes())}
		if err := w.WritePacket(info, buf.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	four := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{198, 51, 100, 9}}
	six := &layers.IPv6{
		Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, TrafficClass: 8 << 2,
		SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8:1::2"),
	}
	packet(layers.EthernetTypeIPv6, six, &layers.TCP{SrcPort: 40001, DstPort: 22, SYN: true})
	for range 3 {
		packet(layers.EthernetTypeIPv4, four, &layers.TCP{SrcPort: 40000, DstPort: 443, ACK: true}, gopacket.Payload("some data"))
	}
	packet(layers.EthernetTypeLLC, gopacket.Payload("no IP"))
	return path
}

func TestExplainListsTheFlowsOfACapture(t *testing.T) {
	file := capture(t)
	golden(t, "explain-pcap.txt", output(t, 0, "explain", "good.yaml", "--pcap", file))
	golden(t, "explain-pcap-json.txt", output(t, 0, "explain", "good.yaml", "--pcap", file, "--json"))
}
