// Command relay measures shaperd's relay beside HAProxy, nginx and a plain Go
// io.Copy relay: one measurement of each in turn, several rounds, medians of
// the ratios within a round.
//
//	go run ./internal/bench/relay                  # everything, about five minutes
//	go run ./internal/bench/relay -only cpu,short  # parts
//	go run ./internal/bench/relay -markdown FILE   # the tables for docs/benchmarks.md
//
// It runs in a network namespace of its own, with reno for all, and needs root
// for that. Contenders are processes with one worker each; traffic comes from
// this process and goes to another. It is for a quiet machine.
package main
