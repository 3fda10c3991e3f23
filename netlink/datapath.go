package netlink

import (
	"fmt"
	"log/slog"
	"sync"

	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Datapath shapes interfaces of the network namespace that it was opened in.
// Its methods may be called from any goroutine; they wait for each other.
type Datapath struct {
	log    *slog.Logger
	kernel Kernel

	mu     sync.Mutex // held while the kernel is read and written
	socket *socket
	links  *vnl.Handle
	config Config // in force
}

// Open opens the kernel's netlink for the namespace of the calling thread. It
// writes nothing. The caller must call Close, which leaves the kernel as it is.
func Open(log *slog.Logger) (*Datapath, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Datapath{log: log, kernel: thisKernel()}
	var err error
	if d.socket, err = openSocket(); err != nil {
		return nil, err
	}
	if d.links, err = vnl.NewHandle(unix.NETLINK_ROUTE); err != nil {
		d.socket.close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return d, nil
}

// Close gives back the sockets.
func (d *Datapath) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.socket.close()
	d.links.Close()
}

// Plan compares c with the kernel, and writes nothing.
func (d *Datapath) Plan(c Config) (*Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.plan(&c)
}

// Apply puts c into force on the interfaces that there are, all of it or
// nothing, and returns what it changed: nothing when nothing differs.
func (d *Datapath) Apply(c Config) (*Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.apply(&c, nil)
	if err == nil {
		d.config = c
	}
	return p, err
}

// Clear removes all that is ours, and returns what it removed.
func (d *Datapath) Clear() (*Plan, error) { return d.Apply(Config{}) }
