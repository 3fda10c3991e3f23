package configs

import (
	"net/netip"
	"strconv"
	"strings"

	"shaperd/shaper"
)

// Admission says how programs ask for admission to classes.
type Admission struct {
	Listen    netip.AddrPort // besides the control socket; zero for nowhere
	TokenFile string         // of clients of Listen
	Keys      int            // of a class that may have a bucket at a time
	// Classes are those that carry traffic, and those of unit requests, with
	// what admission has of them.
	Classes []AdmissionClass
}

// An AdmissionClass is what programs may take of a class: its rate, else its
// ceil, and never more than its burst at once.
type AdmissionClass struct {
	Name   string
	Shared bool
	// Rate is 0 where it is a percentage and the policy does not say of what.
	Rate  shaper.Rate // of unit bytes
	Burst shaper.Size // of unit bytes
	// Of unit requests:
	PerHour  int64 // requests; 0 is unit bytes
	Requests int64 // that may come at once
}

// defaultKeys is how many keys of a class have a bucket where the policy does not say.
const defaultKeys = 65536

// admission adds what programs may take to the policy.
func (r *report) admission(p *Policy, f *fileSpec) {
	a := &f.Admission.v
	p.Admission = Admission{Listen: a.Listen.v.AddrPort, TokenFile: string(a.TokenFile.v), Keys: int(a.Keys.v)}
	if p.Admission.Keys == 0 {
		p.Admission.Keys = defaultKeys
	}
	switch {
	case a.Listen.given() && !a.TokenFile.given():
		r.wrong(a.Listen.at.key, "add token_file, such as token_file: /etc/shaperd/token", "everyone who reaches the address could take what classes have")
	case a.TokenFile.given() && !a.Listen.given():
		r.wrong(a.TokenFile.at.key, "add listen, or remove it", "the token is of the clients of an address, and there is none")
	}
	if !f.Classes.given() {
		p.Admission.Classes = []AdmissionClass{{Name: defaultClass, Rate: a.Rate.v.Rate, Burst: admissionBurst(a.Rate.v.Rate)}}
		return
	}
	p.Admission.add(r.moment.classes("admission", &f.Classes), a.Rate.v.Rate)
}

func (a *Admission) add(all *list[classSpec], whole shaper.Rate) {
	for i := range all.all {
		c := &all.all[i].v
		if c.Classes.given() {
			a.add(&c.Classes, whole)
			continue
		}
		limit := &c.Rate
		if !limit.given() {
			limit = &c.Ceil
		}
		out := AdmissionClass{Name: c.title(), Shared: bool(c.Shared.v)}
		if c.ofRequests() {
			out.PerHour, out.Requests = limit.v.perHour, c.Burst.v.count
			if out.Requests == 0 {
				out.Requests = max((out.PerHour+3599)/3600, 1)
			}
		} else {
			out.Rate, out.Burst = limit.v.of(whole), c.Burst.v.Size
			if out.Burst == 0 && out.Rate > 0 {
				out.Burst = admissionBurst(out.Rate)
			}
		}
		a.Classes = append(a.Classes, out)
	}
}

// admissionBurst is that of a class whose policy gives none: what a second earns,
// since programs ask for more at a time than a link sends in one turn.
func admissionBurst(r shaper.Rate) shaper.Size {
	if r == 0 {
		return 0
	}
	return max(shaper.Size(r/8), anyBurst)
}

// requests checks a class of unit requests, which has no traffic on any link.
func (w *classWalk) requests(c *classSpec, at *node, depth int) {
	for key, at := range map[string]*node{
		"match": c.Match.at, "ceil": c.Ceil.at, "mode": c.Mode.at, "priority": c.Priority.at, "default": c.Default.at,
		"mark": c.Mark.at, "fwmark": c.Fwmark.at, "classes": c.Classes.at,
	} {
		if at != nil {
			w.wrong(at.key, "remove it", "class %q counts requests, which programs ask for: it has no %s", c.title(), key)
		}
	}
	switch {
	case depth > 1:
		w.wrong(at.place, "move it to the top", "class %q counts requests and cannot share the bytes of another class", c.title())
	case !c.Rate.given():
		w.wrong(at.place, "add rate, such as rate: 100/s", "class %q admits nobody: it has no rate", c.title())
	}
}

// units checks that the amounts of a class are of its unit.
func (w *classWalk) units(c *classSpec) {
	rates, bursts := []*value[share]{&c.Rate, &c.Ceil}, []*value[burst]{&c.Burst}
	for i := range c.Schedule.all {
		t := &c.Schedule.all[i].v
		rates, bursts = append(rates, &t.Rate, &t.Ceil), append(bursts, &t.Burst)
	}
	for _, s := range rates {
		switch {
		case !s.ok() || c.Unit.wrong:
		case c.ofRequests() && s.v.perHour == 0:
			w.wrong(s.at.place, "write how many, such as 100/s, 100/m or 100/h", "class %q counts requests, and %s is a rate of bits", c.title(), quote(s.v.text))
		case !c.ofRequests() && s.v.perHour > 0:
			w.wrong(s.at.place, "write a rate such as 20mbit, or add unit: requests", "class %q counts bytes, and %s is a rate of requests", c.title(), quote(s.v.text))
		}
	}
	for _, b := range bursts {
		switch {
		case !b.ok() || c.Unit.wrong:
		case c.ofRequests() && b.v.count == 0:
			w.wrong(b.at.place, "write how many, such as 200", "class %q counts requests, and %s is a size", c.title(), b.v.Size)
		case !c.ofRequests() && b.v.count > 0:
			b.wrong = true
			w.wrong(b.at.place, "write "+shaper.Size(b.v.count).String()+" if bytes are meant", `burst "%d": it has no unit`, b.v.count)
		}
	}
}

func (c *classSpec) ofRequests() bool { return c.Unit.ok() && bool(c.Unit.v) }

// A unit is what a class counts: requests, or else bytes.
type unit bool

func (*unit) format() format {
	return format{what: "bytes or requests", example: "requests", enum: []string{"bytes", "requests"}}
}

func (u *unit) parse(text string) error {
	if *u = text == "requests"; !*u && text != "bytes" {
		return unknown(text, "unit", u.format().enum)
	}
	return nil
}

// A burst is a size, or a number of requests.
type burst struct {
	size
	count int64
}

func (*burst) format() format {
	f := new(size).format()
	return format{what: f.what, example: f.example, pattern: strings.Replace(f.pattern, "^", "^[0-9]+$|^", 1), number: [2]int64{1, maxCount}}
}

func (b *burst) parse(text string) error {
	if strings.Trim(text, "0123456789") != "" || text == "" {
		return b.size.parse(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxCount {
		return textErrorf("write at most 1000000000", "it is too large")
	}
	if n == 0 {
		return b.size.parse(text)
	}
	b.count = n
	return nil
}

// perHour reads a rate of requests, such as 100/s.
func perHour(text string) (n int64, ok bool, err error) {
	number, per, found := strings.Cut(text, "/")
	hours, known := map[string]int64{"s": 3600, "m": 60, "h": 1}[per]
	switch {
	case !found || number == "" || strings.Trim(number, "0123456789.") != "":
		return 0, false, nil // a rate of bits or bytes, or nothing of either
	case !known || strings.Contains(number, "."):
		return 0, true, textErrorf("write a whole number of requests as in 100/s, 100/m or 100/h", "it is no rate of requests")
	}
	n, err = strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || n > maxCount:
		return 0, true, textErrorf("write at most 1000000000", "it is too large")
	case n == 0:
		return 0, true, textErrorf("write how many may come", "nobody could ever come")
	}
	return n * hours, true, nil
}

// A keyCount is how many keys may have a bucket.
type keyCount int

const maxKeyCount = 10_000_000

func (*keyCount) format() format {
	return format{what: "a whole number", example: "65536", number: [2]int64{1, maxKeyCount}}
}

func (k *keyCount) parse(text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > maxKeyCount {
		return textErrorf("write 1 to 10000000", "it is not from 1 to 10000000")
	}
	*k = keyCount(n)
	return nil
}
