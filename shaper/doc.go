// Package shaper decides when how many bytes may go: byte-cost token buckets,
// leaky buckets, and the class tree that shares a link.
//
// A program that limits itself uses a bucket, which is safe for concurrent use:
//
//	limit := shaper.NewTokenBucket(10*shaper.Mbit, 64*shaper.KiB)
//	if !limit.Allow(len(packet)) {
//		return retryAfter(limit.RetryAfter(len(packet)))
//	}
//
// A datapath owns a Tree, from one goroutine, and asks it whose turn it is:
//
//	tree.Activate(&session.queue, now)     // it has something to send
//	for queue, n := tree.Next(now); queue != nil; queue, n = tree.Next(now) {
//		sent, more := send(queue.User, n)   // at most n bytes
//		tree.Charge(queue, sent, more, now)
//	}
//	sleepUntil(tree.Wake(now))
//
// Rate is in bits per second, Size in bytes; no bare number carries a unit.
// All accounting is in whole bytes with the remainder carried: nothing drifts,
// from 8 kbit/s to 400 Gbit/s, for years.
//
// The package is the standard library alone and does no I/O. Its core takes the
// time as a parameter, so that hours pass in a test within milliseconds.
package shaper
