package systemd

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Journaled reports whether what is written to w goes straight to the journal,
// which then keeps the time and takes a priority as a prefix (sd-daemon(3)).
func Journaled(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
