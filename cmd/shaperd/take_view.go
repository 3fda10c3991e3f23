package main

import (
	"errors"

	"shaperd/client"
)

// A takenView is what take prints for programs: what the API answers, of which the
// amounts are in bytes or requests.
type takenView struct {
	Errors     []string `json:"errors,omitempty"`
	RetryAfter int64    `json:"retry_after_ms,omitempty"`
	Granted    bool     `json:"granted"`
	Class      string   `json:"class"`
	Unit       string   `json:"unit,omitempty"`
	Remaining  *int64   `json:"remaining,omitempty"` // nil where nobody has said
	Limit      int64    `json:"limit,omitempty"`
	Reset      *int64   `json:"reset_ms,omitempty"`
	Alone      bool     `json:"alone,omitempty"`
}

// newTakenView views a decision, or the error in its place.
func newTakenView(class string, d client.Decision, err error) takenView {
	v := takenView{Granted: err == nil, Class: class, Unit: d.Unit, Limit: d.Limit, Alone: d.Alone}
	if d.Unit != "" {
		v.Remaining, v.Reset = &d.Remaining, new(d.Reset.Milliseconds())
	}
	if err != nil {
		after, _ := later(err)
		v.Errors, v.RetryAfter = []string{err.Error()}, after.Milliseconds()
	}
	if wrong, ok := errors.AsType[*client.RequestError](err); ok {
		v.Limit = wrong.Limit
	}
	return v
}
