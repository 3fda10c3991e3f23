package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An archive is a filling initramfs: cpio in the form "newc", as in the
// kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
type archive struct {
	w    io.Writer
	done map[string]bool // names written
}

// Kinds of file, as in inode(7).
const (
	isDir  = 0o040000
	isFile = 0o100000
)

// add writes a file, after the folders above it. What is there already stays.
func (a *archive) add(name string, perm fs.FileMode, data []byte) error {
	name = strings.TrimPrefix(name, "/")
	for i, c := range name {
		if c == '/' {
			if err := a.entry(name[:i], isDir|0o755, nil); err != nil {
				return err
			}
		}
	}
	return a.entry(name, isFile|uint32(perm.Perm()), data)
}

// copy adds a file of this machine.
func (a *archive) copy(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return a.add(name, info.Mode(), data)
}

// copyTree adds the plain files below a folder of this machine, but for what
// is in the folders except.
func (a *archive) copyTree(name, from string, except ...string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(except, rel):
			return fs.SkipDir
		case d.Type().IsRegular():
			return a.copy(path.Join(name, filepath.ToSlash(rel)), file)
		}
		return nil
	})
}

// end writes what an archive ends with.
func (a *archive) end() error {
	return a.entry("TRAILER!!!", 0, nil)
}

func (a *archive) entry(name string, mode uint32, data []byte) error {
	if a.done[name] {
		return nil
	}
	a.done[name] = true
	const links = 1
	// After the magic: inode, mode, uid, gid, links, mtime, size, four device numbers, length of the name and its NUL, checksum.
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		0, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	head := header + name + "\x00"
	if _, err := io.WriteString(a.w, head+padding(len(head))); err != nil {
		return err
	}
	if _, err := a.w.Write(data); err != nil {
		return err
	}
	_, err := io.WriteString(a.w, padding(len(data)))
	return err
}

// padding fills n bytes up to a multiple of 4.
func padding(n int) string {
	return "\x00\x00\x00"[:-n&3]
}
