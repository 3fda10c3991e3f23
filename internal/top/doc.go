// Package top is a live view of a daemon on a terminal: its links, their classes
// with what goes through them, and a class's sessions.
//
//	err := top.Run(ctx, admin.NewClient(socket), top.Options{Interval: time.Second}, os.Stdin, os.Stdout)
//
// It asks once an interval and draws what has changed, so that a slow connection
// to the terminal carries little. A daemon that goes away is waited for. What it
// remembers of the last minute is its own: two views know nothing of each other.
//
// Run owns the terminal until it returns, and gives it back as it was. A Model is
// a pure function of the answers, keys and sizes that it is given; the time comes
// with the answers. Programs and pipes use shaperd status or the metrics instead.
package top
