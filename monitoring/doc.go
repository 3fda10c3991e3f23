// Package monitoring holds what people load into Prometheus and Grafana:
// alerts (prometheus/shaperd.rules.yml) with their tests, a configuration to
// start from, and a dashboard (grafana/shaperd.json). docs/monitoring.md says
// how they are used.
//
// The package has no code to import. Its tests have promtool check the rules
// and run their tests, compare what rules and dashboard name with the table of
// internal/metrics, and put every query of the dashboard to a real Prometheus
// that scrapes a real shaperd:
//
//	go test ./monitoring
package monitoring
