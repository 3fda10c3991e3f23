package secret

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// most holds any of these files: the largest are certificates of all authorities.
const most = 1 << 20

// Read reads a regular file of no more than 1 MiB. An error about it is a
// *fs.PathError.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would have it wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := Fits(info); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return io.ReadAll(io.LimitReader(f, most)) // it may grow meanwhile
}

// Fits returns why Read would not take such a file.
func Fits(info fs.FileInfo) error {
	kind := "special file"
	switch mode := info.Mode(); {
	case mode.IsRegular() && info.Size() > most:
		return fmt.Errorf("has %d bytes, and %d are the most", info.Size(), most)
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode&fs.ModeDevice != 0:
		kind = "device"
	}
	return fmt.Errorf("is a %s, not a regular file", kind)
}
