package configs

import (
	_ "embed"
	"fmt"
	"io"
	"os"
)

// The built-in texts. Callers must not change them.
var (
	// DefaultText is the policy that Default returns.
	//go:embed default.yaml
	DefaultText []byte
	// ReferenceText is a policy that has every key, each explained.
	//go:embed reference.yaml
	ReferenceText []byte
	// SchemaText is the JSON Schema of policy files.
	//go:embed shaperd.schema.json
	SchemaText []byte
)

// Load reads a policy file. Mistakes in it are Errors; a file that cannot be
// read is an error that wraps the system's.
func Load(path string) (*Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1)) // more is refused
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	p, err := Parse(path, text)
	if p != nil {
		p.Modified = info.ModTime()
	}
	return p, err
}

// Default returns the built-in policy: a SOCKS5 proxy on loopback.
func Default() (*Policy, error) { return Parse("built-in", DefaultText) }

// Parse reads a policy from the text of a file; name is what errors call it.
// Rates are those outside of all schedules: At has those of a time.
// Either everything is right, or there is no policy and the error is Errors:
// all mistakes, or the first 200; only the first of a text that is no YAML.
func Parse(name string, text []byte) (*Policy, error) {
	r := newReport(name)
	p := &Policy{Name: name}
	if root := r.readYAML(text); root != nil {
		f := new(value[fileSpec])
		f.decode(r, root, "the policy")
		r.policy(p, f)
		r.eachMoment(p, f)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// policy turns what the file says into p, and reports what does not fit together.
func (r *report) policy(p *Policy, f *value[fileSpec]) {
	if !f.ok() {
		return
	}
	r.classes(p, &f.v.Classes)
	r.places(p, &f.v)
	p.Metrics = f.v.Metrics.v.Listen.v.AddrPort
	p.Page = p.Metrics.IsValid() && !f.v.Metrics.v.Page.v.off
	p.KeepOnExit = f.v.OnExit.v.keep
	p.Admin = f.v.Admin.v.values()
	r.shared(p, &f.v)
	if !f.v.Relays.given() && !f.v.Interfaces.given() && !f.v.Admission.given() {
		r.wrong(place{1, 1, 1}, "add relays, interfaces or admission", "the policy has no relays, no interfaces and no admission: it would do nothing")
	}
}

// places checks where the policy is enforced, and adds it to p.
func (r *report) places(p *Policy, f *fileSpec) {
	r.interfaces(p, f)
	r.relays(p, f)
	r.admission(p, f)
}
