package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A dashboard is what the tests look at of grafana/shaperd.json.
type dashboard struct {
	Inputs        []struct{ Name, PluginID string } `json:"__inputs"`
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type, Definition, AllValue string
	Multi, IncludeAll                bool
	Datasource                       source
	Query                            struct{ Query string }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Repeat                   string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               source
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		RefID, Expr string
		Datasource  source
	}
}

type source struct{ Type, UID string }

// theirs is the data source that Grafana asks for when the dashboard is imported.
var theirs = source{"prometheus", "${DS_PROMETHEUS}"}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("grafana/shaperd.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) == 0 {
		t.Fatal("the dashboard has no panel")
	}
	return d
}

// filled puts values in for the variables: each that is ours chosen as All.
func filled(d *dashboard, query string) string {
	var pairs []string
	for _, v := range d.Templating.List {
		pairs = append(pairs, "$"+v.Name, v.AllValue)
	}
	return strings.NewReplacer(append(pairs, "$__rate_interval", "1m", "$__range", "1h")...).Replace(query)
}

// labelValues is the query of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

func TestDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if len(d.Inputs) != 1 || d.Inputs[0].Name != "DS_PROMETHEUS" || d.Inputs[0].PluginID != "prometheus" {
		t.Errorf("inputs %+v", d.Inputs)
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type != "query" || v.Datasource != theirs || !v.Multi || !v.IncludeAll || v.AllValue == "" || v.Definition != v.Query.Query {
			t.Errorf("variable %+v", v)
		}
	}
	if want := []string{"instance", "datapath", "link", "class"}; !slices.Equal(names, want) {
		t.Errorf("variables %q, want %q", names, want)
	}
}

func TestPanelsHaveAPlaceAndAUnit(t *testing.T) {
	d := readDashboard(t)
	ids, titles := map[int]bool{}, map[string]bool{}
	for i, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" || p.Type != "row" && titles[p.Title] {
			t.Errorf("panel %d: the id %d or the title %q is there twice, or missing", i, p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, p.Type != "row"
		g := p.GridPos
		if g.W == 0 || g.H == 0 || g.X+g.W > 24 {
			t.Errorf("%s: at %+v", p.Title, g)
		}
		for _, other := range d.Panels[:i] {
			if o := other.GridPos; g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("%s covers %s", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource != theirs || len(p.Targets) == 0 || p.Type != "heatmap" && p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s: description %q, data source %v, %d queries, unit %q",
				p.Title, p.Description, p.Datasource, len(p.Targets), p.FieldConfig.Defaults.Unit)
		}
		for _, q := range p.Targets {
			if q.Datasource != theirs {
				t.Errorf("%s: query %s asks %v", p.Title, q.RefID, q.Datasource)
			}
			// Grafana's rates are in bits, as the policy's; the metrics are in bytes.
			bits := strings.Contains(q.Expr, "8 * ")
			if bits != (p.FieldConfig.Defaults.Unit == "bps") {
				t.Errorf("%s: the unit is %s of %s", p.Title, p.FieldConfig.Defaults.Unit, q.Expr)
			}
		}
	}
}

func TestDashboardNamesWhatIsExported(t *testing.T) {
	d := readDashboard(t)
	own := map[string]bool{}
	check := func(where, query string) {
		for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(query, -1) {
			if !own[m[1]] && m[1] != "__rate_interval" && m[1] != "__range" {
				t.Errorf("%s: no variable $%s before it", where, m[1])
			}
		}
		for _, wrong := range wrongIn(filled(&d, query)) {
			t.Errorf("%s: %s", where, wrong)
		}
	}
	for _, v := range d.Templating.List {
		m := labelValues.FindStringSubmatch(v.Definition)
		if len(m) != 3 || m[2] != v.Name {
			t.Fatalf("variable %s is %s", v.Name, v.Definition)
		}
		check("variable "+v.Name, fmt.Sprintf("sum by (%s) (%s)", m[2], m[1]))
		own[v.Name] = true
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			check(p.Title+" "+q.RefID, q.Expr)
		}
	}
}
