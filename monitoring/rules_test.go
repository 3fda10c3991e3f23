package monitoring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesFile = "prometheus/shaperd.rules.yml"
	rulesTest = "prometheus/shaperd_test.yml"
)

// An alert is one of the rules, as the file has it.
type alert struct {
	name, expr, severity, summary, description, runbook string
}

var (
	inAlert = regexp.MustCompile(`(?m)^ {6}- alert: (\w+)\n((?: {8}.*\n)+)`)
	expr    = regexp.MustCompile(`(?m)^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)`)
)

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	text := read(t, rulesFile)
	for _, m := range inAlert.FindAllStringSubmatch(text, -1) {
		field := func(key string) string {
			_, value, _ := strings.Cut(m[2], key+": ")
			value, _, _ = strings.Cut(value, "\n")
			return strings.Trim(value, `"{}`)
		}
		e := expr.FindStringSubmatch(m[2])
		if e == nil {
			t.Fatalf("%s has no expr", m[1])
		}
		all = append(all, alert{m[1], e[1] + e[2], field("severity"), field("summary"), field("description"), field("runbook")})
	}
	if n := strings.Count(text, "expr:"); n != len(all) || n == 0 {
		t.Fatalf("read %d of %d rules", len(all), n)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool is from Debian's package prometheus; make test installs it.
func promtool(t *testing.T, args ...string) (out string, ok bool) {
	t.Helper()
	text, err := exec.Command("promtool", args...).CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(text), err == nil
}

func TestPrometheusTakesRulesAndConfiguration(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", rulesFile},
		{"check", "config", "prometheus/prometheus.yml"},
	} {
		if out, ok := promtool(t, args...); !ok {
			t.Errorf("promtool %s:\n%s", strings.Join(args, " "), out)
		}
	}
}

func TestAlertsFireWhenTheyShouldAndNotElse(t *testing.T) {
	if out, ok := promtool(t, "test", "rules", rulesTest); !ok {
		t.Error(out)
	}
}

// Alerts that never fire, and alerts that always do, fail a test for each of them.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	text := read(t, rulesFile)
	for _, tt := range []struct{ name, expr, failure string }{
		{"never", "vector(0) > 1", `exp:\[\n[^\]]*\], \n\s+got:\[\]`},
		{"always", "vector(1)", `exp:\[\], \n\s+got:\[\n`},
	} {
		dir := t.TempDir()
		broken := expr.ReplaceAllString(text, "        expr: "+tt.expr+"\n")
		broken = regexp.MustCompile(` {8}for: .*\n`).ReplaceAllString(broken, "")
		for name, text := range map[string]string{"shaperd.rules.yml": broken, "shaperd_test.yml": read(t, rulesTest)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := promtool(t, "test", "rules", filepath.Join(dir, "shaperd_test.yml"))
		for _, a := range alerts(t) {
			if !regexp.MustCompile(`alertname: ` + a.name + `, time: \w+, \n\s+` + tt.failure).MatchString(out) {
				t.Errorf("%s: no test fails when it %s fires", a.name, tt.name)
			}
		}
	}
}

func TestRulesNameWhatIsExported(t *testing.T) {
	for _, a := range alerts(t) {
		for _, wrong := range wrongIn(a.expr) {
			t.Errorf("%s: %s", a.name, wrong)
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.summary+a.description, -1) {
			if wrong := wrongIn("sum by (" + m[1] + ") (" + a.expr + ")"); len(wrong) > 0 {
				t.Errorf("%s: $labels.%s: %v", a.name, m[1], wrong)
			}
		}
	}
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	page := read(t, "../docs/monitoring.md")
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.severity) {
			t.Errorf("%s has the severity %q", a.name, a.severity)
		}
		if a.summary == "" || a.description == "" {
			t.Errorf("%s has the summary %q and the description %q", a.name, a.summary, a.description)
		}
		if want := "docs/monitoring.md#" + strings.ToLower(a.name); a.runbook != want {
			t.Errorf("%s has the runbook %q, want %q", a.name, a.runbook, want)
		}
		if !strings.Contains(page, "\n### "+a.name+"\n") {
			t.Errorf("docs/monitoring.md has no section ### %s", a.name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Shaperd\w+)$`).FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(alerts(t), func(a alert) bool { return a.name == m[1] }) {
			t.Errorf("docs/monitoring.md explains %s, which is no alert", m[1])
		}
	}
}
