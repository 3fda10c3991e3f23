package netlink

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Our devices for what arrives. The alias says whose they are, and remembers
// across a crash whether the hook at the interface is ours to remove.
const (
	ifbPrefix   = "shaperd-"
	aliasPrefix = "shaperd: what arrives at "
	aliasHook   = "; hook added"
)

// A Device is what a plan has to know of a network interface.
type Device struct {
	Name      string
	Index     int
	MTU       int
	GSO       int  // the largest offloaded packet in bytes
	Ethernet  bool // it counts an Ethernet header with every packet
	Loopback  bool
	queueTime time.Duration // how long a packet may wait; 0 is the default
	ifb       bool          // of the kind that our own are
	alias     string        // what somebody wrote beside it
}

func newDevice(l vnl.Link) *Device {
	a := l.Attrs()
	d := &Device{
		Name: a.Name, Index: a.Index, MTU: a.MTU, GSO: int(a.GSOMaxSize), Ethernet: a.EncapType == "ether",
		Loopback: a.RawFlags&unix.IFF_LOOPBACK != 0, ifb: l.Type() == "ifb", alias: a.Alias,
	}
	if d.GSO == 0 {
		d.GSO = 65536
	}
	return d
}

// ifbName is the name of our device for what arrives at an interface: of a hash,
// since names of interfaces fill the 15 characters that there are.
func ifbName(device string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(device))
	return fmt.Sprintf("%s%07x", ifbPrefix, h.Sum32()>>4)
}

// servant reports whether the device is one of ours.
func (d *Device) servant() bool {
	return d.ifb && strings.HasPrefix(d.Name, ifbPrefix) && strings.HasPrefix(d.alias, aliasPrefix)
}

// serves returns the interface that a device of ours belongs to, and whether the hook there is ours.
func (d *Device) serves() (device string, hookAdded bool) {
	name := strings.TrimPrefix(d.alias, aliasPrefix)
	return strings.CutSuffix(name, aliasHook)
}

// devices lists the interfaces of the namespace.
func (d *Datapath) devices() (list []*Device, err error) {
	links, err := d.linkList()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		list = append(list, newDevice(l))
	}
	return list, nil
}

// linkList lists the interfaces, again when they change meanwhile.
func (d *Datapath) linkList() (links []vnl.Link, err error) {
	for range dumpTries {
		if links, err = d.links.LinkList(); !errors.Is(err, vnl.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	return links, nil
}

// addServant makes the device for what arrives at another.
func (d *Datapath) addServant(of *Device) (*Device, error) {
	name := ifbName(of.Name)
	fail := func(what string, err error) error {
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("%s %s for what arrives at %s: the kernel has no ifb (module ifb): remove ingress, or load it: %w", what, name, of.Name, err)
		}
		return fmt.Errorf("%s %s for what arrives at %s: %w", what, name, of.Name, explain(err))
	}
	ifb := &vnl.Ifb{LinkAttrs: vnl.NewLinkAttrs()}
	ifb.Name, ifb.MTU, ifb.TxQLen = name, of.MTU, directQlen
	if err := d.links.LinkAdd(ifb); err != nil {
		return nil, fail("add", err)
	}
	made, err := d.links.LinkByName(name)
	if err == nil {
		err = errors.Join(d.links.LinkSetAlias(made, aliasPrefix+of.Name), d.links.LinkSetUp(made))
	}
	if err != nil {
		_ = d.links.LinkDel(ifb)
		return nil, fail("set up", err)
	}
	out := newDevice(made)
	out.alias = aliasPrefix + of.Name
	return out, nil
}

func (d *Datapath) removeServant(s *Device) error {
	err := d.links.LinkDel(&vnl.Ifb{LinkAttrs: vnl.LinkAttrs{Index: s.Index, Name: s.Name}})
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", s.Name, explain(err))
	}
	return nil
}

// rememberHook notes at our device that the hook at its interface is ours to remove.
func (d *Datapath) rememberHook(s *Device) error {
	s.alias += aliasHook
	return d.links.LinkSetAlias(&vnl.Ifb{LinkAttrs: vnl.LinkAttrs{Index: s.Index, Name: s.Name}}, s.alias)
}
