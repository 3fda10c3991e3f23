package systemd

import (
	"os"

	"github.com/coreos/go-systemd/v22/activation"
)

// Listeners returns the sockets that systemd has bound for the service, each
// by the name that its socket unit gives it (FileDescriptorName, else the
// unit's own). The caller owns them. A second call returns none, and a child
// process does not see them.
func Listeners() []*os.File { return activation.Files(true) }
