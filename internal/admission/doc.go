// Package admission grants or refuses what programs want to send that do not
// pass through a relay: each class is a token bucket, or one for each key.
//
//	a := admission.New()
//	if err := a.Update([]admission.Class{{Name: "web", Rate: 10 * shaper.Mbit, Burst: 64 * shaper.KiB}}); err != nil {
//		return err
//	}
//	d, err := a.Take(ctx, admission.Request{Class: "web", Cost: 1500, Key: "customer-17"})
//	if err != nil {
//		return err // the request is wrong, or nobody can say: *OutageError
//	}
//	if !d.Granted {
//		return tryAgain(d.RetryAfter)
//	}
//
// A class counts bytes or requests. A class that is not shared is decided here,
// exactly, without a lock where there is no key. A shared one is decided by a
// script in the store, so that all hosts together grant what one bucket holds;
// while the store is away, the class's Outage says what this host does alone.
//
// An Admission is safe for concurrent use. It owns nothing that has to be closed;
// the store is the caller's. Whoever waits holds a goroutine of the caller's.
//
// It is not for traffic that shaperd moves itself, which waits for its turn
// instead of being refused, and it does not queue beyond Request.Wait.
package admission
