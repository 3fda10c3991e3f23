package top

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// press does what a key is for.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.typing:
		m.typeFilter(name, k.Text)
		return nil
	case name == "q":
		return tea.Quit
	case m.help: // any other key closes it
		m.help = false
		return nil
	}
	switch name {
	case "?", "h", "f1":
		m.help = true
	case "p", "space":
		m.paused = !m.paused
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.move(-m.bodyHeight())
	case "pgdown", "ctrl+f":
		m.move(m.bodyHeight())
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G", "shift+g":
		m.move(1 << 30)
	case "esc", "left", "backspace":
		if m.list == nil && name == "esc" {
			m.filter = ""
		}
		m.list = nil
	case "enter", "right":
		return m.open()
	case "s":
		if m.list == nil {
			m.order = (m.order + 1) % orders
		}
	case "/":
		m.typing = m.list == nil
	}
	return nil
}

// typeFilter takes a key of the filter's line. What it shows follows at once.
func (m *Model) typeFilter(name, text string) {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case "ctrl+u":
		m.filter = ""
	case "up", "down":
		m.move(map[string]int{"up": -1, "down": 1}[name])
	default:
		m.filter += firstLine(text)
	}
}

// firstLine is what of a text can be typed into one line.
func firstLine(text string) string {
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		return text[:i]
	}
	return text
}

// move moves the selection, or the list of sessions.
func (m *Model) move(by int) {
	if m.list != nil {
		m.list.scroll = max(m.list.scroll+by, 0) // settle knows the end
		return
	}
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	m.place = min(max(m.selected(rows)+by, 0), len(rows)-1)
	m.cursor = rows[m.place].key
}

// open opens the list of the sessions of what is selected.
func (m *Model) open() tea.Cmd {
	rows := m.rows()
	if m.list != nil || len(rows) == 0 {
		return nil
	}
	m.list = newList(m.status, rows[m.selected(rows)])
	if m.list.reason != "" {
		return nil
	}
	return m.askSessions()
}

// settle keeps the selection and the scroll where there is something.
func (m *Model) settle() {
	height := m.bodyHeight()
	if m.list != nil {
		m.list.scroll = min(m.list.scroll, max(len(m.list.sessions)-height, 0))
		return
	}
	rows := m.rows()
	if len(rows) == 0 {
		m.scroll = 0
		return
	}
	m.place = m.selected(rows)
	m.cursor = rows[m.place].key
	lines := m.body(rows)
	at := slices.Index(lines, m.place)
	if m.place == 0 || m.place == 1 && rows[0].class == nil {
		at = 0 // with the link it belongs to
	}
	m.scroll = min(m.scroll, at, max(len(lines)-height, 0))
	m.scroll = max(m.scroll, slices.Index(lines, m.place)-height+1)
}
