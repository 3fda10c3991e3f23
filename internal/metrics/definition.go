package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// A Type is what Prometheus calls a metric's type.
type Type string

// The types in use.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// A Datapath says which datapaths have a metric.
type Datapath string

// Whose metrics there are. The daemon's own are of no datapath.
const (
	OfNone   Datapath = ""
	OfBoth   Datapath = "both"
	OfRelay  Datapath = "relay"
	OfKernel Datapath = "kernel"
)

// A Definition is all that is said of a metric, to Prometheus and in the docs.
type Definition struct {
	Name     string
	Type     Type
	Labels   []string // in the order of their values
	Datapath Datapath
	Unit     string
	Help     string // a sentence
	Advice   string // what the docs add to Help; may be empty

	desc *prometheus.Desc
}

// Definitions returns all metrics of ours, in the order of the docs.
func Definitions() []Definition {
	all := make([]Definition, len(definitions))
	for i, d := range definitions {
		all[i] = *d
		all[i].desc, all[i].Labels = nil, slices.Clone(d.Labels)
	}
	return all
}

// definitions is what define was called for.
var definitions []*Definition

// define adds a metric to the table.
func define(of Datapath, t Type, subsystem, name, unit, help string, labels []string) *Definition {
	d := &Definition{Name: "shaperd_" + subsystem + "_" + name, Type: t, Labels: labels, Datapath: of, Unit: unit, Help: help}
	d.desc = prometheus.NewDesc(d.Name, help, labels, nil)
	definitions = append(definitions, d)
	return d
}

// advise adds a sentence that is for the docs only.
func (d *Definition) advise(sentence string) *Definition {
	d.Advice = sentence
	return d
}

// value is a value of a counter or a gauge.
func (d *Definition) value(v float64, labels ...string) prometheus.Metric {
	t := prometheus.GaugeValue
	if d.Type == Counter {
		t = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(d.desc, t, v, labels...)
}
