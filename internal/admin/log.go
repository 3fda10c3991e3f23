package admin

import (
	"context"
	"log/slog"
	"time"
)

// LogValue makes fields of a request, of what is given only.
func (r SetRequest) LogValue() slog.Value {
	return fields("class", r.Class, "link", r.Link, "rate", r.Rate, "ceil", r.Ceil, "burst", r.Burst, "for", time.Duration(r.ForSeconds)*time.Second)
}

// LogValue makes fields of a request, of what is given only.
func (r ResetRequest) LogValue() slog.Value { return fields("class", r.Class, "link", r.Link) }

// LogValue makes fields of a request.
func (l LogLevel) LogValue() slog.Value { return fields("level", l.Level) }

// LogValue makes fields of what was set, of what is given only.
func (o Override) LogValue() slog.Value {
	return fields("class", o.Class, "link", o.Link, "rate", o.Rate, "ceil", o.Ceil, "burst", o.Burst)
}

// fields makes a group of pairs of a key and a value; zero values are left out.
func fields(pairs ...any) slog.Value {
	var all []slog.Attr
	for i := 0; i < len(pairs); i += 2 {
		if v := pairs[i+1]; v != "" && v != time.Duration(0) {
			all = append(all, slog.Any(pairs[i].(string), v))
		}
	}
	return slog.GroupValue(all...)
}

// By says who asked, for the log: the context is that of a Backend's method.
func By(ctx context.Context) slog.Value {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return slog.GroupValue(slog.Int("pid", p.PID), slog.Int("uid", p.UID), slog.Int("gid", p.GID))
}
