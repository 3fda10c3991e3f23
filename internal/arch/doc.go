// Package arch holds the rules of the repository's shape, as a test: which
// package may import what, where socket system calls are made, how long a file
// gets, and that every package says what it is for. Each ban has its reason,
// and a failure prints it:
//
//	go test ./internal/arch
//
// The rules are in rules_test.go. To add a package, add its line to layers;
// to loosen a rule, change its reason too. The package has no code to import.
package arch
