//go:build vm

package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A process of the test's own has the lock until its stdin ends.
func TestMain(m *testing.M) {
	if folder := os.Getenv("SHAPERD_TEST_LOCK"); folder != "" {
		l, err := lockNamespace(folder)
		fmt.Println(l != nil, err)
		var b [1]byte
		_, _ = os.Stdin.Read(b[:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lockAs has a process with the user's rights take the lock; what it got comes back.
func lockAs(t *testing.T, folder string, uid uint32) (got string, end func()) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.MkdirTemp(filepath.Dir(folder), "locker") //nolint:usetesting // one that runs is not written to, and others run it
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(own, "locker")
	if err := errors.Join(os.WriteFile(path, program, 0o755), os.Chmod(own, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "SHAPERD_TEST_LOCK="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, err := out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b[:n])), func() { in.Close(); _ = cmd.Wait() }
}

const nobody = 65534

// folderOf makes a folder of a user, below one that everybody may go through.
func folderOf(t *testing.T, uid int) string {
	t.Helper()
	top, err := os.MkdirTemp("", "lock") //nolint:usetesting // that of t is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	folder := filepath.Join(top, "run")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{top: 0o755, folder: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(folder, uid, uid); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestLockHoldsBetweenUsers(t *testing.T) {
	for _, tt := range []struct {
		name          string
		folder        int
		first, second uint32
		got           string // by the second while the first has it
		then          string // and afterwards
	}{
		{"root, then the service", nobody, 0, nobody, "shapes the interfaces here already", "true <nil>"},
		{"the service, then root", nobody, nobody, 0, "shapes the interfaces here already", "true <nil>"},
		{"root's folder", 0, 0, nobody, "shapes the interfaces here already", "false <nil>"},
		{"twice root", 0, 0, 0, "shapes the interfaces here already", "true <nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := folderOf(t, tt.folder)
			got, end := lockAs(t, folder, tt.first)
			if got != "true <nil>" {
				t.Errorf("the first got %s", got)
			}
			got, endSecond := lockAs(t, folder, tt.second)
			if !strings.Contains(got, tt.got) || !strings.Contains(got, "process ") {
				t.Errorf("the second got %s", got)
			}
			end()
			endSecond()
			got, end = lockAs(t, folder, tt.second)
			if got != tt.then {
				t.Errorf("afterwards it gets %s, want %s", got, tt.then)
			}
			end()
		})
	}
}
