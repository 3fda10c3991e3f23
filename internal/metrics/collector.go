package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// A collector turns snapshots into metrics at each scrape. Both datapaths use
// the same names for what means the same, with a label to tell them apart.
type collector struct {
	relays func() []Relay
	kernel func() Kernel
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(relayDescs, kernelDescs) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	relays, kernel := c.relays(), c.kernel()
	for i := range relays {
		collectRelay(ch, &relays[i])
	}
	collectKernel(ch, &kernel)
}

// A sink sends metrics that share their label values.
type sink struct {
	ch     chan<- prometheus.Metric
	labels []string
}

func (s sink) gauge(d *prometheus.Desc, v float64) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.labels...)
}

// rate exports bits per second as bytes per second.
func (s sink) rate(d *prometheus.Desc, r shaper.Rate) { s.gauge(d, float64(r)/8) }

func (s sink) counter(d *prometheus.Desc, n uint64, label ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), slices.Concat(s.labels, label)...)
}

func (s sink) counters(d *prometheus.Desc, byLabel map[string]uint64) {
	for label, n := range byLabel {
		s.counter(d, n, label)
	}
}

func (s sink) wait(d *prometheus.Desc, h *shaper.WaitHistogram) {
	cumulative := make(map[float64]uint64, len(shaper.WaitBounds))
	var n uint64
	for i, bound := range shaper.WaitBounds {
		n += h.Counts[i]
		cumulative[bound.Seconds()] = n
	}
	n += h.Counts[len(shaper.WaitBounds)]
	s.ch <- prometheus.MustNewConstHistogram(d, n, h.Sum.Seconds(), cumulative, s.labels...)
}
