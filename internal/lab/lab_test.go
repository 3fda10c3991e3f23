package lab

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// office has a client, a router and a server behind it.
func office(t *testing.T) *Lab {
	t.Helper()
	l, err := New("client", "router", "server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	for _, err := range []error{
		l.Join(End{"client", "eth0", []string{"10.1.0.2/24", "fd01::2/64"}}, End{"router", "lan0", []string{"10.1.0.1/24", "fd01::1/64"}}),
		l.Join(End{"server", "eth0", []string{"10.2.0.2/24", "fd02::2/64"}}, End{"router", "wan0", []string{"10.2.0.1/24", "fd02::1/64"}}),
		l.Route("client", "10.1.0.1", "fd01::1"),
		l.Route("server", "10.2.0.1", "fd02::1"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestHostsReachEachOtherThroughTheRouter(t *testing.T) {
	l := office(t)
	for _, addr := range []string{"10.2.0.2", "fd02::2"} {
		var server net.Listener
		if err := l.Do("server", func() (err error) {
			server, err = net.Listen("tcp", net.JoinHostPort(addr, "7"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := server.Accept()
			if err == nil {
				_, _ = io.Copy(c, c)
				c.Close()
			}
		}()
		var c net.Conn
		if err := l.Do("client", func() (err error) {
			c, err = net.Dial("tcp", server.Addr().String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("hello"))
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
			t.Errorf("by %s: %q, %v", addr, got, err)
		}
		c.Close()
		server.Close()
	}
}

func TestProcessesRunOnTheirHost(t *testing.T) {
	l := office(t)
	out, err := l.Output("router", "ip", "-br", "link")
	if err != nil || !strings.Contains(out, "lan0") || !strings.Contains(out, "wan0") {
		t.Errorf("%s, %v", out, err)
	}
	cmd := exec.Command("sleep", "600")
	if err := l.Start("router", cmd); err != nil {
		t.Fatal(err)
	}
	var ns string
	if err := l.Do("router", func() (err error) {
		ns, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if its, err := os.Readlink("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/net"); err != nil || its != ns {
		t.Errorf("the process is in the namespace %s, %v, want the router's %s", its, err, ns)
	}
}
