package page

import "shaperd/internal/admin"

// public is what everyone may read of a status.
func public(s *admin.Status) *admin.Status {
	out := &admin.Status{
		Version: s.Version, Revision: s.Revision, Started: s.Started, State: s.State,
		Policy: s.Policy, Loaded: s.Loaded, TimeZone: s.TimeZone,
		Reloads:    admin.Reloads{Succeeded: s.Reloads.Succeeded, Failed: s.Reloads.Failed},
		Next:       s.Next,
		Links:      s.Links,
		Relays:     make([]admin.Relay, len(s.Relays)),
		Interfaces: s.Interfaces,
		Overrides:  make([]admin.Override, len(s.Overrides)),
	}
	if len(s.Reloads.LastError) > 0 { // it quotes the policy file
		out.Reloads.LastError = []string{"see the log, or shaperd status"}
	}
	if s.Shared != nil {
		out.Shared = &admin.Shared{OnOutage: s.Shared.OnOutage, Shares: []admin.Share{}}
		if s.Shared.Problem != "" { // it names the Redis
			out.Shared.Problem = "see the log, or shaperd status"
		}
	}
	for i, r := range s.Relays {
		out.Relays[i] = admin.Relay{
			Name: r.Name, Listen: []string{}, State: r.State, Sessions: r.Sessions, Accepted: r.Accepted, Connected: r.Connected,
			Refused: r.Refused, Failures: r.Failures,
		}
	}
	for i, o := range s.Overrides {
		out.Overrides[i] = admin.Override{Link: o.Link, Class: o.Class, Rate: o.Rate, Ceil: o.Ceil, Burst: o.Burst, Until: o.Until}
	}
	return out
}
