// Package metrics serves what the daemon measures to Prometheus over HTTP.
//
// Whoever owns the counters passes a function that returns a snapshot of them;
// it is called once per scrape:
//
//	m := metrics.New(metrics.Build{Version: "1.0"}, metrics.Sources{Relays: relays, …})
//	srv, err := metrics.Listen(addr, m.Handler(health))
//	if err != nil {
//		return err
//	}
//	err = srv.Run(ctx) // serves /metrics, /healthz and /readyz until ctx is done
//
// Health says whether the daemon is alive and ready; other pages can be served
// beside, on the same listener, by passing them to Handler. What there is of
// metrics stands in one table, table.go, from which docs/metrics.md is written:
//
//	go test ./internal/metrics -update
//
// Names begin with shaperd_ and units are Prometheus's base units: bytes,
// seconds, and bytes per second where the policy file has bits per second (so
// multiply by 8). Each value that a reason label can have is there from the
// start with 0, so that a first event shows as an increase.
//
// A Server owns its listener: Run or Close releases it. The package keeps no history.
package metrics
