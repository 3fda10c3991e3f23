//go:build systemd

package systemdtest

import (
	"strings"
	"testing"
)

// The group of the policy may ask, others may not; and the service can only give
// the socket to a group that its user is in.
func TestGroupMayAskTheService(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.run("groupadd", "netops")
		m.run("useradd", "--groups", "netops", "alice")
		m.run("useradd", "bob")
		m.run("systemctl", "start", "shaperd")
		m.write(policyFile, policy("20mbit", "admin: {group: netops}"))
		if out := m.fail("shaperd", "reload"); !strings.Contains(out, "SupplementaryGroups") || !strings.Contains(out, "nothing has changed") {
			t.Errorf("a reload whose user is not in the group says %q", out)
		}

		m.dropIn("SupplementaryGroups=netops")
		m.run("systemctl", "restart", "shaperd")
		if got := m.run("stat", "-c", "%U:%G:%a", "/run/shaperd/shaperd.sock"); got != "shaperd:netops:660" {
			t.Errorf("the socket is %s", got)
		}
		if out := m.run("runuser", "-u", "alice", "--", "shaperd", "status"); !strings.HasPrefix(out, "ready ") {
			t.Errorf("who is in the group is told %q", out)
		}
		m.run("runuser", "-u", "alice", "--", "shaperd", "set", "web", "--rate", "10%")
		if out := m.journal(); !strings.Contains(out, "by.uid="+m.run("id", "-u", "alice")) {
			t.Errorf("the journal does not name who set a rate:\n%s", out)
		}
		if out := m.fail("runuser", "-u", "bob", "--", "shaperd", "status"); !strings.Contains(out, "permission denied (its file mode says who may") {
			t.Errorf("who is not in the group is told %q", out)
		}
	})
}
