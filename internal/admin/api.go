package admin

import "time"

// Status is how a daemon is doing. Rates are in bits per second.
type Status struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	State    string    `json:"state"` // ready or draining
	LogLevel string    `json:"log_level"`

	Policy   string    `json:"policy"`         // the file's path, or built-in
	Loaded   time.Time `json:"loaded"`         // when the file was read
	TimeZone string    `json:"time_zone"`      // of schedules
	Reloads  Reloads   `json:"reloads"`        // of the file
	Next     *Upcoming `json:"next,omitempty"` // what schedules or an override's end change next

	Links      []Link      `json:"links"`
	Relays     []Relay     `json:"relays"`
	Metrics    string      `json:"metrics,omitempty"` // where they are served, address and port; none when empty
	Admits     string      `json:"admits,omitempty"`  // where programs ask for admission, likewise
	Interfaces []Interface `json:"interfaces"`
	Shared     *Shared     `json:"shared,omitempty"` // nil where nothing is shared
	Admission  []Admission `json:"admission"`        // of each class that programs can ask for
	Overrides  []Override  `json:"overrides"`        // of what the file says, in the order they were set
}

// Reloads counts them.
type Reloads struct {
	Succeeded uint64   `json:"succeeded"`
	Failed    uint64   `json:"failed"`
	LastError []string `json:"last_error,omitempty"` // of the last reload, when it failed
}

// Upcoming is the next change of rates.
type Upcoming struct {
	At      time.Time    `json:"at"`
	Changes []RateChange `json:"changes"`
}

// RateChange is a change of the rates of a class, or of a link where Class is "".
type RateChange struct {
	Link  string `json:"link"`
	Class string `json:"class,omitempty"`
	From  Rates  `json:"from"`
	To    Rates  `json:"to"`
}

// Rates are those of a class on a link; a link has the first only.
type Rates struct {
	Rate    int64 `json:"rate"`               // bits per second
	Ceil    int64 `json:"ceil,omitempty"`     // bits per second
	Burst   int64 `json:"burst,omitempty"`    // bytes; 0 is derived; of unit requests how many
	PerHour int64 `json:"per_hour,omitempty"` // of unit requests, in the place of rate
}

// Link is one direction of a relay or of an interface.
type Link struct {
	Name     string  `json:"name"`
	Datapath string  `json:"datapath"`           // relay or kernel
	Rate     int64   `json:"rate"`               // bits per second; 0 is unlimited
	Applied  *int64  `json:"applied,omitempty"`  // bits per second that the kernel has
	Achieved float64 `json:"achieved"`           // bits per second: of a relay a mean over about 5 seconds, of the kernel over the last one or more
	Sent     uint64  `json:"sent"`               // bytes
	Dropped  uint64  `json:"dropped,omitempty"`  // packets
	Unshaped uint64  `json:"unshaped,omitempty"` // packets that no class took
	Classes  []Class `json:"classes"`
}

// Class is a class on one link.
type Class struct {
	Name        string  `json:"name"`
	Rate        int64   `json:"rate"` // bits per second
	Ceil        int64   `json:"ceil"` // bits per second; 0 is the link's rate
	Burst       int64   `json:"burst"`
	Mode        string  `json:"mode,omitempty"`
	Achieved    float64 `json:"achieved"`           // bits per second, as the link's
	Sent        uint64  `json:"sent"`               // bytes
	Borrowed    uint64  `json:"borrowed"`           // of these, above its own rate; of the kernel packets
	Packets     uint64  `json:"packets,omitempty"`  // sent, of the kernel
	Dropped     uint64  `json:"dropped,omitempty"`  // packets
	Backlog     uint64  `json:"backlog,omitempty"`  // bytes that wait in the kernel
	Sessions    int     `json:"sessions,omitempty"` // of a relay
	Backlogged  int     `json:"backlogged,omitempty"`
	Waits       uint64  `json:"waits,omitempty"`        // turns that were waited for, of a relay
	WaitSeconds float64 `json:"wait_seconds,omitempty"` // how long, all together
}

// Relay is a listener with its sessions.
type Relay struct {
	Name      string            `json:"name"`
	Listen    []string          `json:"listen"`
	State     string            `json:"state"` // serving, draining, or drained: without a session left
	Sessions  int               `json:"sessions"`
	Accepted  uint64            `json:"accepted"`
	Connected uint64            `json:"connected"`
	Refused   map[string]uint64 `json:"refused"` // by reason
	Failures  map[string]uint64 `json:"upstream_failures"`
}

// Interface is one that the policy names.
type Interface struct {
	Name    string `json:"name"`
	Present bool   `json:"present"`
	Drift   bool   `json:"drift"` // the kernel has something else than the policy wants
	Problem string `json:"problem,omitempty"`
	Repairs uint64 `json:"repairs"`
}

// Override is what was set by hand in the place of what the file says: of a
// class on one link or all, or of a link. Amounts are written as in the file.
type Override struct {
	Link  string     `json:"link,omitempty"`
	Class string     `json:"class,omitempty"`
	Rate  string     `json:"rate,omitempty"`
	Ceil  string     `json:"ceil,omitempty"`
	Burst string     `json:"burst,omitempty"`
	Until *time.Time `json:"until,omitempty"` // nil is until the next reload
}

// SetRequest sets an override, in the place of an earlier one of the same class and link.
type SetRequest struct {
	Link       string `json:"link,omitempty"`
	Class      string `json:"class,omitempty"`
	Rate       string `json:"rate,omitempty"`
	Ceil       string `json:"ceil,omitempty"`
	Burst      string `json:"burst,omitempty"`
	ForSeconds int64  `json:"for_seconds,omitempty"` // 0 is until the next reload
}

// ResetRequest ends the overrides of a class, of a link, or, empty, all.
type ResetRequest struct {
	Link  string `json:"link,omitempty"`
	Class string `json:"class,omitempty"`
}

// Changed is what a request has changed.
type Changed struct {
	Changes []RateChange `json:"changes"`
	Until   *time.Time   `json:"until,omitempty"`
}

// Reloaded is what is in force after a reload, and what it has ended.
type Reloaded struct {
	Policy  string     `json:"policy"` // the file's path, or built-in
	Reloads Reloads    `json:"reloads"`
	Ended   []Override `json:"ended,omitempty"`   // what was set by hand
	Resumed []string   `json:"resumed,omitempty"` // relays that were drained by hand and serve again
}

// Sessions are those that a query asked for, those that sent most first.
type Sessions struct {
	Total    int       `json:"total"` // that fit the query; more than there are in Sessions where there are too many
	Sessions []Session `json:"sessions"`
}

// Session is one relayed connection.
type Session struct {
	Relay      string  `json:"relay"`
	Class      string  `json:"class"`
	Client     string  `json:"client"`
	Upstream   string  `json:"upstream"`
	State      string  `json:"state"`       // open, or draining as its relay is
	AgeSeconds float64 `json:"age_seconds"` // since it was connected
	Upload     uint64  `json:"upload"`      // bytes
	Download   uint64  `json:"download"`    // bytes
	Waiting    bool    `json:"waiting"`     // it has something to send and waits for its turn
}

// Query says which sessions are asked for. Empty fields fit all. A class stands
// for those below it; a client is an address, or one with a port.
type Query struct {
	Relay, Class, Client string
	Limit                int // 0 is defaultLimit
}

// LogLevel is debug, info, warn or error.
type LogLevel struct {
	Level string `json:"level"`
}

// Failure is the answer to what could not be done: all that is wrong.
type Failure struct {
	Errors []string `json:"errors"`
}
