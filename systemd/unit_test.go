package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unit returns the path of the service's unit with a program in it that is
// there on every host.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("shaperd.service")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shaperd.service")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/shaperd", "/bin/true")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// systemd-analyze exits with 0 for an unknown key or a bad value: what counts is that it says nothing.
func TestSystemdHasNothingToSayOfTheUnit(t *testing.T) {
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit(t)).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestUnitIsConfined(t *testing.T) {
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", unit(t)).CombinedOutput()
	if err != nil {
		t.Errorf("exposed by more than 2.0 of 10: %v\n%s", err, out)
	}
}
