// Package measure tells from the bytes that arrive, and when, what a shaper
// did: the rate it held, the burst it let through and how fair it was.
//
//	r := measure.NewRecorder()
//	go r.Count(id, conn)                      // for each connection
//	from := r.Now()
//	// ... seconds later
//	rate, each := measure.Rate(r.Since(from), 5*time.Second, conns)
//	fair := measure.Jain(each)
//
// It looks from the receiver's side, so that what it says holds whatever the
// shaper believes of itself. It is for the demo and the benchmarks.
package measure
