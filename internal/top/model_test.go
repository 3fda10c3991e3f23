package top

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"shaperd/internal/admin"
)

// names are the rows of a view, links in brackets.
func names(m *Model) (all []string) {
	for _, r := range m.rows() {
		if r.class == nil {
			all = append(all, "["+r.key.link+"]")
		} else {
			all = append(all, r.key.class)
		}
	}
	return all
}

func TestSortKeepsLinksAndTheSelection(t *testing.T) {
	m := watching(Options{}, 80, 24, 2)
	press(m, "j", "j") // backup
	for _, want := range []string{
		"[eth0 egress] web voice backup [relay proxy download] bulk interactive", // rate now
		"[eth0 egress] web voice backup [relay proxy download] interactive bulk", // drops
		"[eth0 egress] web voice backup [relay proxy download] bulk interactive", // waiting
		"[eth0 egress] voice web backup [relay proxy download] interactive bulk", // the policy's
	} {
		press(m, "s")
		if got := strings.Join(names(m), " "); got != want {
			t.Errorf("sorted by %v: %s, want %s", m.order, got, want)
		}
		if m.cursor != (key{"eth0 egress", "backup"}) {
			t.Errorf("sorted by %v: %v is selected", m.order, m.cursor)
		}
	}
}

func TestFilter(t *testing.T) {
	m := watching(Options{}, 80, 24, 2)
	for _, tt := range []struct {
		keys []string
		want string
	}{
		{[]string{"/", "B"}, "[eth0 egress] web backup [relay proxy download] bulk"},
		{[]string{"a"}, "[eth0 egress] backup"},
		{[]string{"backspace", "backspace", "p", "r", "o", "x", "enter"}, "[relay proxy download] interactive bulk"},
		{[]string{"esc"}, "[eth0 egress] voice web backup [relay proxy download] interactive bulk"},
		{[]string{"/", "q", "esc"}, "[eth0 egress] voice web backup [relay proxy download] interactive bulk"},
	} {
		press(m, tt.keys...)
		if got := strings.Join(names(m), " "); got != tt.want {
			t.Errorf("after %q: %s, want %s", tt.keys, got, tt.want)
		}
	}
	m.typing = true
	m.Update(tea.PasteMsg{Content: "bulk\nq"})
	if m.filter != "bulk" {
		t.Errorf("pasted: %q", m.filter)
	}
}

func TestSelectionStaysWhenItsClassGoes(t *testing.T) {
	m := watching(Options{}, 80, 24, 1)
	press(m, "end")
	s := office(2)
	s.Links = s.Links[:1]
	m.Update(answer{at: began.Add(2 * time.Second), status: s})
	if m.cursor != (key{"eth0 egress", "backup"}) {
		t.Errorf("%v is selected", m.cursor)
	}
	s.Links = nil
	m.Update(answer{at: began.Add(3 * time.Second), status: s})
	press(m, "j", "enter")
	if got := plainFrame(m); !strings.Contains(got, "the policy has no links") {
		t.Errorf("%s", got)
	}
}

func TestPauseKeepsWhatIsShown(t *testing.T) {
	m := watching(Options{}, 80, 24, 3)
	press(m, "space")
	before := m.View().Content
	_, next := m.Update(answer{at: began.Add(4 * time.Second), status: office(4)}) // was on its way
	if next == nil || m.View().Content != before {
		t.Error("an answer changed what is shown while paused, or was the last")
	}
	if _, next = m.Update(due{}); next == nil {
		t.Error("nothing will happen after the pause")
	}
	press(m, "p")
	m.Update(answer{at: began.Add(9 * time.Second), status: office(9)})
	if m.View().Content == before || m.status.Links[0].Classes[0].Sent != office(9).Links[0].Classes[0].Sent {
		t.Error("it does not go on")
	}
}

func TestAwayAndBack(t *testing.T) {
	m := watching(Options{}, 80, 24, 3)
	if _, next := m.Update(answer{at: began.Add(8 * time.Second), err: errors.New("gone")}); next == nil {
		t.Error("nobody asks again")
	}
	if got := plainFrame(m); !strings.HasPrefix(got, "waiting for the daemon  for 5s") || !strings.Contains(got, "interactive") {
		t.Errorf("%s", got)
	}
	m.Update(answer{at: began.Add(9 * time.Second), status: office(0)}) // another one, which counts from nothing
	if got := plainFrame(m); !strings.HasPrefix(got, "ready") {
		t.Errorf("%s", got)
	}
	if track := m.tracks[key{"relay proxy download", "bulk"}]; !math.IsNaN(track.borrowed) || track.wait != -1 {
		t.Errorf("compared with another daemon's counters: %+v", track)
	}
}

func TestSamplesEndTheView(t *testing.T) {
	m := watching(Options{Samples: 2}, 80, 24, 1)
	if m.Update(answer{at: began, err: errors.New("gone")}); m.complete() {
		t.Error("a failure is no sample")
	}
	if _, next := m.Update(answer{at: began.Add(2 * time.Second), status: office(2)}); !m.complete() || next() != tea.Quit() {
		t.Error("it goes on")
	}
}

func TestQuit(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"/", "ctrl+c"}, {"?", "q"}, {"enter", "q"}} {
		if last := press(watching(Options{}, 80, 24, 1), keys...); last == nil || last() != tea.Quit() {
			t.Errorf("%q does not end it", keys)
		}
	}
}

func TestSessionsOfAnotherListAreNotTaken(t *testing.T) {
	m := watching(Options{}, 80, 24, 2)
	press(m, "end", "enter")
	late := listed{at: began, query: m.list.query, sessions: sessionsOf("bulk", 1)}
	if late.query != (admin.Query{Relay: "proxy", Class: "bulk", Limit: mostSessions}) {
		t.Errorf("asked for %+v", late.query)
	}
	press(m, "esc", "up", "enter")
	if m.Update(late); len(m.list.sessions) > 0 {
		t.Error("bulk's sessions are shown as interactive's")
	}
	press(m, "esc")
	m.Update(late) // no list is open
}

func TestLongListsScroll(t *testing.T) {
	m := watching(Options{}, 80, 10, 1)
	s := office(2)
	for i := range 40 {
		s.Links[0].Classes = append(s.Links[0].Classes, admin.Class{Name: "class" + string(rune('A'+i))})
	}
	m.Update(answer{at: began.Add(2 * time.Second), status: s})
	for range 50 {
		if got := plainFrame(m); !strings.Contains(got, m.pointer) {
			t.Fatalf("what is selected is not shown:\n%s", got)
		}
		press(m, "j")
	}
	if got := plainFrame(m); !strings.Contains(got, "bulk") {
		t.Errorf("the end is not shown:\n%s", got)
	}
	press(m, "g")
	if got := plainFrame(m); m.scroll != 0 || !strings.Contains(got, m.pointer+"eth0 egress") {
		t.Errorf("the beginning is not shown:\n%s", got)
	}
}

func TestHistory(t *testing.T) {
	var h history
	at := time.Unix(120_000, 0)
	if got := h.cells(3); !slices.ContainsFunc(got, math.IsNaN) || h.peak() != 0 {
		t.Errorf("nothing was added: %v, peak %v", got, h.peak())
	}
	h.add(at, 5, 2*time.Second)
	h.add(at.Add(2*time.Second), 7, 2*time.Second)  // holds for the second before too
	h.add(at.Add(10*time.Second), 1, 2*time.Second) // after a pause
	want := []float64{5, 7, 7, math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), 1, 1, 1}
	got := h.cells(minute)[minute-len(want):]
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if got := unicodeGlyphs.minute(&h, 7, 12); got != strings.Repeat(" ", 9)+"█▂▂" {
		t.Errorf("%q", got) // parts of 5 s: 0 to 4, 5 to 9, and 10
	}
	if h.peak() != 7 {
		t.Errorf("peak %v", h.peak())
	}
	h.add(at.Add(-time.Hour), 3, 2*time.Second) // the clock was set back
	if got := h.cells(1)[0]; got != 3 {
		t.Errorf("after the clock was set back: %v", got)
	}
	h.add(at.Add(time.Hour), 4, 2*time.Second)
	if h.peak() != 4 {
		t.Errorf("an hour later: %v", h.peak())
	}
}

func TestSharesAreOfTheLastInterval(t *testing.T) {
	m := watching(Options{}, 80, 24, 4)
	bulk, web := m.tracks[key{"relay proxy download", "bulk"}], m.tracks[key{"eth0 egress", "web"}]
	if got := math.Round(bulk.borrowed * 100); got != 80 {
		t.Errorf("bulk borrowed %v%%", got)
	}
	if got := bulk.wait.Round(100 * time.Microsecond); got != 32100*time.Microsecond {
		t.Errorf("bulk waited %v", got)
	}
	if got := math.Round(web.borrowed * 100); got != 28 || web.drops != 3 {
		t.Errorf("web borrowed %v%% of its packets, %d were dropped", got, web.drops)
	}
}
