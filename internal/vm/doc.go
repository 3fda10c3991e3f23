// Package vm tests the machine that "make test-vm" boots: that its kernel has
// what the tests of other packages need there. These go into the packages that
// they test; they look for SHAPERD_VM=1 in the environment.
package vm
