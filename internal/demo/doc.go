// Package demo shows that shaperd does what a policy says: it sends traffic of
// four classes and compares what arrives with what HTB's rules promise.
//
//	err := demo.Run(ctx, os.Stdout, demo.Options{Length: demo.DefaultLength})             // the relay
//	err := demo.RunKernel(ctx, os.Stdout, demo.KernelOptions{Program: "/usr/bin/shaperd"}) // the kernel
//	err := demo.RunShared(ctx, os.Stdout, demo.SharedOptions{Program: "/usr/bin/shaperd"}) // shared classes
//	if err != nil {
//		return err // an *OffError when a class was not given what it was promised
//	}
//
// Run starts a relay with the policy in demo.yaml, on loopback, and needs no
// network and no privileges. RunKernel makes two hosts and a router between
// them out of network namespaces, and runs a program there with the policy in
// kernel.yaml; it needs root (the files kernel*.go and plot.go). RunShared runs
// a program three times, each with a relay and the policy in shared.yaml, and a
// redis-server that it kills and starts again (the files shared*.go).
//
// What is promised is computed from the policy (promise.go). What is measured
// are the bytes that receivers have, by the time at which they have them: no
// counter of shaperd's is asked. Each goes through its steps on one goroutine,
// which also draws (frame.go, screen.go, kernel_frame.go); senders and receivers
// have their own. All goroutines, sockets, namespaces, processes and files are
// gone when it returns.
//
// It is no load generator and no benchmark: the rates are small, so that any
// machine has time to spare.
package demo
