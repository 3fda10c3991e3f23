// Command admission measures how fast programs are admitted:
//
//	go run ./internal/bench/admission [-rounds 9] [-seconds 1]
//
// First decisions over the control socket of a real daemon, client included; then
// decisions on a shared class, beside the same script by the Redis library alone
// and beside throttled, a well-known limiter, on the same real redis-server. The
// contenders take turns, and what is printed are medians of ratios of turns that
// followed each other. It builds the daemon and reads the script from the source
// tree, in whose root it is run. It owns the processes that it starts, and ends them.
package main
