package metrics

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const documentFile = "../../docs/metrics.md"

func TestDocumentIsOfTheseMetrics(t *testing.T) {
	old, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := document(string(old))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(documentFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(old) {
		t.Errorf("%s is out of date: go test ./internal/metrics -update writes its tables, which should be:\n%s", documentFile, text)
	}
}

// What a definition says twice, in its name and in its unit or type, must agree.
func TestUnitsAndTypesAgreeWithTheNames(t *testing.T) {
	ends := []struct{ name, unit string }{ // the longer first
		{"_bytes_per_second", "bytes/s"}, {"_bytes", "bytes"}, {"_packets", "packets"}, {"_sessions", "sessions"},
		{"_timestamp_seconds", "Unix time"}, {"_seconds", "seconds"},
	}
	for _, d := range Definitions() {
		if d.Unit == "" || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s has the unit %q and the help %q", d.Name, d.Unit, d.Help)
		}
		if (d.Type == Counter) != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s is a %s", d.Name, d.Type)
		}
		for _, e := range ends {
			if strings.HasSuffix(strings.TrimSuffix(d.Name, "_total"), e.name) {
				if d.Unit != e.unit {
					t.Errorf("%s has the unit %s, want %s", d.Name, d.Unit, e.unit)
				}
				break
			}
		}
	}
}

// Every metric of the table comes with a value, and none that is not in it.
func TestTableIsWhatIsExported(t *testing.T) {
	m := New(Build{}, everything)
	m.Started(time.Now())
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]int{} // in families
	for i, f := range families {
		if strings.HasPrefix(f.GetName(), "shaperd_") {
			exported[f.GetName()] = i
		}
	}
	for _, d := range Definitions() {
		i, ok := exported[d.Name]
		if !ok {
			t.Errorf("%s is not exported", d.Name)
			continue
		}
		f := families[i]
		delete(exported, d.Name)
		if got := strings.ToLower(f.GetType().String()); got != string(d.Type) {
			t.Errorf("%s is exported as a %s", d.Name, got)
		}
		datapaths := map[string]bool{}
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				if l.GetName() == "datapath" {
					datapaths[l.GetValue()] = true
				}
			}
		}
		want := map[Datapath]string{OfBoth: "map[kernel:true relay:true]", OfRelay: "map[relay:true]", OfKernel: "map[kernel:true]"}[d.Datapath]
		if slices.Contains(d.Labels, "datapath") && fmt.Sprint(datapaths) != want {
			t.Errorf("%s is exported by %v, and said to be of %s", d.Name, datapaths, d.Datapath)
		}
	}
	for name := range exported {
		t.Errorf("%s is not in the table", name)
	}
}

// tableMark stands in the document around each table and names what of the
// metrics' names comes after shaperd_.
var tableMark = regexp.MustCompile(`(?s)(<!-- table ([a-z ]+) -->\n).*?(<!-- end -->\n)`)

// document returns the text of docs/metrics.md with its tables written anew;
// what is between them stays. A metric that has no table is an error.
func document(text string) (string, error) {
	shown := map[*Definition]bool{}
	text = tableMark.ReplaceAllStringFunc(text, func(old string) string {
		parts := tableMark.FindStringSubmatch(old)
		var of []*Definition
		for subsystem := range strings.FieldsSeq(parts[2]) {
			for _, d := range definitions {
				if strings.HasPrefix(d.Name, "shaperd_"+subsystem+"_") {
					of, shown[d] = append(of, d), true
				}
			}
		}
		return parts[1] + table(of) + parts[3]
	})
	for _, d := range definitions {
		if !shown[d] {
			return "", fmt.Errorf("no table for %s", d.Name)
		}
	}
	return text, nil
}

func table(of []*Definition) string {
	var rows strings.Builder
	mixed := slices.ContainsFunc(of, func(d *Definition) bool { return d.Datapath == OfBoth })
	row := func(name, t, unit, datapath, meaning string) {
		if mixed {
			unit += " | " + datapath
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", name, t, unit, meaning)
	}
	row("metric", "type", "unit", "datapath", "meaning")
	row("---", "---", "---", "---", "---")
	for _, d := range of {
		meaning := d.Help
		if d.Advice != "" {
			meaning += " " + d.Advice
		}
		var own []string // labels that the others in the table do not have
		for _, l := range d.Labels {
			if slices.ContainsFunc(of, func(other *Definition) bool { return !slices.Contains(other.Labels, l) }) {
				own = append(own, "`"+l+"`")
			}
		}
		switch len(own) {
		case 0:
		case 1:
			meaning += " Label: " + own[0] + "."
		default:
			meaning += " Labels: " + strings.Join(own, ", ") + "."
		}
		row("`"+d.Name+"`", string(d.Type), d.Unit, string(d.Datapath), meaning)
	}
	return rows.String()
}
