//go:build vm

package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/configs"
	"shaperd/internal/admin"
)

// The clock is set by days while bytes are shaped: rates know nothing of it, and
// a schedule follows it. Only a machine of the test's own has a clock to set.
func TestClockThatIsSetMovesSchedulesAndNoRates(t *testing.T) {
	setClock(t, time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)) // a Wednesday
	source, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	go func() {
		for {
			c, err := source.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, zeros{}) // until the client has gone
			}()
		}
	}()
	socket := filepath.Join(t.TempDir(), "socket")
	text := fmt.Sprintf(`
time_zone: UTC
classes: [{name: all, default: true, rate: 1mbit, schedule: [{days: sat, rate: 4mbit}]}]
relays: [{name: r, listen: "127.0.0.1:0", upstream: %q, upload: 10mbit, download: 10mbit}]
admin: {socket: %q}
`, source.Addr(), socket)
	ctx, end := context.WithCancel(t.Context())
	ready, ended := make(chan Serving, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Load:    func() (*configs.Policy, error) { return configs.Parse("policy.yaml", []byte(text)) },
			Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
			OnReady: func(s Serving) { ready <- s },
		})
	}()
	s := <-ready
	c, err := net.Dial("tcp", s.Relays[0][0].String())
	if err != nil {
		t.Fatal(err)
	}
	client := admin.NewClient(socket)
	shaped(t, client, c, 1)
	setClock(t, time.Date(2026, 12, 4, 23, 0, 0, 0, time.UTC)) // Friday, before the schedule's time
	shaped(t, client, c, 1)
	setClock(t, time.Date(2026, 12, 5, 9, 0, 0, 0, time.UTC)) // Saturday
	awaitRate(t, client, 4)
	shaped(t, client, c, 4)
	setClock(t, time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)) // back, to Tuesday
	awaitRate(t, client, 1)
	shaped(t, client, c, 1)
	c.Close()
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// setClock sets the host's clock.
func setClock(t *testing.T, to time.Time) {
	t.Helper()
	at := unix.NsecToTimeval(to.UnixNano())
	if err := unix.Settimeofday(&at); err != nil {
		t.Fatal(err)
	}
}

// monotonic is a clock that nobody sets.
func monotonic(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// shaped reads half a second's worth and expects that it took about as long as
// it should: never more than the rate and the burst, by the monotonic clock.
func shaped(t *testing.T, c *admin.Client, conn net.Conn, mbit int64) {
	t.Helper()
	sent := func() int64 {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return int64(s.Links[1].Sent)
	}
	begin, before := monotonic(t), sent()
	if _, err := io.CopyN(io.Discard, conn, mbit*1e6/8/2); err != nil {
		t.Fatal(err)
	}
	moved, took := sent()-before, monotonic(t)-begin
	if most := int64(float64(mbit)*1e6/8*took.Seconds()) + 64<<10; moved > most {
		t.Errorf("%d bytes in %v at %d mbit, want at most %d", moved, took, mbit, most)
	}
}

// awaitRate waits until the class has a rate.
func awaitRate(t *testing.T, c *admin.Client, mbit int64) {
	t.Helper()
	for deadline := monotonic(t) + 3*look; ; {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Links[1].Classes[0].Rate == mbit*1e6 {
			return
		}
		if monotonic(t) > deadline {
			t.Fatalf("the rate is %d, want %d mbit", s.Links[1].Classes[0].Rate, mbit)
		}
	}
}
