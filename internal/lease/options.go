package lease

import (
	"errors"
	"fmt"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

// A Holder is one link of this host, in one direction, whose traffic of a class
// counts against the cluster's rate of that class.
type Holder struct {
	Class     string
	Direction string // upload, download, egress or ingress
	Link      string // such as "relay web"
}

// A Budget is the rate that a holder has a share of.
type Budget struct {
	Holder
	Rate    shaper.Rate // of the class, for all hosts together
	Version int64       // of the policy that says so, in ns since 1970: the newest of the cluster's is in force
}

// Usage is what a holder's traffic did.
type Usage struct {
	Bytes uint64 // since it exists
	// Waiting tells whether traffic waits for the share, or has since Observe was
	// last called. What waits for the link or for a session's own limit does not count.
	Waiting bool
}

// DefaultPeriod is the time between two renewals. A lease is valid for periods of them.
const (
	DefaultPeriod = 500 * time.Millisecond
	periods       = 4
)

// Options say who this host is in the cluster, and how its traffic is watched and limited.
type Options struct {
	Cluster, Host string
	Weight        float64       // of this host's holders beside others'; 0 means 1
	Period        time.Duration // 0 means DefaultPeriod; the same on all hosts
	OnOutage      store.Outage

	// Observe returns what all holders' traffic did. Run calls it several times
	// in a period. A holder that is not in it did nothing.
	Observe func() map[Holder]Usage
	// Apply puts the shares of some holders into force and returns when they are:
	// then no more than that is used. After an error the old ones are taken for
	// those in force, and it is called again. A new holder's first share is 0.
	Apply func(map[Holder]shaper.Rate) error
	// HostTime has this host's clock used in place of the server's, where scripts
	// may not ask for that. The clocks of the hosts must then agree within a period.
	HostTime bool
}

func (o *Options) complete() error {
	if o.Cluster == "" || o.Host == "" {
		return errors.New("shared classes: a cluster and a host need names")
	}
	if o.Observe == nil || o.Apply == nil {
		return errors.New("shared classes: Observe and Apply are needed")
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
	if !(o.Weight >= 0.001 && o.Weight <= 1000) {
		return fmt.Errorf("shared classes: weight %v: 0.001 to 1000 is right", o.Weight)
	}
	if o.Period == 0 {
		o.Period = DefaultPeriod
	}
	if o.Period < 0 || o.OnOutage < store.OutageShare || o.OnOutage > store.OutageClosed {
		return fmt.Errorf("shared classes: period %v or outage %v is not right", o.Period, o.OnOutage)
	}
	return nil
}
