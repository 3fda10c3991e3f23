package configs

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocketPath is what the kernel takes as a socket's path, in bytes.
const maxSocketPath = 107

// A socketPath is where the control socket is; "" is off.
type socketPath string

func (*socketPath) format() format {
	return format{what: "a path or off", example: "/run/shaperd/shaperd.sock", pattern: `^(/.+|off)$`}
}

func (s *socketPath) parse(text string) error {
	switch {
	case text == "off":
		return nil
	case !filepath.IsAbs(text):
		return textErrorf("write it from the root on, such as /run/shaperd/shaperd.sock, or off", "it is no absolute path")
	case len(text) > maxSocketPath:
		return textErrorf("write at most 107 characters, which is what the kernel takes", "it is too long for a socket")
	}
	*s = socketPath(filepath.Clean(text))
	return nil
}

// A fileMode is the permission bits of a file.
type fileMode fs.FileMode

func (*fileMode) format() format {
	return format{what: "a file mode", example: `"0660"`, pattern: `^0?[0-7]{3}$`}
}

func (m *fileMode) parse(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	switch {
	case err != nil || n > 0o777:
		return textErrorf(`write three octal digits in quotes, such as "0660"`, "it is no file mode")
	case n&0o600 != 0o600:
		return textErrorf(`write at least "0600"`, "the daemon's own user could not use it")
	}
	*m = fileMode(n)
	return nil
}

type groupName string

func (*groupName) format() format {
	return format{what: "a group's name", example: "adm", pattern: `^[A-Za-z0-9_][A-Za-z0-9_.-]*$`}
}

func (g *groupName) parse(text string) error {
	if text == "" || !consistsOf(text, "-_.") || strings.ContainsRune("-.", rune(text[0])) {
		return textErrorf("write a group's name, such as adm", "no group can have this name")
	}
	*g = groupName(text)
	return nil
}

// AdminAt is the control socket at a path, which counts as one that a file gives.
func AdminAt(path string) (Admin, error) {
	var s socketPath
	if err := s.parse(path); err != nil {
		reason, cure := reasonOf(err)
		return Admin{}, fmt.Errorf("socket %q: %s; %s", path, reason, cure)
	}
	return Admin{Socket: string(s)}, nil
}

func (s *adminSpec) values() Admin {
	return Admin{
		Socket: string(s.Socket.v), Off: s.Socket.ok() && s.Socket.v == "", Mode: fs.FileMode(s.Mode.v), Group: string(s.Group.v),
	}
}
