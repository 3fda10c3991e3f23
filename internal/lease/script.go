package lease

import (
	_ "embed" // the script
	"fmt"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

//go:embed lease.lua
var source string

var script = store.NewScript(source)

// exact is the most that a number of the script can be.
const exact = 1<<53 - 1

// A flag of the script's answer.
const (
	flagLearning = 1 << iota
	flagDisagrees
	flagWanted // others have traffic waiting
)

// timeArgument is the place of the time among the script's arguments.
const timeArgument = 1

// A request is what the script is asked for one holder.
type request struct {
	release       bool
	id            string
	seq, answered uint64
	lease         time.Duration
	rate          shaper.Rate
	version       int64
	weight        float64
	held, claim   shaper.Rate
	demand        shaper.Rate
	waiting       bool
}

// An answer is what the script says to one.
type answer struct {
	grant   shaper.Rate
	valid   time.Duration // from when it was asked
	target  shaper.Rate
	fair    shaper.Rate
	rate    shaper.Rate
	version int64
	flags   int64
	holders int
	again   time.Duration // until more can be had; 0 for not
}

var tag = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")

// Key is where the cluster's state of a budget is.
func Key(cluster, class, direction string) string {
	return fmt.Sprintf("shaperd:{%s:%s:%s}:lease", tag.Replace(cluster), tag.Replace(class), tag.Replace(direction))
}

func (r request) call(key string) *store.Call {
	action, waiting := "renew", 0
	if r.release {
		action = "release"
	}
	if r.waiting {
		waiting = 1
	}
	number := func(r shaper.Rate) int64 { return min(max(int64(r), 0), exact) }
	return &store.Call{Script: script, Keys: []string{key}, Args: []any{
		action, "", r.id, r.seq, r.answered, r.lease.Milliseconds(), number(r.rate), fmt.Sprintf("%020d", max(r.version, 0)),
		strconv.FormatFloat(r.weight, 'f', 6, 64), number(r.held), number(r.claim), number(r.demand), waiting,
	}}
}

func parse(value any) (answer, error) {
	fields, ok := value.([]any)
	if !ok || len(fields) != 9 {
		return answer{}, fmt.Errorf("read lease: answer %v: another version of shaperd's script?", value)
	}
	var n [9]int64
	for i, f := range fields {
		switch f := f.(type) {
		case int64:
			n[i] = f
		case string:
			v, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return answer{}, fmt.Errorf("read lease: %w", err)
			}
			n[i] = v
		}
	}
	return answer{
		grant: shaper.Rate(n[0]), valid: time.Duration(n[1]) * time.Millisecond, target: shaper.Rate(n[2]), fair: shaper.Rate(n[3]),
		rate: shaper.Rate(n[4]), version: n[5], flags: n[6], holders: int(n[7]),
		again: time.Duration(n[8]) * time.Millisecond,
	}, nil
}
