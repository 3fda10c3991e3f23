package netlink

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/google/nftables"
	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"shaperd/netlink/bpf"
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
	closed bool   // the sockets are, and their descriptors may be others' by now

	nftables *nftables.Conn // nil for none

	port       uint32                // by which notifications name our socket
	listener   *socket               // to what others change; of Run
	conditions map[string]*condition // by interface
	meters     meters
	program    *bpf.Program    // the classifier's, nil for none; ours to close
	tables     *bpf.Tables     // that it has; nil when another process wrote them
	sets       [2][]filter     // the classifier's filters in force
	current    *classifier     // of config
	withoutBPF error           // why eBPF is not even tried
	prior      map[int]foreign // what was at an interface's root before ours, by index
}

// Open opens the kernel's netlink for the namespace of the calling thread. It
// writes nothing. The caller must call Close, which leaves the kernel as it is.
func Open(log *slog.Logger) (*Datapath, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Datapath{log: log, kernel: thisKernel(), conditions: map[string]*condition{}, meters: meters{}, prior: map[int]foreign{}}
	var err error
	if d.socket, err = openSocket(); err != nil {
		return nil, err
	}
	d.port = d.socket.port()
	if d.listener, err = openSocket(); err != nil {
		d.socket.close()
		return nil, err
	}
	if d.links, err = vnl.NewHandle(unix.NETLINK_ROUTE); err != nil {
		d.socket.close()
		d.listener.close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	d.nftables = openNftables()
	return d, nil
}

// Close gives back the sockets; Run must have returned.
func (d *Datapath) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.socket.close()
	d.listener.close()
	d.links.Close()
	if d.nftables != nil {
		_ = d.nftables.CloseLasting()
	}
	if d.program != nil {
		_ = d.program.Close()
	}
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
	if err != nil {
		return nil, err
	}
	p.config, d.config = d.config, c
	return p, nil
}

// Undo puts back what was there before the Apply that made the plan, as far as
// the kernel can say what that was.
func (d *Datapath) Undo(p *Plan) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = p.config
	if p.classifier != nil && p.classifier.before != nil {
		if err := p.classifier.program.Update(p.classifier.before); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
		d.tables = p.classifier.before
	}
	return d.restore(p.before)
}

// Require returns a *MissingError for each interface that c names and that does
// not exist. A pattern needs none.
func (d *Datapath) Require(c Config) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, missing, err := d.sites(&c)
	errs := []error{err}
	for _, name := range missing {
		if !strings.ContainsAny(name, "*?[") {
			errs = append(errs, &MissingError{name})
		}
	}
	return errors.Join(errs...)
}

// Clear removes all that is ours, and returns what it removed.
func (d *Datapath) Clear() (*Plan, error) { return d.Apply(Config{}) }
