package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"shaperd/internal/admin"
)

// A Model is the view's state. See New.
type Model struct {
	Options
	asker Asker
	glyphs

	width, height int // of the terminal; 0 is not known yet

	status  *admin.Status // nil until there is an answer
	now     time.Time     // of the newest answer or failure
	away    error         // why the daemon does not answer; nil when it does
	since   time.Time     // when it was last heard of, or first asked
	answers int
	tracks  map[key]*track

	order  order
	filter string
	typing bool // the filter
	paused bool
	help   bool

	cursor key // of the row that is selected
	place  int // where that row was, for when it is gone
	scroll int // lines above the first that is shown
	list   *list
}

// New returns a view of what the asker answers. It asks when it is run.
func New(a Asker, o Options) *Model {
	m := &Model{Options: o, asker: a, glyphs: unicodeGlyphs, tracks: map[key]*track{}}
	if o.ASCII {
		m.glyphs = asciiGlyphs
	}
	return m
}

// Init asks for the first time.
func (m *Model) Init() tea.Cmd { return m.ask() }

// Update takes a key, a size, an answer, or the time to ask again.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		next = m.press(msg)
	case tea.PasteMsg:
		if m.typing {
			m.filter += firstLine(msg.Content)
		}
	case due:
		if m.paused {
			next = m.later(0)
		} else {
			next = m.ask()
		}
	case answer:
		m.take(&msg)
		next = m.later(msg.took)
		if m.complete() {
			next = tea.Quit
		}
	case listed:
		if msg.err == nil {
			m.list.take(msg.query, msg.sessions, msg.at)
		}
	}
	m.settle()
	return m, next
}

// take takes an answer. One that was on its way when the view was paused is late:
// what is looked at does not change any more.
func (m *Model) take(a *answer) {
	if m.paused {
		return
	}
	m.now = a.at
	if a.status == nil {
		if m.since.IsZero() {
			m.since = a.at
		}
		m.away = a.err
		return
	}
	m.status, m.away, m.since = a.status, nil, a.at
	m.answers++
	m.remember(a.status, a.at)
	if a.err == nil && a.sessions != nil {
		m.list.take(a.query, a.sessions, a.at)
	}
}

// complete reports whether all samples have been shown.
func (m *Model) complete() bool { return m.Samples > 0 && m.answers >= m.Samples }

// View draws the frame on the terminal's other screen, so that what was there
// before comes back. Only cells that differ are sent.
func (m *Model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.WindowTitle = "shaperd top"
	return v
}
