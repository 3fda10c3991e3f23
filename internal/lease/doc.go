// Package lease shares the rate of a class among the hosts of a cluster:
//
//	c, err := lease.New(s, lease.Options{Cluster: "edge", Host: "r1", Observe: observe, Apply: apply})
//	c.Set([]lease.Budget{{Holder: lease.Holder{Class: "web", Direction: "download", Link: "relay web"}, Rate: 30 * shaper.Mbit, Version: v}})
//	err = c.Run(ctx) // until ctx is done
//
// A budget is a class's rate in one direction. Each holder, which is one link of
// one host, has a lease: a share of the rate that it may use for two seconds. It
// renews the lease twice a second, says what it used and whether traffic waits,
// and gets a share that is max-min fair among all holders, by weight. One script
// on the cluster's Redis decides, lease.lua. No byte waits for the network, and
// the number of requests does not grow with the traffic.
//
// The sum of what all holders may use never exceeds the rate: a share grows only
// after others have said that they use less. What happens without an answer is
// Options.OnOutage's to say, and docs/shared.md says what it costs.
//
// One goroutine, Run's, does everything and calls Observe and Apply. Set, Wake
// and Status may be called from any goroutine and do not block. The caller owns
// the store. The package limits no traffic: that is for who is told the shares.
package lease
