package daemon

import (
	"context"
	"io"
	"log/slog"

	"shaperd/systemd"
)

// NewLogger writes text lines of at least the given level, which may change, to w. Lines for
// systemd's journal have no time, which it keeps itself, and begin with the
// priority, so that "journalctl -p warning" works.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	if !systemd.Journaled(w) {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(newJournalHandler(w, level))
}

// A journalHandler has one handler for each of slog's levels, whose lines begin
// with its priority.
type journalHandler [4]slog.Handler

func newJournalHandler(w io.Writer, level slog.Leveler) *journalHandler {
	plain := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}
	var h journalHandler
	for i, priority := range [len(h)]string{"<7>", "<6>", "<4>", "<3>"} { // LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR
		h[i] = slog.NewTextHandler(prefixer{w, priority}, plain)
	}
	return &h
}

// of returns the handler for a level: slog's levels are 4 apart.
func (h *journalHandler) of(level slog.Level) slog.Handler {
	return h[min(max(int(level-slog.LevelDebug)/4, 0), len(h)-1)]
}

func (h *journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithAttrs(attrs) })
}

func (h *journalHandler) WithGroup(name string) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithGroup(name) })
}

func (h *journalHandler) each(f func(slog.Handler) slog.Handler) *journalHandler {
	var out journalHandler
	for i, one := range h {
		out[i] = f(one)
	}
	return &out
}

// A prefixer begins every line with the prefix; each Write is one line.
type prefixer struct {
	w      io.Writer
	prefix string
}

func (p prefixer) Write(line []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
