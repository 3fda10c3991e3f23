package metrics

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics holds all that the daemon exports. Its methods may be called from
// any goroutine.
type Metrics struct {
	registry *prometheus.Registry
	build    Build

	mu      sync.Mutex
	reloads struct{ succeeded, failed int }
	lastOK  bool      // the policy file was in order when last read
	lastAt  time.Time // the policy in force was read; zero before the first
}

// Build says what program this is.
type Build struct {
	Version  string
	Revision string // of the source; may be empty
}

// Sources return snapshots. They are called once per scrape, and scrapes may overlap.
type Sources struct {
	Relays    func() []Relay // each with a name of its own
	Kernel    func() Kernel
	Sharing   func() *Sharing // nil where nothing is shared
	Admission func() []Admission
}

// New makes the daemon's metrics over the sources.
func New(build Build, s Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), build: build}
	m.registry.MustRegister(collector{s, m.collect},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// collect sends the daemon's own metrics.
func (m *Metrics) collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch <- configReloads.value(float64(m.reloads.succeeded), "success")
	ch <- configReloads.value(float64(m.reloads.failed), "failure")
	ch <- configOK.value(truth(m.lastOK))
	if !m.lastAt.IsZero() {
		ch <- configAt.value(float64(m.lastAt.UnixMilli()) / 1e3)
	}
	ch <- buildInfo.value(1, m.build.Version, m.build.Revision, runtime.Version())
}

// Started notes that a policy came into force when the daemon started.
func (m *Metrics) Started(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastOK, m.lastAt = true, at
}

// Reloaded notes that a reload put a policy into force.
func (m *Metrics) Reloaded(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reloads.succeeded++
	m.lastOK, m.lastAt = true, at
}

// ReloadFailed notes that a reload left the policy as it was.
func (m *Metrics) ReloadFailed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reloads.failed++
	m.lastOK = false
}
