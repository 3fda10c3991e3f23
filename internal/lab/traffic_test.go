package lab

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

var servers = []netip.AddrPort{netip.MustParseAddrPort("10.2.0.2:443"), netip.MustParseAddrPort("[fd02::2]:443")}

// seen collects what a capture tells.
type seen struct {
	mu   sync.Mutex
	more *sync.Cond
	list []Packet
}

// capture returns what arrives at the server's or the client's eth0.
func capture(t *testing.T, l *Lab, host string) *seen {
	t.Helper()
	s := &seen{}
	s.more = sync.NewCond(&s.mu)
	c, err := l.Capture(host, "eth0", func(p Packet) {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.Data = slices.Clone(p.Data)
		s.list = append(s.list, p)
		s.more.Broadcast()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s
}

// until waits for a packet that ok is true for.
func (s *seen) until(ok func(Packet) bool) Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := 0; ; {
		for ; at < len(s.list); at++ {
			if ok(s.list[at]) {
				return s.list[at]
			}
		}
		s.more.Wait()
	}
}

// dscpOf returns a frame's DSCP, protocol and TCP flags; zeros where it is no IP.
func dscpOf(frame []byte) (dscp, protocol, flags byte) {
	ip, transport := frame[ethernetHeader:], 0
	switch binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_IP:
		dscp, protocol, transport = ip[1]>>2, ip[9], ipv4Header
	case unix.ETH_P_IPV6:
		dscp, protocol, transport = (ip[0]<<4|ip[1]>>4)>>2, ip[6], ipv6Header
	}
	if protocol == unix.IPPROTO_TCP {
		flags = ip[transport+13]
	}
	return dscp, protocol, flags
}

func TestConnectionsCarryTheirDSCPFromTheFirstPacket(t *testing.T) {
	for _, down := range []bool{false, true} {
		l := office(t)
		atServer, atClient := capture(t, l, "server"), capture(t, l, "client")
		s, err := l.Connect(TCP{Client: "client", Server: "server", Addrs: servers, DSCP: 46, Down: down})
		if err != nil {
			t.Fatal(err)
		}
		s.Send()
		receiver := atServer
		if down {
			receiver = atClient
		}
		for _, ethertype := range []byte{0x08, 0x86} {
			receiver.until(func(p Packet) bool { return p.Data[12] == ethertype && p.Bytes > 10_000 }) // traffic by both families
		}
		s.Close()
		for side, saw := range map[string]*seen{"server": atServer, "client": atClient} {
			first := 0
			saw.mu.Lock()
			for _, p := range saw.list {
				dscp, protocol, flags := dscpOf(p.Data)
				if protocol != 6 || flags&4 != 0 { // a reset is the kernel's own
					continue
				}
				if flags&2 != 0 {
					first++
				}
				if dscp != 46 {
					t.Errorf("down %v: at the %s a packet with DSCP %d and flags %#x", down, side, dscp, flags)
				}
			}
			saw.mu.Unlock()
			if first < len(servers) {
				t.Errorf("down %v: at the %s %d first packets", down, side, first)
			}
		}
	}
}

// The rate on the wire is more than the payload's: by what full packets have of headers.
func TestStreamsCountHeaders(t *testing.T) {
	l := office(t)
	for i, want := range []float64{1514. / 1448, 1514. / 1428} {
		s, err := l.Connect(TCP{Client: "client", Server: "server", Addrs: servers[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		atServer := capture(t, l, "server")
		s.Send()
		atServer.until(func(Packet) bool { return len(atServer.list) > 100 })
		s.Stop()
		s.Send() // and again
		atServer.until(func(Packet) bool { return len(atServer.list) > 200 })
		s.Close()
		bits, each := s.Rate(0, 1<<62)
		from, to := s.Got.Since(0)[0].At, s.Got.Last()
		if got := bits * (to - from).Seconds() / 8 / each[0]; math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %.4f bytes for each byte of payload, want %.4f", servers[i], got, want)
		}
		if payload := float64(s.Got.Bytes(0)); payload < 100*1000 {
			t.Errorf("%s: only %.0f bytes arrived", servers[i], payload)
		}
		if got, want := s.Between(0, to+1)*(to+1).Seconds()/8, float64(s.Got.Bytes(0))*want; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %.0f bytes between the first and the last, want %.0f", servers[i], got, want)
		}
	}
}

func TestPacketsAreNumberedAndCounted(t *testing.T) {
	l := office(t)
	for _, server := range servers {
		atServer := capture(t, l, "server")
		p, err := l.Packets(UDP{From: "client", To: "server", Addr: server, DSCP: 34, Size: 1000, Rate: 100 * shaper.Mbit})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		lost, err := p.Lost(t.Context())
		if err != nil || lost != 0 {
			t.Errorf("%s: lost %d, %v", server, lost, err)
		}
		// What is not sent on is lost, and only that.
		hole := []string{"blackhole", server.Addr().String()}
		if _, err := l.Output("router", append([]string{"ip", "route", "add"}, hole...)...); err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), 30); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Output("router", append([]string{"ip", "route", "del"}, hole...)...); err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		if lost, err = p.Lost(t.Context()); err != nil || lost != 30 {
			t.Errorf("%s: lost %d, %v; want 30", server, lost, err)
		}
		for i, a := range p.Arrived() {
			if want := i + i/100*30; a.Conn != want || a.N != 1000 {
				t.Fatalf("%s: arrival %d is packet %d with %d bytes, want %d", server, i, a.Conn, a.N, want)
			}
		}
		frame := atServer.until(func(p Packet) bool { _, protocol, _ := dscpOf(p.Data); return protocol == 17 })
		if dscp, _, _ := dscpOf(frame.Data); dscp != 34 || frame.Count != 1 || frame.Bytes != 1000+8+ipHeader(server.Addr())+14 {
			t.Errorf("%s: DSCP %d, %d packets of %d bytes", server, dscp, frame.Count, frame.Bytes)
		}
		p.Close()
	}
}

func TestPacketsOfNoUseAreRefused(t *testing.T) {
	l := office(t)
	for _, u := range []UDP{{Size: 7, Rate: 1}, {Size: 8}} {
		if _, err := l.Packets(u); err == nil {
			t.Errorf("%+v has no error", u)
		}
	}
}

// An offloaded packet is as many as it becomes on a wire, each with its headers.
func TestAnOffloadedPacketCountsAsItsParts(t *testing.T) {
	header := func(ethertype, _, segment int) []byte {
		b := make([]byte, vnetHeader+snapLength)
		if segment > 0 {
			b[1] = 1 // VIRTIO_NET_HDR_GSO_TCPV4
		}
		b[4], b[5] = byte(segment), byte(segment>>8) // this machine's order is tested by the others
		b[vnetHeader+12], b[vnetHeader+13] = byte(ethertype>>8), byte(ethertype)
		ip := 20
		if ethertype == 0x86dd {
			ip = 40
		}
		b[vnetHeader+14+ip+12] = 8 << 4
		return b
	}
	for _, tt := range []struct{ ethertype, payload, segment, bytes, count int }{
		{0x0800, 1448, 0, 1514, 1},
		{0x0800, 10 * 1448, 1448, 10 * 1514, 10},
		{0x0800, 9*1448 + 1, 1448, 9*1514 + 67, 10},
		{0x86dd, 45 * 1428, 1428, 45 * 1514, 45},
	} {
		ip := 20
		if tt.ethertype == 0x86dd {
			ip = 40
		}
		p := newPacket(header(tt.ethertype, tt.payload, tt.segment), vnetHeader+14+ip+32+tt.payload)
		if p.Bytes != tt.bytes || p.Count != tt.count {
			t.Errorf("%+v: %d packets of %d bytes together", tt, p.Count, p.Bytes)
		}
	}
}

func TestTheRootQdiscIsTold(t *testing.T) {
	l := office(t)
	if err := l.Sink("router", "sink0"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Output("router", "tc", "qdisc", "replace", "dev", "sink0", "root", "handle", "7:", "htb"); err != nil {
		t.Fatal(err)
	}
	if kind, handle, err := l.RootQdisc("router", "sink0"); kind != "htb" || handle != "7:0" || err != nil {
		t.Errorf("%s %s, %v", kind, handle, err)
	}
	if kind, _, err := l.RootQdisc("router", "wan0"); kind != "noqueue" || err != nil {
		t.Errorf("%s, %v", kind, err)
	}
	if _, _, err := l.RootQdisc("router", "eth9"); err == nil {
		t.Error("a device that is not there has a qdisc")
	}
}
