//go:build systemd

package systemdtest

import (
	"strings"
	"sync/atomic"
	"testing"
)

// A client that connects again and again while the service is restarted must
// be served each time: systemd holds the listening socket.
func TestRestartUnderLoadRefusesNobody(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.run("systemctl", "enable", "--now", "shaperd.socket")
		m.run("systemctl", "start", "shaperd.service")

		var clients atomic.Int64
		var stop atomic.Bool
		ended := make(chan error, 1)
		go func() {
			ended <- m.inside(func() error {
				for !stop.Load() {
					c, err := dialHere("127.0.0.1:1080")
					if err == nil {
						err = served(c)
					}
					if err != nil {
						return err
					}
					clients.Add(1)
				}
				return nil
			})
		}()
		var before int64
		for range 5 {
			m.await("clients between restarts", func() bool { return clients.Load() > before+20 || len(ended) > 0 })
			pid := m.mainPID()
			m.run("systemctl", "restart", "shaperd.service")
			if m.mainPID() == pid {
				t.Fatal("the service was not restarted")
			}
			before = clients.Load()
		}
		stop.Store(true)
		if err := <-ended; err != nil {
			t.Errorf("after %d clients one was not served: %v", clients.Load(), err)
		}
		if text := m.journal(); strings.Contains(text, "socket closed") {
			t.Errorf("the socket was not taken over:\n%s", text)
		}
	})
}

// The first client starts a service that is not running.
func TestFirstClientStartsTheService(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.write("/etc/systemd/system/shaperd.socket.d/more.conf", "[Socket]\nListenStream=127.0.0.1:9999\n")
		m.run("systemctl", "daemon-reload")
		m.run("systemctl", "start", "shaperd.socket")
		if state := m.property("ActiveState"); state != "inactive" {
			t.Errorf("the service is %s", state)
		}
		c, err := m.dial("tcp", "127.0.0.1:1080")
		if err == nil {
			err = served(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		if text := m.journal(); !strings.Contains(text, "inherited socket shaperd.socket: no relay listens on 127.0.0.1:9999") {
			t.Errorf("the journal does not name the socket that nobody wants:\n%s", text)
		}
	})
}
