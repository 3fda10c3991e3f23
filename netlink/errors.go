package netlink

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// A ForeignError says that another's qdisc is where ours would go.
type ForeignError struct {
	Device, Kind string
	Handle       Handle
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s has the qdisc %s %s, which is not shaperd's: remove it (tc qdisc del dev %s root), or write takeover: true for this interface",
		e.Device, e.Kind, e.Handle, e.Device)
}

// A MissingError says that an interface that the policy names does not exist.
type MissingError struct{ Device string }

func (e *MissingError) Error() string { return "there is no interface " + e.Device }

// modules are what the kernel needs for a kind of object, and what is lost without.
var modules = map[string]string{
	kindHTB:     "sch_htb: without it links cannot have classes",
	kindTBF:     "sch_tbf: without it a class cannot have a hard cap or be steady",
	kindFifo:    "sch_fifo: without it classes have no bounded queue",
	kindFqCodel: "sch_fq_codel",
	kindClsact:  "sch_ingress: without it what arrives cannot be shaped",
	kindBPF:     "cls_bpf: without it u32 filters classify",
	kindU32:     "cls_u32 and act_mirred: without them what arrives cannot be shaped",
}

// explain adds what is missing to an error of the kernel.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w (needs CAP_NET_ADMIN)", err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w (the interface has gone)", err)
	}
	return err
}

// refused describes the change that the kernel refused.
func (c *Change) refused(err error) error {
	if kind, _, _ := strings.Cut(c.Object, " "); errors.Is(err, unix.ENOENT) && c.Verb == verbAdd && modules[kind] != "" {
		err = fmt.Errorf("%w (the kernel may lack the module %s)", err, modules[kind])
	}
	return fmt.Errorf("%s %s on %s: %w", c.Verb, c.Object, c.Device, explain(err))
}
