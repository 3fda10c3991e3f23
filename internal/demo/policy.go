package demo

import (
	_ "embed"

	"shaperd/classify"
	"shaperd/configs"
	"shaperd/conn"
)

//go:embed demo.yaml
var policyText []byte

// connections is how many each class has: what a class gets does not depend on it.
var connections = map[string]int{"interactive": 4, "web": 6, "backup": 2, "bulk": 20}

// loadPolicy returns the demo's relay. Its rules have the ports of demo.yaml.
func loadPolicy() (conn.Config, error) {
	p, err := configs.Parse("demo.yaml", policyText)
	if err != nil {
		return conn.Config{}, err
	}
	r := p.Relays[0]
	return conn.Config{
		Name: r.Name, Kind: conn.SOCKS5, Listen: r.Listen, Upload: r.Upload, Download: r.Download,
		Rules: p.Rules, Timeouts: conn.Timeouts(r.Timeouts),
	}, nil
}

// pointAt makes the rules that lead to a class match its servers' port.
func pointAt(rules classify.Rules, ports map[string]uint16) {
	for i := range rules.List {
		r := &rules.List[i]
		port := ports[r.Class]
		r.Match.DPort = []classify.PortRange{{First: port, Last: port}}
	}
}
