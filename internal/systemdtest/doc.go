// Package systemdtest tests the packages and the units where they are used: it
// installs them in machines with a systemd of their own, and runs the service.
// "make test-systemd" has what it needs: a folder with Debian for each of
// SYSTEMD_SUITES in bin/systemd, and the program that makes packages.
//
// A machine is a container (systemd-nspawn) with its own processes, network and
// cgroup. It is thrown away with the test, and writes nothing to its folder. A
// test acts in it as its administrator does, by commands:
//
//	m := boot(t, "trixie")
//	m.install(built(t))
//	m.run("systemctl", "start", "shaperd")
//	m.await("ready", func() bool { return m.property("ActiveState") == "active" })
package systemdtest
