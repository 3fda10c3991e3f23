// Command kernel measures the kernel datapath beside plain tc:
//
//	go run ./internal/bench/kernel                     # everything, about six minutes
//	go run ./internal/bench/kernel -only rates,apply   # parts
//	go run ./internal/bench/kernel -quick              # less of everything, to see that it works
//	go run ./internal/bench/kernel -markdown FILE      # the tables for docs/benchmarks.md
//
// It runs in network namespaces of its own (internal/lab) and needs root and
// iproute2. A part is one file: rates.go, leaky.go, classify.go, apply.go and
// loss.go; what is beside is measured in the same run, in turn with shaperd.
// It is for a quiet machine.
package main
