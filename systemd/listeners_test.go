package systemd

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test runs itself as the service, as systemd does: with the sockets from
// descriptor 3 on, and the process's number in the environment.
func TestListenersAreThoseOfTheManagerByName(t *testing.T) {
	if os.Getenv("SHAPERD_TEST_LISTENERS") != "" {
		for _, f := range Listeners() {
			ln, err := net.FileListener(f)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("got %s %s", f.Name(), ln.Addr())
		}
		if again := Listeners(); again != nil {
			t.Errorf("a second call returned %v", again)
		}
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tt := range []struct{ name, pid, want string }{
		{"for this process", "$$", "got web " + ln.Addr().String()},
		{"for another process", "1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := exec.Command("sh", "-c", `LISTEN_PID=`+tt.pid+` exec "$0" -test.v -test.run='^TestListenersAre'`, os.Args[0])
			service.Env = append(os.Environ(), "SHAPERD_TEST_LISTENERS=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=web")
			service.ExtraFiles = []*os.File{f}
			out, err := service.CombinedOutput()
			if err != nil || strings.Contains(string(out), "got ") != (tt.want != "") || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, want %q:\n%s", err, tt.want, out)
			}
		})
	}
}
