package main

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// activated starts shaperd as systemd does for a unit with sockets.
func activated(t *testing.T, policy string, sockets ...*net.TCPListener) *process {
	t.Helper()
	return start(t, func(cmd *exec.Cmd) {
		for _, s := range sockets {
			f, err := s.File()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
		// Its number is known to the process itself only.
		cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, program}, cmd.Args[1:]...)
		cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES="+strings.Repeat("shaperd.socket:", len(sockets)-1)+"shaperd.socket")
		path, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = path
	}, "run", "--config", policy)
}

// listenTCP listens with a plain TCP socket, as systemd does and net.Listen does not.
func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	ln, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.(*net.TCPListener)
}

func TestSocketsOfTheServiceManagerAreServedOverARestart(t *testing.T) {
	used, unused := listenTCP(t), listenTCP(t)
	addr := used.Addr().String()
	policy := file(t, "shaperd.yaml", strings.Replace(relay("web", echo(t), "100mbit"), `["127.0.0.1:0"]`, `["`+addr+`", "127.0.0.1:0"]`, 1))
	for range 2 {
		s := dial(t, addr) // while there is no daemon
		p := activated(t, policy, used, unused)
		if line := p.await("level=WARN"); !strings.Contains(line, "no relay listens on "+unused.Addr().String()) {
			t.Errorf("the log says %s", line)
		}
		if got := p.listen("relay listens"); !strings.Contains(got, addr) {
			t.Errorf("listens on %s, want %s too", got, addr)
		}
		s.says("hello")
		s.Close()
		p.signal(unix.SIGTERM)
		if code, _ := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}
