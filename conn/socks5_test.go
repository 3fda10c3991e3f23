package conn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// request5 is a CONNECT request for host, a name or an address.
func request5(host string, port uint16) []byte {
	b := []byte{5, 1, 0}
	if a, err := netip.ParseAddr(host); err == nil {
		kind := byte(1)
		if a.Is6() {
			kind = 4
		}
		b = append(append(b, kind), a.AsSlice()...)
	} else {
		b = append(append(b, 3, byte(len(host))), host...)
	}
	return binary.BigEndian.AppendUint16(b, port)
}

// hostPort splits a server's address.
func hostPort(t testing.TB, addr string) (string, uint16) {
	t.Helper()
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return ap.Addr().String(), ap.Port()
}

// openSocks goes through the handshake without a login and returns the reply code.
func openSocks(t testing.TB, c net.Conn, host string, port uint16) byte {
	t.Helper()
	write(t, c, []byte{5, 1, 0})
	if got := readFull(t, c, 2); !bytes.Equal(got, []byte{5, 0}) {
		t.Fatalf("greeting answered with %v", got)
	}
	write(t, c, request5(host, port))
	return readReply(t, c)
}

func readReply(t testing.TB, c net.Conn) byte {
	t.Helper()
	head := readFull(t, c, 4)
	size := 4
	if head[3] == 4 {
		size = 16
	}
	readFull(t, c, size+2)
	return head[1]
}

func TestSocksReachesAddressesAndNames(t *testing.T) {
	v4 := serve(t, echo)
	_, port4 := hostPort(t, v4)
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			echo(c.(*net.TCPConn))
		}
	}()
	port6 := uint16(ln.Addr().(*net.TCPAddr).Port)
	r := start(t, socksRelay())
	for _, dest := range []struct {
		host string
		port uint16
	}{{"127.0.0.1", port4}, {"::1", port6}, {"localhost", port4}} {
		t.Run(dest.host, func(t *testing.T) {
			c := dialTo(t, r)
			if code := openSocks(t, c, dest.host, dest.port); code != replyOK {
				t.Fatalf("reply %#x", code)
			}
			write(t, c, []byte("hello"))
			if got := readFull(t, c, 5); string(got) != "hello" {
				t.Fatalf("echo %q", got)
			}
		})
	}
}

func TestSocksKeepsWhatTheClientSentEarly(t *testing.T) {
	host, port := hostPort(t, serve(t, echo))
	c := dialTo(t, start(t, socksRelay()))
	early := random(6, 3000)
	write(t, c, append(append([]byte{5, 1, 0}, request5(host, port)...), early...))
	readFull(t, c, 2)
	if code := readReply(t, c); code != replyOK {
		t.Fatalf("reply %#x", code)
	}
	if got := readFull(t, c, len(early)); !bytes.Equal(got, early) {
		t.Fatal("early bytes changed on the way")
	}
}

func TestSocksHandshakeByteByByte(t *testing.T) {
	host, port := hostPort(t, serve(t, echo))
	cfg := socksRelay()
	cfg.Users = map[string]string{"ann": "s3cret"}
	c := dialTo(t, start(t, cfg))
	trickle := func(p []byte) {
		for i := range p {
			write(t, c, p[i:i+1])
		}
	}
	trickle([]byte{5, 2, 0, 2})
	if got := readFull(t, c, 2); got[1] != 2 {
		t.Fatalf("method %d, want 2", got[1])
	}
	trickle(append([]byte{1, 3, 'a', 'n', 'n', 6}, "s3cret"...))
	if got := readFull(t, c, 2); got[1] != 0 {
		t.Fatalf("login answered with %d", got[1])
	}
	trickle(request5(host, port))
	if code := readReply(t, c); code != replyOK {
		t.Fatalf("reply %#x", code)
	}
}

func TestSocksRefusals(t *testing.T) {
	host, port := hostPort(t, serve(t, echo))
	noLogin, greeted := []byte{5, 1, 0}, 2
	for _, tc := range []struct {
		name  string
		users map[string]string
		sent  []byte
		reply int // bytes of the answer in all
		code  byte
		why   Refusal
	}{
		{"http", nil, []byte("GET / HTTP/1.1\r\n\r\n"), 0, 0, RefusedProtocol},
		{"socks4", nil, []byte{4, 1, 0, 80, 127, 0, 0, 1, 0}, 0, 0, RefusedProtocol},
		{"no acceptable method", map[string]string{"ann": "x"}, []byte{5, 1, 0}, 2, 0xff, RefusedLogin},
		{"wrong password", map[string]string{"ann": "x"}, append([]byte{5, 1, 2}, 1, 3, 'a', 'n', 'n', 1, 'y'), 4, 1, RefusedLogin},
		{"unknown user with empty password", map[string]string{"ann": "x"}, append([]byte{5, 1, 2}, 1, 3, 'b', 'o', 'b', 0), 4, 1, RefusedLogin},
		{"bind", nil, append(noLogin, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80), greeted + 10, replyBadCommand, RefusedRequest},
		{"udp associate", nil, append(noLogin, 5, 3, 0, 1, 127, 0, 0, 1, 0, 80), greeted + 10, replyBadCommand, RefusedRequest},
		{"address type", nil, append(noLogin, 5, 1, 0, 9, 127, 0, 0, 1, 0, 80), greeted + 10, replyBadAddress, RefusedRequest},
		{"port 0", nil, append(noLogin, request5(host, 0)...), greeted + 10, replyFailure, RefusedRequest},
		{"empty name", nil, append(noLogin, 5, 1, 0, 3, 0, 0, 80), greeted + 10, replyFailure, RefusedRequest},
		{"nothing listens", nil, append(noLogin, request5("127.0.0.1", 1)...), greeted + 10, replyRefused, RefusedConnect},
		{"name without address", nil, append(noLogin, request5("no-such-host.invalid", port)...), greeted + 10, replyHostUnreachable, RefusedResolve},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := socksRelay()
			cfg.Users = tc.users
			r := start(t, cfg)
			c := dialTo(t, r)
			write(t, c, tc.sent)
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatalf("read: %v; want the reply, then an end of stream", err)
			}
			if len(got) != tc.reply {
				t.Fatalf("answer %v, want %d bytes", got, tc.reply)
			}
			if tc.reply > 0 {
				at := 1
				if tc.reply > 4 {
					at = greeted + 1
				} else if tc.reply == 4 {
					at = 3
				}
				if got[at] != tc.code {
					t.Fatalf("code %#x, want %#x", got[at], tc.code)
				}
			}
			c.Close()
			until(t, r, "client refused and gone", func(st Stats) bool { return st.Refused[tc.why] == 1 && st.Sessions == 0 })
		})
	}
}

func TestStalledHandshakeEndsAndHoldsNobodyUp(t *testing.T) {
	host, port := hostPort(t, serve(t, echo))
	cfg := socksRelay()
	r := start(t, cfg)
	var stalled []*net.TCPConn
	for i := range 50 {
		c := dialTo(t, r)
		write(t, c, []byte{5, 1, 0, 5}[:i%4+1])
		stalled = append(stalled, c)
	}
	c := dialTo(t, r)
	if code := openSocks(t, c, host, port); code != replyOK {
		t.Fatalf("reply %#x while others stall", code)
	}
	cfg.Timeouts.Handshake = time.Millisecond
	if err := r.Update(cfg); err != nil {
		t.Fatal(err)
	}
	until(t, r, "stalled clients refused", func(st Stats) bool { return st.Refused[RefusedHandshake] == 50 && st.Sessions == 1 })
	for _, c := range stalled {
		wantReset(t, c)
	}
}

func FuzzSocks(f *testing.F) {
	f.Add(byte(0), []byte{5, 1, 0}, false)
	f.Add(byte(1), []byte{1, 1, 'u', 1, 'p'}, true)
	f.Add(byte(2), request5("example.net", 443), false)
	f.Add(byte(2), request5("2001:db8::1", 443), false)
	f.Fuzz(func(t *testing.T, at byte, buf []byte, auth bool) {
		var users map[string]string
		if auth {
			users = map[string]string{"u": "p"}
		}
		stage := stage(at % 3)
		whole, next := socksNext(stage, buf, users)
		if whole.used > len(buf) || whole.used < 0 {
			t.Fatalf("used %d of %d", whole.used, len(buf))
		}
		if whole.complete() && whole.host == "" && !whole.addr.IsValid() {
			t.Fatalf("complete without a destination: %+v", whole)
		}
		// The outcome does not depend on how the bytes are cut: before the
		// message is whole nothing happens, unless it is hopeless already.
		for n := range min(whole.used, 64) {
			part, _ := socksNext(stage, buf[:n], users)
			if part.used != 0 && part.refused == NotRefused {
				t.Fatalf("%d of %d bytes were enough", n, whole.used)
			}
		}
		if whole.used > 0 {
			again, nextAgain := socksNext(stage, buf[:whole.used], users)
			if fmt.Sprint(again, nextAgain) != fmt.Sprint(whole, next) {
				t.Fatalf("outcome changed with what follows: %v, %v", again, whole)
			}
		}
	})
}
