// Package demo shows that the relay does what a policy says: it starts one with
// the policy in demo.yaml, sends traffic of four classes through it on loopback,
// and compares what arrives with what HTB's rules promise for that policy:
//
//	err := demo.Run(ctx, os.Stdout, demo.Options{Length: demo.DefaultLength})
//	if err != nil {
//		return err // an *OffError when a class was not given what it was promised
//	}
//
// What is promised is computed from the policy (promise.go). What is measured
// are the bytes that receivers have, by the time at which they have them: no
// counter of the relay is asked. Run goes through the steps on one goroutine,
// which also draws (frame.go, screen.go); senders and receivers have one per
// connection (traffic.go). All goroutines and sockets are gone when it returns.
//
// It needs no network and no privileges. It is no load generator and no
// benchmark: the rates are small, so that any machine has time to spare.
package demo
