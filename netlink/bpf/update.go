package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The layouts of classifier.c.
type (
	owner struct{ Generation, Group, Side, Family uint8 }

	prefixKey struct {
		Bits    uint32
		Of      owner
		Address [16]byte
	}
	markKey struct {
		Of   owner
		Mark uint32
	}
	combination struct {
		Of   owner
		Sets [numKeys]uint16 // in the order of the keys
		_    uint16
	}
	decision struct{ Rule, Minor uint32 }
	settings struct {
		Control, Other uint32
		Fingerprint    [32]byte
	}
	groupValue struct {
		First, Keys  uint32
		SPort, DPort uint32
		Proto        [256]uint16
		DSCP         [64]uint16
	}
)

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of membarrier(2).
const membarrierGlobal = 1

// sides of a prefix.
const (
	sideSrc = iota
	sideDst
)

// sizes count what tables need of the maps that grow.
type sizes struct{ ports, prefixes, marks, combinations int }

func (t *Tables) size() (n sizes) {
	for i := range t.groups {
		g := &t.groups[i]
		for _, table := range []*[65536]uint16{g.sport, g.dport} {
			if table != nil {
				n.ports++
			}
		}
		n.prefixes += len(g.prefixes[sideSrc]) + len(g.prefixes[sideDst])
		n.marks += len(g.marks)
	}
	n.combinations = len(t.combinations)
	return n
}

// Fits reports whether the program's maps have room for the tables. Where they
// have not, another program has to be loaded.
func (p *Program) Fits(t *Tables) bool {
	need, m := t.size(), &p.maps
	return 2*need.ports <= int(m.Ports.MaxEntries()) && 2*need.prefixes <= int(m.Prefixes.MaxEntries()) &&
		2*need.marks <= int(m.Marks.MaxEntries()) && 2*need.combinations <= int(m.Combinations.MaxEntries())
}

// Update puts other tables, which must fit, into force: a packet is classified
// by the old ones or by the new ones. After an error the old ones are in force.
func (p *Program) Update(t *Tables) error {
	if !p.Fits(t) {
		return errors.New("the rules need larger maps than the classifier's program has")
	}
	m := &p.maps
	next := 1 - p.now&1
	err := p.forget(next) // what an update that failed has left
	if err == nil {
		err = p.write(t, next)
	}
	if err == nil {
		err = m.Generation.Put(uint32(0), next)
	}
	if err != nil {
		return fmt.Errorf("write the classifier's tables: %w", err)
	}
	old := p.now
	p.now = next
	// Packets on their way may still look at the old tables. This waits until none
	// does; where it cannot, they stay until the next update.
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno == 0 {
		return p.forget(old)
	}
	return nil
}

// write writes the tables as a generation that is not in force.
func (p *Program) write(t *Tables, gen uint32) error {
	m := &p.maps
	half := m.Ports.MaxEntries() / 2
	table := gen * half
	port := func(t *[65536]uint16) (uint32, error) {
		if t == nil {
			return 0, nil
		}
		at := table
		table++
		return at, m.Ports.Put(at, (*[131072]byte)(unsafe.Pointer(t))[:]) // numbers as the machine has them
	}
	e := &entries{}
	for i := range maxGroups {
		value := groupValue{First: 1<<32 - 1}
		if i < len(t.groups) {
			g := &t.groups[i]
			value = groupValue{First: uint32(g.first), Keys: g.keys, Proto: g.proto, DSCP: g.dscp}
			var errs [2]error
			value.SPort, errs[0] = port(g.sport)
			value.DPort, errs[1] = port(g.dport)
			if err := errors.Join(errs[:]...); err != nil {
				return err
			}
			of := owner{Generation: uint8(gen), Group: uint8(i)}
			for side, list := range g.prefixes {
				of.Side = uint8(side)
				for _, x := range list {
					e.prefixes.add(keyOf(of, x.Prefix), uint32(x.set))
				}
			}
			of.Side = 0
			for mark, set := range g.marks {
				e.marks.add(markKey{of, mark}, uint32(set))
			}
		}
		if err := m.Groups.Put(gen*maxGroups+uint32(i), &value); err != nil {
			return err
		}
	}
	for c, d := range t.combinations {
		c.Of.Generation = uint8(gen)
		e.combinations.add(c, d)
	}
	p.written[gen] = nil // only some of them, until all have been
	err := errors.Join(
		e.prefixes.put(m.Prefixes), e.marks.put(m.Marks), e.combinations.put(m.Combinations),
		m.Settings.Put(gen, &settings{uint32(t.control), uint32(t.other), t.fingerprint}))
	if err == nil {
		p.written[gen] = e
	}
	return err
}

func keyOf(of owner, p netip.Prefix) (k prefixKey) {
	const before = 8 * uint32(unsafe.Sizeof(owner{}))
	k.Of, k.Bits = of, before+uint32(p.Bits())
	if k.Of.Family = 6; p.Addr().Is4() {
		k.Of.Family = 4
	}
	copy(k.Address[:], p.Addr().AsSlice())
	return k
}

// A batch is written, or deleted, with as few calls as the kernel allows.
type batch[K, V any] struct {
	keys   []K
	values []V
}

func (b *batch[K, V]) add(k K, v V) {
	b.keys, b.values = append(b.keys, k), append(b.values, v)
}

func (b *batch[K, V]) put(m *ebpf.Map) error {
	if len(b.keys) == 0 {
		return nil
	}
	if n, err := m.BatchUpdate(b.keys, b.values, nil); err == nil && n == len(b.keys) {
		return nil
	}
	for i := range b.keys {
		if err := m.Put(&b.keys[i], &b.values[i]); err != nil {
			return err
		}
	}
	return nil
}

// entries are what one generation has in the maps whose keys say so.
type entries struct {
	prefixes     batch[prefixKey, uint32]
	marks        batch[markKey, uint32]
	combinations batch[combination, decision]
}

// forget deletes the entries of a generation that is not in force.
func (p *Program) forget(gen uint32) error {
	e := p.written[gen]
	p.written[gen] = nil
	if e == nil { // of another process, or of an update that failed
		e = &entries{}
		if err := errors.Join(
			e.prefixes.find(p.maps.Prefixes, func(k *prefixKey) bool { return uint32(k.Of.Generation) == gen }),
			e.marks.find(p.maps.Marks, func(k *markKey) bool { return uint32(k.Of.Generation) == gen }),
			e.combinations.find(p.maps.Combinations, func(k *combination) bool { return uint32(k.Of.Generation) == gen }),
		); err != nil {
			return err
		}
	}
	if err := errors.Join(e.prefixes.remove(p.maps.Prefixes), e.marks.remove(p.maps.Marks), e.combinations.remove(p.maps.Combinations)); err != nil {
		return err
	}
	p.written[gen] = &entries{}
	return nil
}

// find takes over the keys of m that are meant.
func (b *batch[K, V]) find(m *ebpf.Map, is func(*K) bool) error {
	var k K
	var v V
	each := m.Iterate()
	for each.Next(&k, &v) {
		if is(&k) {
			b.add(k, v)
		}
	}
	return each.Err()
}

// remove deletes the keys from m.
func (b *batch[K, V]) remove(m *ebpf.Map) error {
	if len(b.keys) == 0 {
		return nil
	}
	if n, err := m.BatchDelete(b.keys, nil); err == nil && n == len(b.keys) {
		return nil
	}
	for i := range b.keys {
		if err := m.Delete(&b.keys[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}
