package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics holds all that the daemon exports. Its methods may be called from
// any goroutine.
type Metrics struct {
	registry *prometheus.Registry
	reloads  *prometheus.CounterVec
	lastOK   prometheus.Gauge
	lastTime prometheus.Gauge
}

// Build says what program this is.
type Build struct {
	Version  string
	Revision string // of the source; may be empty
}

// New makes the daemon's metrics over functions that return a snapshot of the
// relays, each with a name of its own, and of the kernel datapath. They are
// called once per scrape, and scrapes may overlap.
func New(build Build, relays func() []Relay, kernel func() Kernel) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shaperd_config_reloads_total", Help: "Reloads of the policy file, by result.",
		}, []string{"result"}),
		lastOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "shaperd_config_last_reload_successful", Help: "Whether the policy file was in order when it was last read: 1 or 0.",
		}),
		lastTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "shaperd_config_last_reload_success_timestamp_seconds", Help: "When the policy in force was read, in Unix time.",
		}),
	}
	m.reloads.WithLabelValues("success")
	m.reloads.WithLabelValues("failure")
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "shaperd_build_info", Help: "The program that runs; the value is 1.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.registry.MustRegister(collector{relays, kernel}, m.reloads, m.lastOK, m.lastTime, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Started notes that a policy came into force when the daemon started.
func (m *Metrics) Started(at time.Time) {
	m.lastOK.Set(1)
	m.lastTime.Set(float64(at.UnixMilli()) / 1e3)
}

// Reloaded notes that a reload put a policy into force.
func (m *Metrics) Reloaded(at time.Time) {
	m.reloads.WithLabelValues("success").Inc()
	m.Started(at)
}

// ReloadFailed notes that a reload left the policy as it was.
func (m *Metrics) ReloadFailed() {
	m.reloads.WithLabelValues("failure").Inc()
	m.lastOK.Set(0)
}
