package configs

// interfaces checks the interfaces and adds them to the policy.
func (r *report) interfaces(p *Policy, f *fileSpec) {
	named := map[string]int{}
	for i := range f.Interfaces.all {
		entry := &f.Interfaces.all[i]
		if !entry.ok() {
			continue
		}
		s := &entry.v
		unique(r, "interface", &s.Name, named)
		title := string(s.Name.v)
		out := Interface{Name: title, Line: entry.at.line, Overhead: int(s.Overhead.v), Queue: s.Queue.v.Duration, Takeover: bool(s.Takeover.v)}
		if s.Egress.given() {
			out.Egress = r.link(title+" egress", &s.Egress, &f.Classes)
		}
		if s.Ingress.given() {
			out.Ingress = r.link(title+" ingress", &s.Ingress, &f.Classes)
		}
		if !s.Egress.given() && !s.Ingress.given() {
			r.wrong(entry.at.place, "add egress, ingress or both", "interface %q has no rate", title)
		}
		p.Interfaces = append(p.Interfaces, out)
	}
}
