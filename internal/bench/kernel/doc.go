// Command kernel measures the kernel datapath beside plain tc:
//
//	go run ./internal/bench/kernel                     # everything, about four minutes
//	go run ./internal/bench/kernel -only rates,apply   # parts
//	go run ./internal/bench/kernel -markdown FILE      # the tables for docs/benchmarks.md
//
// It runs in network namespaces of its own and needs root and iproute2.
// It is for a quiet machine.
package main
