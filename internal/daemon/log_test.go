package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestJournalGetsPrioritiesAndNoTime(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", strconv.FormatUint(st.Dev, 10)+":"+strconv.FormatUint(st.Ino, 10))
	log := NewLogger(w, slog.LevelInfo).With("relay", "web")
	log.Debug("not asked for")
	log.Info("one", "n", 1)
	log.WithGroup("g").Warn("two", "n", 2)
	log.Error("three")
	log.Log(t.Context(), slog.LevelError+4, "four")
	w.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `<6>msg=one relay=web n=1
<4>msg=two relay=web g.n=2
<3>msg=three relay=web
<3>msg=four relay=web
`
	if string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestOthersGetTimeAndLevel(t *testing.T) {
	var out bytes.Buffer
	NewLogger(&out, slog.LevelDebug).Debug("one")
	if got := out.String(); !strings.HasPrefix(got, "time=") || !strings.HasSuffix(got, " level=DEBUG msg=one\n") {
		t.Errorf("got %q", got)
	}
}
