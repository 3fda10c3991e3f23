package page

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"shaperd/internal/admin"
)

// A sample is a daemon that moves on by a second each time it is asked.
type sample struct {
	asked  atomic.Int64
	change func(*admin.Status) // what is different; nil for nothing
}

type load struct {
	name             string
	rate, ceil, mean float64 // in mbit
	wave, phase      float64 // of the mean, and seconds
}

var (
	egress = []load{
		{"voice", 2, 10, 1.6, 0.25, 0}, {"web", 20, 50, 24, 0.45, 11}, {"backup", 5, 5, 4.9, 0.02, 3}, {"bulk", 10, 50, 17, 0.5, 40},
	}
	ingress = []load{
		{"voice", 2, 10, 1.9, 0.2, 5}, {"web", 80, 200, 96, 0.5, 30}, {"backup", 5, 5, 0, 0, 0}, {"bulk", 10, 200, 52, 0.6, 70},
	}
)

// at is what the load would send at a second, in bits per second: a mean with two waves.
func (l load) at(second int) float64 {
	s := float64(second) + l.phase
	return 1e6 * min(l.ceil, l.mean*(1+l.wave*(0.7*math.Sin(s/9)+0.3*math.Sin(s/2.3))))
}

// link is one that has had the loads for some seconds; what does not fit, the last does without.
func link(name, datapath string, mbit int64, seconds int, loads []load) admin.Link {
	out := admin.Link{Name: name, Datapath: datapath, Rate: mbit * 1e6, Classes: make([]admin.Class, len(loads))}
	for second := range seconds {
		left := float64(out.Rate)
		for i, l := range loads {
			rate := min(l.at(second), left)
			left -= rate
			c := &out.Classes[i]
			c.Name, c.Rate, c.Ceil, c.Achieved = l.name, int64(l.rate*1e6), int64(l.ceil*1e6), rate
			c.Sent += uint64(rate / 8)
			c.Borrowed += uint64(max(0, rate/8-float64(c.Rate)/8))
		}
		out.Achieved = float64(out.Rate) - left
	}
	for i := range out.Classes {
		c := &out.Classes[i]
		out.Sent += c.Sent
		switch datapath {
		case "relay":
			c.Sessions = int(c.Achieved/4e6) + 1
			c.Backlogged = c.Sessions / 3
		default:
			c.Packets, c.Borrowed = c.Sent/1200, c.Borrowed/1200
			if c.Name == "backup" && c.Sent > 0 {
				c.Dropped, c.Backlog = uint64(seconds/3), uint64(31000+400*(seconds%7))
			}
		}
	}
	return out
}

func (s *sample) status(context.Context) (*admin.Status, error) {
	n := int(s.asked.Add(1)) + 600
	now := time.Now()
	until := now.Add(40 * time.Minute)
	out := &admin.Status{
		Version: "0.1.0", PID: 4711, Started: now.Add(-26*time.Hour - 12*time.Minute), State: "ready", LogLevel: "info",
		Policy: "/etc/shaperd/shaperd.yaml", Loaded: now.Add(-time.Hour), TimeZone: "Europe/Berlin",
		Next: &admin.Upcoming{At: now.Add(2*time.Hour + 5*time.Minute), Changes: []admin.RateChange{
			{Link: "wan0 egress", Class: "backup", From: admin.Rates{Rate: 5e6, Ceil: 5e6}, To: admin.Rates{Rate: 20e6, Ceil: 20e6}},
			{Link: "wan0 ingress", Class: "backup", From: admin.Rates{Rate: 5e6, Ceil: 5e6}, To: admin.Rates{Rate: 20e6, Ceil: 20e6}},
		}},
		Links: []admin.Link{
			link("wan0 egress", "kernel", 50, n, egress),
			link("wan0 ingress", "kernel", 200, n, ingress),
			link("relay office upload", "relay", 50, n+60, egress),
		},
		Relays:     []admin.Relay{{Name: "office", State: "serving", Listen: []string{"0.0.0.0:1080"}, Sessions: 31}},
		Interfaces: []admin.Interface{{Name: "wan0", Present: true}},
		Overrides:  []admin.Override{{Class: "web", Link: "wan0 egress", Rate: "20mbit", Until: &until}},
	}
	if s.change != nil {
		s.change(out)
	}
	return out, nil
}

// quick answers like Handler, but each time anew, for pages whose clock runs fast.
func (s *sample) quick() http.Handler {
	h := Handler(s.status)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/status" {
			h.ServeHTTP(w, r)
			return
		}
		status, _ := s.status(r.Context())
		_ = json.NewEncoder(w).Encode(public(status))
	})
}
