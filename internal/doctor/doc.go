// Package doctor says whether this machine can do what a policy wants, what
// would bypass it, and how to cure that:
//
//	facts := doctor.Gather(policy) // reads the host, and tries the kernel
//	report := doctor.Examine(facts)
//	fmt.Println(report.Verdict())  // this host can shape eth0; no problem, 1 warning
//
// Examine is pure: the facts are values and a tree of files, so that a test can
// make up a host. It runs the checks of one table (checks.go), each a function
// of the facts that returns what it found, what that costs and its cure. A check
// that the policy gives nothing to do finds nothing.
//
// Gather changes nothing on the host; what it tries of the kernel it tries in a
// network namespace apart. It works without privileges, and then knows less:
// the checks say what could not be looked at.
//
// It owns and closes nothing. It is not for watching a daemon that runs: that
// has metrics.
package doctor
