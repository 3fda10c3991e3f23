package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/internal/admission"
)

// serve runs a daemon until the test ends.
func serve(t *testing.T, policy string) Serving {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shaperd.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHAPERD_SOCKET", filepath.Join(t.TempDir(), "socket"))
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan Serving, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Load:    func() (*configs.Policy, error) { return configs.Load(path) },
			OnReady: func(s Serving) { ready <- s },
		})
	}()
	select {
	case s := <-ready:
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return s
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	return Serving{}
}

// The control socket serves what its document says of admission.
func TestTheControlSocketServesAdmission(t *testing.T) {
	s := serve(t, "classes: [{name: api, unit: requests, rate: 1/h, burst: 5}, {name: rest, default: true, rate: 8kbit}]\nadmission: {keys: 10}\n")
	for line, want := range map[string]string{
		"POST /v1/classes/api/take":           "HTTP/1.1 400 ", // without a body
		"GET /v1/classes/api/authorize":       "HTTP/1.1 200 ",
		"GET /v1/classes/api/authorize//a/..": "HTTP/1.1 200 ",
		"GET /v1/classes/aip/authorize":       "HTTP/1.1 404 ",
		"GET /v1/classes/api/take":            "HTTP/1.1 405 ",
		"GET /v1/clases":                      "HTTP/1.1 404 ",
	} {
		c, err := net.Dial("unix", s.Control)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line)
		got, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), "Content-Type: application/json\r\n") {
			t.Errorf("%s: %v, %s", line, err, got)
		}
		c.Close()
	}
}

// Programs that wait for admission keep nobody from asking the daemon.
func TestWhoWaitsForAdmissionKeepsNobodyOut(t *testing.T) {
	s := serve(t, "classes: [{name: backup, default: true, rate: 8kbit, burst: 30kb}]\nadmission: {keys: 10}\n") // 1000 bytes a second
	programs := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Control)
	}}}
	control := admin.NewClient(s.Control)
	ctx, leave := context.WithTimeout(t.Context(), 25*time.Second) // until the first is served
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	take := func(body string) int {
		r, err := http.NewRequestWithContext(ctx, "POST", "http://shaperd/v1/classes/backup/take", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		got, err := programs.Do(r)
		if err != nil {
			return 0 // it has left
		}
		got.Body.Close()
		return got.StatusCode
	}
	await := func(waiting int) {
		t.Helper()
		for now := -1; now != waiting; {
			status, err := control.Status(ctx)
			if err != nil {
				t.Fatalf("with %d who wait the daemon does not answer: %v", now, err)
			}
			now = status.Admission[0].Waiting
		}
	}
	if status := take(`{"bytes": 30000}`); status != http.StatusOK {
		t.Fatal(status)
	}
	all.Go(func() { take(`{"bytes": 28000, "wait_ms": 30000}`) })
	await(1)
	for range admission.MaxWaiters - 1 { // behind it
		all.Go(func() { take(`{"bytes": 1, "wait_ms": 30000}`) })
	}
	await(admission.MaxWaiters)
	for range 100 {
		if status := take(`{"bytes": 1, "wait_ms": 30000}`); status != http.StatusTooManyRequests {
			t.Fatalf("one more than may wait is answered with %d", status)
		}
	}
	await(admission.MaxWaiters)
}
