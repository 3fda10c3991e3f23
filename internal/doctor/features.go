package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// A feature is a part of the kernel, by the name of its module.
type feature struct {
	name   string
	option string // of the kernel's configuration
	cost   string // of missing it
	bad    Verdict
	needed func(f *Facts) bool
}

func needsInterfaces(f *Facts) bool { some, _, _ := f.shapes(); return some }
func needsIngress(f *Facts) bool    { _, arriving, _ := f.shapes(); return arriving }
func needsClasses(f *Facts) bool    { _, _, classes := f.shapes(); return classes }

var features = []feature{
	{"sch_htb", "NET_SCH_HTB", "links cannot have classes", Problem, needsClasses},
	{"sch_tbf", "NET_SCH_TBF", "no hard caps, no steady classes", Problem, needsInterfaces},
	{"sch_fq_codel", "NET_SCH_FQ_CODEL", "classes have a bounded fifo: one greedy flow delays the others of its class", Info, needsInterfaces},
	{"sch_ingress", "NET_SCH_INGRESS", "what arrives cannot be shaped", Problem, needsIngress},
	{"ifb", "IFB", "what arrives cannot be shaped", Problem, needsIngress},
	{"cls_u32", "NET_CLS_U32", "what arrives cannot be shaped", Problem, needsIngress},
	{"act_mirred", "NET_ACT_MIRRED", "what arrives cannot be shaped", Problem, needsIngress},
	{"cls_bpf", "NET_CLS_BPF", "u32 filters classify: the cost grows with the rules", Warning, needsClasses},
}

func featureChecks() (list []check) {
	for i := range features {
		x := &features[i]
		list = append(list, check{"kernel", x.name, x.check})
	}
	return list
}

// check says whether the kernel has the feature: what it answered when it was
// tried, else what is written of it.
func (x *feature) check(f *Facts) []Finding {
	for _, tried := range f.Features {
		if tried.Name != x.name {
			continue
		}
		switch {
		case tried.Err == nil:
			return all(ok("%s works", x.name))
		case errors.Is(tried.Err, unix.EPERM):
			return all(x.written(f))
		case errors.Is(tried.Err, unix.ENOENT), errors.Is(tried.Err, unix.EOPNOTSUPP):
			return all(x.missing(f, x.name+" is missing"))
		}
		return all(x.missing(f, fmt.Sprintf("%s does not work: %v", x.name, tried.Err)))
	}
	return all(x.written(f))
}

// missing is as bad as the policy needs the feature.
func (x *feature) missing(f *Facts, found string) Finding {
	cure := "modprobe " + x.name
	if !f.exists("lib/modules/" + f.read("proc/sys/kernel/osrelease")) {
		cure = "a kernel with CONFIG_" + x.option
	}
	if !x.needed(f) {
		return info(found+"; this policy does not need it", "", "")
	}
	out := Finding{Verdict: x.bad, Found: found, Cost: x.cost, Cure: cure}
	if x.bad == Problem {
		out = out.stopping(allInterfaces)
	}
	return out
}

// written says what files tell, without asking the kernel.
func (x *feature) written(f *Facts) Finding {
	release := f.read("proc/sys/kernel/osrelease")
	switch {
	case f.exists("sys/module/" + x.name):
		return ok("%s is loaded", x.name)
	case f.lists("lib/modules/"+release+"/modules.builtin", x.name):
		return ok("%s is built in", x.name)
	case f.lists("lib/modules/"+release+"/modules.dep", x.name):
		return ok("%s is a module", x.name)
	}
	config := f.kernelConfig(release)
	switch value, known := configValue(config, "CONFIG_"+x.option); {
	case config == "":
		if !x.needed(f) {
			return ok("%s is not needed", x.name)
		}
		found := fmt.Sprintf("whether the kernel has %s is not known", x.name)
		if f.FeaturesErr != nil && !errors.Is(f.FeaturesErr, unix.EPERM) {
			return info(found, fmt.Sprintf("it could not be tried: %v", f.FeaturesErr), "")
		}
		return info(found, "", "run it as root: then it is tried")
	case known && value == "y":
		return ok("%s is built in", x.name)
	case known && value == "m":
		return x.missing(f, x.name+" is a module that is not installed")
	}
	return x.missing(f, x.name+" is missing")
}

// lists reports whether a list of modules has the named one.
func (f *Facts) lists(list, module string) bool {
	text := f.read(list)
	return strings.Contains(text, "/"+module+".ko") || strings.Contains(text, "/"+strings.ReplaceAll(module, "_", "-")+".ko")
}

// kernelConfig returns what the kernel was built with, "" where that is not written.
func (f *Facts) kernelConfig(release string) string {
	if text := f.read("boot/config-" + release); text != "" {
		return text
	}
	packed, err := fs.ReadFile(f.System, "proc/config.gz")
	if err != nil {
		return ""
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(r, 4<<20))
	if err != nil {
		return ""
	}
	return string(text)
}

func configValue(config, option string) (value string, known bool) {
	for line := range strings.Lines(config) {
		if rest, found := strings.CutPrefix(line, option+"="); found {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
