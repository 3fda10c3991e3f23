package netlink

import (
	"strconv"
	"time"

	"github.com/vishvananda/netlink/nl"

	"shaperd/shaper"
)

const (
	kindFifo    = "bfifo"
	kindFqCodel = "fq_codel"
)

func hex(n uint16) string { return strconv.FormatUint(uint64(n), 16) }

// fifo is a queue that is bounded in bytes.
type fifo struct {
	limit shaper.Size
}

func (f fifo) kind() string                     { return kindFifo }
func (f fifo) encode() attrs                    { return native.AppendUint32(nil, uint32(f.limit)) }
func (f fifo) settle(options) options           { return f }
func (f fifo) fields() []Field                  { return []Field{{Name: "limit", Value: sizeText(f.limit)}} }
func decodeFifo(b []byte) fifo                  { return fifo{shaper.Size(u32At(b, 0))} }
func (d fqCodel) kind() string                  { return kindFqCodel }
func (d unknownOptions) kind() string           { return string(d) }
func (d unknownOptions) encode() attrs          { return nil }
func (d unknownOptions) fields() []Field        { return nil }
func (d unknownOptions) settle(options) options { return d }

// unknownOptions are those of a kind that no plan has, in a place that is ours.
type unknownOptions string

// fqCodel is a fair queue of flows, each kept short.
type fqCodel struct {
	limit    uint32        // packets
	target   time.Duration // acceptable waiting time
	interval time.Duration
	quantum  uint32 // bytes a round
	ecn      bool
}

func (d fqCodel) fields() []Field {
	list := []Field{
		{Name: "limit", Value: decimal(int64(d.limit))},
		{Name: "target", Value: microseconds(d.target)},
		{Name: "interval", Value: microseconds(d.interval)},
		{Name: "quantum", Value: decimal(int64(d.quantum))},
	}
	if d.ecn {
		return append(list, Field{Name: "ecn"})
	}
	return append(list, Field{Name: "noecn"})
}

func microseconds(d time.Duration) string { return decimal(d.Microseconds()) + "us" }

func (d fqCodel) encode() (a attrs) {
	a.u32(nl.TCA_FQ_CODEL_LIMIT, d.limit)
	a.u32(nl.TCA_FQ_CODEL_TARGET, uint32(d.target.Microseconds()))
	a.u32(nl.TCA_FQ_CODEL_INTERVAL, uint32(d.interval.Microseconds()))
	a.u32(nl.TCA_FQ_CODEL_QUANTUM, d.quantum)
	ecn := uint32(0)
	if d.ecn {
		ecn = 1
	}
	a.u32(nl.TCA_FQ_CODEL_ECN, ecn)
	return a
}

func decodeFqCodel(b []byte) (d fqCodel) {
	attributes(b, func(typ uint16, value []byte) {
		n := u32At(value, 0)
		switch typ {
		case nl.TCA_FQ_CODEL_LIMIT:
			d.limit = n
		case nl.TCA_FQ_CODEL_TARGET:
			d.target = time.Duration(n) * time.Microsecond
		case nl.TCA_FQ_CODEL_INTERVAL:
			d.interval = time.Duration(n) * time.Microsecond
		case nl.TCA_FQ_CODEL_QUANTUM:
			d.quantum = n
		case nl.TCA_FQ_CODEL_ECN:
			d.ecn = n != 0
		}
	})
	return d
}

// settle: the kernel counts in units of 1,024 ns, and cuts.
func (d fqCodel) settle(want options) options {
	if w, ok := want.(fqCodel); ok {
		if (w.target - d.target).Abs() <= 2*time.Microsecond {
			d.target = w.target
		}
		if (w.interval - d.interval).Abs() <= 2*time.Microsecond {
			d.interval = w.interval
		}
	}
	return d
}
