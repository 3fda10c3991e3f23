package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/shaper"
)

// Sessions returns those that fit, those that moved most first.
func (c control) Sessions(_ context.Context, q admin.Query) (*admin.Sessions, error) {
	v := c.view.Load()
	client, err := clientOf(q.Client)
	if err != nil {
		return nil, err
	}
	if q.Relay != "" {
		if err := v.knowsRelay(q.Relay); err != nil {
			return nil, err
		}
	}
	leaves, err := v.leavesOf(q.Class)
	if err != nil {
		return nil, err
	}
	out := &admin.Sessions{Sessions: []admin.Session{}}
	for i, r := range v.all() {
		state := "open"
		if i >= len(v.relays) || phase(c.phase.Load()) == draining {
			state = "draining"
		}
		if q.Relay != "" && q.Relay != r.name {
			continue
		}
		for _, s := range r.Sessions(func(s *conn.Session) bool {
			return (q.Class == "" || leaves[s.Class]) && (client.Port() == 0 || client == s.Client) &&
				(!client.Addr().IsValid() || client.Addr() == s.Client.Addr())
		}) {
			out.Sessions = append(out.Sessions, admin.Session{
				Relay: r.name, Class: s.Class, Client: s.Client.String(), Upstream: s.Upstream.String(), State: state,
				AgeSeconds: s.Age.Seconds(), Upload: s.Upload, Download: s.Download, Waiting: s.Waiting,
			})
		}
	}
	slices.SortStableFunc(out.Sessions, func(a, b admin.Session) int {
		return cmp.Compare(b.Upload+b.Download, a.Upload+a.Download)
	})
	out.Total = len(out.Sessions)
	if q.Limit > 0 {
		out.Sessions = out.Sessions[:min(q.Limit, len(out.Sessions))]
	}
	return out, nil
}

// clientOf reads a client's address, or what a list of sessions calls it: with
// its port. Port 0 is any.
func clientOf(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a.Unmap(), 0), nil
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	return netip.AddrPort{}, &admin.RefusedError{Status: http.StatusBadRequest, Err: fmt.Errorf("client %q: write an address, such as 192.0.2.7", text)}
}

// knowsRelay returns nil if there is a relay of that name.
func (v *view) knowsRelay(name string) error {
	var names []string
	for _, r := range v.all() {
		names = append(names, r.name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return &admin.RefusedError{Status: http.StatusNotFound, Err: configs.NoSuch("relay", name, names)}
}

// leavesOf are the classes that the sessions of a class are in: itself, or those
// below it.
func (v *view) leavesOf(class string) (map[string]bool, error) {
	leaves := map[string]bool{}
	var names []string // of all classes
	var walk func(classes []shaper.Class, within bool)
	walk = func(classes []shaper.Class, within bool) {
		for i := range classes {
			c := &classes[i]
			names = append(names, c.Name)
			here := within || c.Name == class
			if here && c.Leaf() {
				leaves[c.Name] = true
			}
			walk(c.Children, here)
		}
	}
	if links := v.policy.Links(); len(links) > 0 { // each has all classes
		walk(links[0].Classes, false)
	}
	if class != "" && len(leaves) == 0 {
		return nil, &admin.RefusedError{Status: http.StatusNotFound, Err: configs.NoSuch("class", class, names)}
	}
	return leaves, nil
}
