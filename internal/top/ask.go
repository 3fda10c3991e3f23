package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"shaperd/internal/admin"
)

// An Asker asks the daemon; an admin.Client is one.
type Asker interface {
	Status(ctx context.Context) (*admin.Status, error)
	Sessions(ctx context.Context, q admin.Query) (*admin.Sessions, error)
}

// patience is how long an answer may take: a daemon that hangs is as good as away.
const patience = 3 * time.Second

// An answer is what the daemon said at a time, or why it did not.
type answer struct {
	at       time.Time
	took     time.Duration
	status   *admin.Status
	query    admin.Query     // that sessions answers
	sessions *admin.Sessions // nil unless they were asked for
	err      error
}

// listed answers a question for sessions out of turn, once a list is opened.
type listed answer

// due says that it is time to ask again.
type due struct{}

// ask asks for the status, and for the sessions of the list that is open. Each
// answer leads to the next question, so there is one at a time.
func (m *Model) ask() tea.Cmd {
	var q *admin.Query
	if m.list != nil {
		copied := m.list.query
		q = &copied
	}
	asker := m.asker
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		began := time.Now()
		a := answer{}
		a.status, a.err = asker.Status(ctx)
		if a.err == nil && q != nil {
			a.query = *q
			a.sessions, a.err = asker.Sessions(ctx, *q)
		}
		a.at = time.Now()
		a.took = a.at.Sub(began)
		return a
	}
}

// askSessions asks for the list that was just opened.
func (m *Model) askSessions() tea.Cmd {
	asker, q := m.asker, m.list.query
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s, err := asker.Sessions(ctx, q)
		return listed{at: time.Now(), query: q, sessions: s, err: err}
	}
}

// later waits for the rest of the interval.
func (m *Model) later(took time.Duration) tea.Cmd {
	return tea.Tick(max(m.Interval-took, 0), func(time.Time) tea.Msg { return due{} })
}
