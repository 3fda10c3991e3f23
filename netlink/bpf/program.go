package bpf

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// object is classifier.c, compiled.
//
//go:embed classifier.o
var object []byte

// least is how many entries a map has room for at least, so that most changes fit.
const least = 1024

// A Program is the classifier in the kernel. Whoever has it must close it;
// filters that it is attached to keep it in the kernel. It is not safe for
// concurrent use, but for the packets.
type Program struct {
	program *ebpf.Program
	maps    maps
	now     uint32      // generation in force
	written [2]*entries // what each generation has in the maps; nil when that is not known
}

// maps are the program's, by their names in classifier.c.
type maps struct {
	Generation   *ebpf.Map `ebpf:"generation"`
	Settings     *ebpf.Map `ebpf:"settings"`
	Groups       *ebpf.Map `ebpf:"groups"`
	Ports        *ebpf.Map `ebpf:"ports"`
	Prefixes     *ebpf.Map `ebpf:"prefixes"`
	Marks        *ebpf.Map `ebpf:"marks"`
	Combinations *ebpf.Map `ebpf:"combinations"`
}

func (m *maps) all() []**ebpf.Map {
	return []**ebpf.Map{&m.Generation, &m.Settings, &m.Groups, &m.Ports, &m.Prefixes, &m.Marks, &m.Combinations}
}

// Load loads the program with its tables. Errors say which capability or part
// of the kernel is missing.
func Load(t *Tables) (*Program, error) {
	// Without the capabilities the library would learn that the kernel has no names
	// for maps, and remember that: Find knows the maps by their names.
	if err := Permitted(); err != nil {
		return nil, err
	}
	spec, err := specFor(t)
	if err != nil {
		return nil, err
	}
	var loaded struct {
		Program *ebpf.Program `ebpf:"classifier"`
		maps
	}
	if err := spec.LoadAndAssign(&loaded, nil); err != nil {
		return nil, describe(err)
	}
	p := &Program{program: loaded.Program, maps: loaded.maps, written: [2]*entries{{}, {}}}
	if err := p.Update(t); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// specFor is the program with maps large enough for the tables.
func specFor(t *Tables) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the classifier's program: %w", err)
	}
	need := t.size()
	spec.Maps["ports"].MaxEntries = 2 * room(need.ports, 2)
	spec.Maps["prefixes"].MaxEntries = 2 * room(need.prefixes, least)
	spec.Maps["marks"].MaxEntries = 2 * room(need.marks, least)
	spec.Maps["combinations"].MaxEntries = 2 * room(need.combinations, least)
	return spec, nil
}

// room is a size for n entries, with as much again to grow.
func room(n, least int) uint32 { return uint32(1) << bits.Len(uint(max(n, least)-1)) }

// describe says what is missing.
func describe(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("load the eBPF classifier: %w (needs CAP_BPF and CAP_PERFMON)", unix.EPERM)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("load the eBPF classifier: the kernel has no eBPF (CONFIG_BPF_SYSCALL), or is older than 5.13: %w", err)
	}
	return fmt.Errorf("load the eBPF classifier: %w", err)
}

// Close gives the program and its maps back, as far as no filter uses them.
func (p *Program) Close() error {
	errs := []error{p.program.Close()}
	for _, m := range p.maps.all() {
		errs = append(errs, (*m).Close())
	}
	return errors.Join(errs...)
}

// FD is the file descriptor for a filter's TCA_BPF_FD. It belongs to p.
func (p *Program) FD() int { return p.program.FD() }

// ID is the kernel's number of the program, as filters show it.
func (p *Program) ID() uint32 {
	info, err := p.program.Info()
	if err != nil {
		return 0
	}
	id, _ := info.ID()
	return uint32(id)
}

// Fingerprint is that of the tables in force.
func (p *Program) Fingerprint() ([32]byte, error) {
	var s settings
	if err := p.maps.Settings.Lookup(p.now, &s); err != nil {
		return [32]byte{}, fmt.Errorf("read the classifier's settings: %w", err)
	}
	return s.Fingerprint, nil
}

// Find returns the program that another process has left in the kernel, by its
// number. The kernel allows that only with CAP_SYS_ADMIN.
func Find(id uint32) (*Program, error) {
	program, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return nil, fmt.Errorf("find the eBPF program %d: %w", id, err)
	}
	p := &Program{program: program}
	if err := p.adopt(); err != nil {
		return nil, errors.Join(fmt.Errorf("take over the eBPF program %d: %w", id, err), p.Close())
	}
	return p, nil
}

// adopt finds the program's maps by their names, and the generation in force.
func (p *Program) adopt() error {
	info, err := p.program.Info()
	if err != nil {
		return err
	}
	ids, ok := info.MapIDs()
	if !ok {
		return errors.New("the kernel does not say which maps it has")
	}
	names := []string{"generation", "settings", "groups", "ports", "prefixes", "marks", "combinations"}
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return err
		}
		info, err := m.Info()
		if err != nil {
			return errors.Join(err, m.Close())
		}
		at := slices.Index(names, info.Name)
		if at < 0 {
			_ = m.Close() // read-only data, if any
			continue
		}
		*p.maps.all()[at] = m
	}
	for i, m := range p.maps.all() {
		if *m == nil {
			return fmt.Errorf("it has no map %s", names[i])
		}
	}
	return p.maps.Generation.Lookup(uint32(0), &p.now)
}

// Cost returns what the program takes for the frame, as the mean of so many runs.
func (p *Program) Cost(frame []byte, runs int) (time.Duration, error) {
	_, each, err := p.program.Benchmark(frame, runs, nil)
	return each, err
}
