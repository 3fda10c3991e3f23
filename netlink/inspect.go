package netlink

import (
	"cmp"
	"fmt"

	"golang.org/x/sys/unix"
)

// A LinkInfo is what is to be known of an interface before it is shaped. Its
// JSON is not part of any interface.
type LinkInfo struct {
	Name     string
	Kind     string // veth, bridge, vlan, wireguard …; "device" for hardware
	MTU      int
	GSO, GRO int // the largest offloaded packet that leaves, and that arrives, in bytes
	Queues   int // for what leaves
	Up       bool
	Loopback bool
	Master   string // the bridge or bond that it is a port of, "" for none
	Lower    string // the interface that it is on top of, "" for none
	XDP      bool   // a program sees what arrives before the qdiscs

	Root      string // the kind and handle of another's qdisc at the root, "" for none but the kernel's own and ours
	Ours      bool   // shaperd's qdisc is at the root
	RootKind  string // of the kernel's own qdisc: noqueue, mq …; "" when it is ours or another's
	Filters   int    // of others for what arrives
	TCOffload bool   // the card takes over tc rules (hw-tc-offload)
	LRO       bool   // what arrives is merged past recognition (large-receive-offload)
}

// A Flowtable forwards packets past the qdiscs of its devices.
type Flowtable struct {
	Table, Name string
	Devices     []string
}

// Inspect reads what all interfaces of the calling thread's namespace are, in
// the order of their numbers, and who has put what on them. It needs no
// privileges. Devices of shaperd's own are left out.
func Inspect() ([]LinkInfo, error) {
	d, err := Open(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	links, err := d.linkList()
	if err != nil {
		return nil, err
	}
	states, err := d.socket.observe()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	eth, err := openEthtool()
	if err != nil {
		return nil, err
	}
	defer eth.close()
	var list []LinkInfo
	for _, l := range links {
		if newDevice(l).servant() {
			continue
		}
		a := l.Attrs()
		info := LinkInfo{
			Name: a.Name, Kind: l.Type(), MTU: a.MTU, GSO: int(a.GSOMaxSize), GRO: int(a.GROMaxSize), Queues: a.NumTxQueues,
			Up: a.RawFlags&unix.IFF_UP != 0, Loopback: a.RawFlags&unix.IFF_LOOPBACK != 0,
			Master: names[a.MasterIndex], XDP: a.Xdp != nil && a.Xdp.Attached,
		}
		if l.Type() != "veth" { // whose other end is no lower interface
			info.Lower = names[a.ParentIndex]
		}
		info.addState(cmp.Or(states[int32(a.Index)], &state{}))
		info.TCOffload, info.LRO = eth.feature(a.Name, "hw-tc-offload"), eth.feature(a.Name, "rx-lro")
		list = append(list, info)
	}
	return list, nil
}

func (i *LinkInfo) addState(st *state) {
	i.Ours, i.Filters = st.root() != nil, st.shared
	switch {
	case i.Ours:
	case st.other.kernelsOwn():
		i.RootKind = st.other.kind
	default:
		i.Root = fmt.Sprintf("%s %s", st.other.kind, st.other.handle)
	}
}

// Flowtables lists those of the calling thread's namespace. It needs
// CAP_NET_ADMIN.
func Flowtables() (list []Flowtable, err error) {
	c := openNftables()
	if c == nil {
		return nil, nil // no nftables, and so no flowtables
	}
	defer func() { _ = c.CloseLasting() }()
	tables, err := c.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list nftables: %w", err)
	}
	for _, t := range tables {
		found, err := c.ListFlowtables(t)
		if err != nil {
			return nil, fmt.Errorf("list flowtables: %w", err)
		}
		for _, f := range found {
			list = append(list, Flowtable{t.Name, f.Name, f.Devices})
		}
	}
	return list, nil
}
