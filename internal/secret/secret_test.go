package secret

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"token": "secret\n", "empty": "", "most": strings.Repeat("a", most), "more": strings.Repeat("a", most+1)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(at(name)); name != "more" && (string(got) != text || err != nil) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", at("link")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{
		at("none"):   "no such file or directory",
		at("more"):   "has 1048577 bytes, and 1048576 are the most",
		at("pipe"):   "is a named pipe, not a regular file",
		at("link"):   "is a named pipe, not a regular file",
		at("socket"): "no such device or address",
		dir:          "is a directory, not a regular file",
		"/dev/zero":  "is a device, not a regular file",
	} {
		_, err := Read(path)
		if in, ok := errors.AsType[*fs.PathError](err); !ok || in.Path != path || in.Err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
