package systemd

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager stands in the service manager's place: it returns what it is told.
func manager(t *testing.T) (told func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestManagerIsToldOfEachState(t *testing.T) {
	told := manager(t)
	for _, tt := range []struct {
		tell func() error
		want string
	}{
		{func() error { return Ready("2 relays") }, "READY=1\nSTATUS=2 relays"},
		{func() error { return Stopping("draining", 35*time.Second) }, "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=35000000"},
		{func() error { return Alive("5 sessions") }, "WATCHDOG=1\nSTATUS=5 sessions"},
	} {
		if err := tt.tell(); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestReloadCarriesTheMonotonicTime(t *testing.T) {
	told := manager(t)
	before := monotonic(t)
	if err := Reloading(); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=(\d+)\n$`).FindStringSubmatch(told())
	if m == nil {
		t.Fatal("no RELOADING=1 with MONOTONIC_USEC")
	}
	at, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || at < before || at > monotonic(t) {
		t.Errorf("MONOTONIC_USEC=%d, %v, want a time between before and after", at, err)
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano() / 1000
}

func TestNoManagerIsNoError(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready(""); err != nil {
		t.Error(err)
	}
	t.Setenv("WATCHDOG_USEC", "")
	if d, err := WatchdogInterval(); d != 0 || err != nil {
		t.Errorf("WatchdogInterval = %v, %v, want none", d, err)
	}
}

func TestManagerThatIsAwayIsAnError(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := Alive("x"); err == nil || !strings.HasPrefix(err.Error(), "notify systemd: ") {
		t.Errorf("Alive = %v, want an error of notify systemd", err)
	}
}

func TestWatchdogIsForThisProcessOnly(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "30000000")
	for _, tt := range []struct {
		pid  int
		want time.Duration
	}{{os.Getpid(), 30 * time.Second}, {1, 0}} {
		t.Setenv("WATCHDOG_PID", strconv.Itoa(tt.pid))
		if d, err := WatchdogInterval(); d != tt.want || err != nil {
			t.Errorf("WATCHDOG_PID %d: %v, %v, want %v", tt.pid, d, err, tt.want)
		}
	}
}

func TestJournalIsRecognizedByItsStream(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", strconv.FormatUint(st.Dev, 10)+":"+strconv.FormatUint(st.Ino, 10))
	if !Journaled(w) {
		t.Error("the journal's stream is not recognized")
	}
	if Journaled(os.Stdin) {
		t.Error("another file is taken for the journal")
	}
	if Journaled(new(strings.Builder)) {
		t.Error("a buffer is taken for the journal")
	}
}
