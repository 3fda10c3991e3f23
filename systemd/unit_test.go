package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// units returns the paths of the service and its socket, with a program in the
// service that is there on every host.
func units(t *testing.T) (service, socket string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"shaperd.service", "shaperd.socket"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/shaperd", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "shaperd.service"), filepath.Join(dir, "shaperd.socket")
}

// systemd-analyze exits with 0 for an unknown key or a bad value: what counts is that it says nothing.
func TestSystemdHasNothingToSayOfTheUnits(t *testing.T) {
	service, socket := units(t)
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", service, socket).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestUnitIsConfined(t *testing.T) {
	service, _ := units(t)
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", service).CombinedOutput()
	if err != nil {
		t.Errorf("exposed by more than 2.0 of 10: %v\n%s", err, out)
	}
}
