//go:build systemd

package systemdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install installs, or upgrades to, a package that the host has.
func (m *machine) install(deb string) string {
	m.t.Helper()
	data, err := os.ReadFile(deb)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write("/tmp/shaperd.deb", string(data))
	return m.run("dpkg", "--install", "/tmp/shaperd.deb")
}

// makeInstall has make install what it built in the machine.
func (m *machine) makeInstall() {
	m.t.Helper()
	cmd := exec.Command("make", "-s", "install", "DESTDIR="+m.path(""), "PREFIX=/usr/local")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("make install: %v\n%s", err, out)
	}
}

func (m *machine) enabled() string {
	m.t.Helper()
	out, _ := m.try("systemctl", "is-enabled", "shaperd.service") // fails when it is not
	return out
}

func TestUpgradeKeepsThePolicyAndRestartsTheService(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		if got := m.enabled(); got != "enabled" {
			t.Errorf("a new service is %s", got)
		}
		m.write(policyFile, policy("7mbit"))
		m.run("systemctl", "disable", "shaperd")
		m.run("systemctl", "start", "shaperd")
		pid := m.mainPID()

		next, err := newer()
		if err != nil {
			t.Fatal(err)
		}
		if out := m.install(next); strings.Contains(out, "arning") {
			t.Errorf("dpkg warns:\n%s", out)
		}
		m.awaitRestart(pid)
		if got := m.downloadRate(); got != 7e6 {
			t.Errorf("%v bit/s in force after the upgrade, want those of the edited policy", got)
		}
		if got := m.enabled(); got != "disabled" {
			t.Errorf("the service that was disabled is %s after the upgrade", got)
		}
		if got := m.run("dpkg-query", "--show", "--showformat=${Version}", "shaperd"); got != "99.1" {
			t.Errorf("version %s is installed", got)
		}

		m.run("systemctl", "stop", "shaperd")
		m.install(next)
		if got := m.property("ActiveState"); got != "inactive" {
			t.Errorf("the service that was stopped is %s after an upgrade", got)
		}
	})
}

func TestPurgeLeavesNothing(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.run("systemctl", "enable", "--now", "shaperd.socket", "shaperd.service")
		pid := m.mainPID()
		m.write("/etc/shaperd/office.yaml", policy("1mbit"))

		if out := m.run("dpkg", "--remove", "shaperd"); strings.Contains(out, "failed") {
			t.Errorf("dpkg says:\n%s", out)
		}
		m.await("no process", func() bool { return !m.exists("/proc/" + pid) })
		if c, err := m.dial("tcp", "127.0.0.1:1080"); err == nil {
			c.Close()
			t.Error("somebody still listens on 127.0.0.1:1080")
		}
		if got := m.run("systemctl", "show", "--value", "--property=LoadState", "shaperd.service", "shaperd.socket"); got != "not-found\n\nnot-found" {
			t.Errorf("the units are %q", got)
		}
		if !m.exists(policyFile) {
			t.Error("the policy is gone before a purge")
		}
		m.run("dpkg", "--purge", "shaperd")
		find := []string{"find", "/etc", "/usr", "/var/lib/systemd", "/run", "-xdev", "-name", "*shaperd*",
			"-not", "-path", "/run/systemd/journal/*", "-not", "-path", "/run/credentials/*"}
		if left := m.run(find...); left != "" {
			t.Errorf("a purge leaves:\n%s", left)
		}
		m.run("id", "shaperd") // stays, as is Debian's custom

		m.install(built(t))
		if got := m.enabled(); got != "enabled" {
			t.Errorf("the service that came back is %s", got)
		}
	})
}

// An image is built in a folder in which no systemd runs, and perhaps none is installed.
func TestPackageInstallsWhereNoSystemdRuns(t *testing.T) {
	t.Parallel()
	for suite := range strings.FieldsSeq(os.Getenv("SYSTEMD_SUITES")) {
		for _, tt := range []struct{ name, before, want string }{
			{"systemd is not running", "true", "enabled"},
			{"systemd is not there", "rm /usr/bin/systemctl /usr/bin/systemd-sysusers", ""},
		} {
			t.Run(suite+" "+tt.name, func(t *testing.T) {
				path := built(t)
				cmd := nspawn(t, suite, "--bind-ro="+filepath.Dir(path)+":/packages", "--pipe", "sh", "-ec", tt.before+`
					dpkg --install /packages/`+filepath.Base(path)+` >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
					stat -c %U:%G:%a `+policyFile+`
					! command -v systemctl >/dev/null || systemctl is-enabled shaperd
					dpkg --purge shaperd >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
					! test -e /etc/shaperd`)
				out, err := cmd.Output()
				want := strings.TrimSpace("root:shaperd:640\n" + tt.want)
				if got := strings.TrimSpace(string(out)); err != nil || got != want {
					t.Errorf("%v\n%s\nwant\n%s", err, got, want)
				}
			})
		}
	}
}

// rpm calls the same scripts with the number of versions that are installed.
func TestScriptsUnderstandRPM(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		script := func(name, arg string) {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(root, "packaging", name))
			if err != nil {
				t.Fatal(err)
			}
			m.run("sh", "-c", string(text), name, arg)
		}
		script("preinst", "1")
		m.makeInstall()
		script("postinst", "1")
		if got := m.enabled(); got != "enabled" { // as Debian's presets say
			t.Errorf("a new service is %s", got)
		}
		m.run("systemctl", "start", "shaperd")
		pid := m.mainPID()
		script("preinst", "2")
		script("postinst", "2")
		m.awaitRestart(pid)
		script("prerm", "1")
		script("postrm", "1")
		if got := m.property("ActiveState") + " " + m.enabled(); got != "active enabled" {
			t.Errorf("the service is %s after an upgrade", got)
		}
		script("prerm", "0")
		script("postrm", "0")
		if got := m.property("ActiveState") + " " + m.enabled(); got != "inactive disabled" {
			t.Errorf("the service is %s before its removal", got)
		}
	})
}
