package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// A collector turns snapshots into metrics at each scrape. Both datapaths use
// the same names for what means the same, with a label to tell them apart.
type collector struct {
	Sources
	daemon func(chan<- prometheus.Metric)
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range definitions {
		ch <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	relays, kernel := c.Relays(), c.Kernel()
	for i := range relays {
		collectRelay(ch, &relays[i])
	}
	collectKernel(ch, &kernel)
	if s := c.Sharing(); s != nil {
		collectSharing(ch, s)
	}
	for _, a := range c.Admission() {
		collectAdmission(ch, &a)
	}
	c.daemon(ch)
}

// A sink sends metrics that share their label values.
type sink struct {
	ch     chan<- prometheus.Metric
	labels []string
}

func (s sink) value(d *Definition, v float64, label ...string) {
	s.ch <- d.value(v, slices.Concat(s.labels, label)...)
}

// rate exports bits per second as bytes per second.
func (s sink) rate(d *Definition, r shaper.Rate) { s.value(d, float64(r)/8) }

func (s sink) counter(d *Definition, n uint64) { s.value(d, float64(n)) }

func (s sink) counters(d *Definition, byLabel map[string]uint64) {
	for label, n := range byLabel {
		s.value(d, float64(n), label)
	}
}

func (s sink) wait(d *Definition, h *shaper.WaitHistogram) {
	cumulative := make(map[float64]uint64, len(shaper.WaitBounds))
	var n uint64
	for i, bound := range shaper.WaitBounds {
		n += h.Counts[i]
		cumulative[bound.Seconds()] = n
	}
	n += h.Counts[len(shaper.WaitBounds)]
	s.ch <- prometheus.MustNewConstHistogram(d.desc, n, h.Sum.Seconds(), cumulative, s.labels...)
}
