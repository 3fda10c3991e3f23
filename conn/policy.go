package conn

import (
	"net/netip"

	"shaperd/classify"
	"shaperd/shaper"
)

// A policy is a Config made ready for the loop. It is never changed; an update
// puts another in its place.
type policy struct {
	*Config
	classifier *classify.Classifier
	leaves     map[string]*leaf
	anyLeaf    *leaf // what a link without classes has
	needDSCP   bool  // some rule looks at it
	acceptBuf  int   // the listener's receive buffer in bytes, 0 for the kernel's choice
}

// A leaf is what the relay knows of one class.
type leaf struct {
	name             string
	mark             Mark
	upload, download shaper.Rate // the most it may reach, 0 for no limit
}

func newPolicy(cfg *Config) (*policy, error) {
	classifier, err := classify.Compile(cfg.Rules)
	if err != nil {
		return nil, err
	}
	p := &policy{Config: cfg, classifier: classifier, leaves: map[string]*leaf{}}
	p.anyLeaf = &leaf{upload: cfg.Upload.Rate, download: cfg.Download.Rate}
	p.eachLeaf(cfg.Upload.Classes, cfg.Upload.Rate, func(l *leaf, r shaper.Rate) { l.upload = r })
	p.eachLeaf(cfg.Download.Classes, cfg.Download.Rate, func(l *leaf, r shaper.Rate) { l.download = r })
	for _, r := range cfg.Rules.List {
		p.needDSCP = p.needDSCP || len(r.Match.DSCP) > 0
	}
	fastest := p.anyLeaf.upload
	for _, l := range p.leaves {
		if l.upload == 0 {
			fastest = 0
			break
		}
		fastest = max(fastest, l.upload)
	}
	if fastest > 0 {
		p.acceptBuf = earlyBuffer(fastest)
	}
	return p, nil
}

// eachLeaf calls note for every leaf of the tree with the slowest ceil on its path.
func (p *policy) eachLeaf(classes []shaper.Class, ceil shaper.Rate, note func(*leaf, shaper.Rate)) {
	for i := range classes {
		c := &classes[i]
		own := c.Ceil
		if c.Budget > 0 {
			own = c.Budget // what it has of it changes often, and buffers do not
		}
		most := slower(slower(ceil, own), p.Limits.PerSession)
		if !c.Leaf() {
			p.eachLeaf(c.Children, most, note)
			continue
		}
		l := p.leaves[c.Name]
		if l == nil {
			l = &leaf{name: c.Name, mark: p.Marks[c.Name]}
			p.leaves[c.Name] = l
		}
		note(l, most)
	}
}

// slower returns the smaller of two rates of which 0 means no limit.
func slower(a, b shaper.Rate) shaper.Rate {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// classify returns the class that takes a session from the client src, with the given DSCP, to dst.
func (p *policy) classify(src, dst netip.AddrPort, dscp classify.DSCP) *leaf {
	flow := classify.Flow{Proto: classify.TCP, Src: src, Dst: dst, DSCP: dscp}
	name, _ := p.classifier.Classify(&flow)
	if l := p.leaves[name]; l != nil {
		return l
	}
	return p.anyLeaf
}
