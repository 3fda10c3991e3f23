package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/metrics"
)

// pages returns the repository's Markdown files with their text.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bin" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" {
			text, err := os.ReadFile(filepath.Join("../..", name))
			found[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("found %d pages, %v", len(found), err)
	}
	return found
}

func TestLinksInTheDocsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join("../..", path.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

func TestMakeTargetsInTheDocsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllSubmatch(makefile, -1) {
		targets[string(m[1])] = true
	}
	named := regexp.MustCompile("(?m)(?:`|^|sudo |&& )make ((?:[a-z-]+ ?)+)")
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			for target := range strings.FieldsSeq(m[1]) {
				if !targets[target] {
					t.Errorf("%s says make %s, which is no target", page, target)
				}
			}
		}
	}
}

// The tables of docs/metrics.md are written from the same definitions, which internal/metrics tests.
func TestMetricsInTheDocsAreTheExportedOnes(t *testing.T) {
	exported := map[string]bool{}
	for _, d := range metrics.Definitions() {
		exported[d.Name] = true
	}
	named := regexp.MustCompile(`\bshaperd_\w+`)
	for page, text := range pages(t) {
		for _, name := range named.FindAllString(text, -1) {
			if !exported[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s names the metric %s, which is not exported", page, name)
			}
		}
	}
}

// Each reason that a session ended or a client was refused is explained, and no other.
func TestReasonsInTheDocsAreTheExportedOnes(t *testing.T) {
	text := pages(t)["docs/metrics.md"]
	var closed, refused []string
	for i := range conn.NumClosings {
		closed = append(closed, conn.Closing(i).String())
	}
	for i := range conn.NumRefusals {
		if why := conn.Refusal(i); why != conn.NotRefused {
			refused = append(refused, why.String())
		}
	}
	for metric, want := range map[string][]string{"closed": closed, "refused": refused} {
		_, table, _ := strings.Cut(text, "| `"+metric+"` reason |")
		table, _, _ = strings.Cut(table, "\n\n")
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
			for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
				got = append(got, m[1])
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("docs/metrics.md explains the reasons %q of %s, want %q", got, metric, want)
		}
	}
}

// Each example in the docs is a policy that loads, with what it leaves out added.
func TestPoliciesInTheDocsLoad(t *testing.T) {
	const (
		classes = "classes: [{name: all, default: true, rate: 1mbit}]\n"
		relays  = "relays: [{name: r, listen: ['127.0.0.1:1'], upstream: ['127.0.0.1:2'], upload: 100mbit, download: 100mbit}]\n"
	)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	found := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			found++
			policy := m[1]
			if !strings.Contains(policy, "classes:") {
				policy += classes
			}
			if !strings.Contains(policy, "relays:") {
				policy += relays
			}
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := configs.Load(file); err != nil {
				t.Errorf("%s has a policy with errors: %v\n%s", page, err, policy)
			}
		}
	}
	if found == 0 {
		t.Error("found no policy in the docs")
	}
}

// What the README shows of a terminal is what the program prints of the README's own policy.
func TestTerminalInTheReadmeIsTrue(t *testing.T) {
	readme := pages(t)["README.md"]
	dir := t.TempDir()
	program := filepath.Join(dir, "shaperd")
	build := []string{"build", "-o", program, "shaperd/cmd/shaperd"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		build = slices.Insert(build, 1, "-race") // as the tests are built: it is compiled already
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	policy := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readme)[1]
	wrong := strings.NewReplacer("2mbit ", "2mbps ", "priority: 7", "prioritty: 7").Replace(policy)
	for name, text := range map[string]string{"office.yaml": policy, "bad.yaml": wrong} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown := regexp.MustCompile("(?s)```console\n\\$ bin/shaperd (.*?)\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(shown) == 0 {
		t.Fatal("the README shows no terminal")
	}
	for _, m := range shown {
		cmd := exec.Command(program, strings.Fields(m[1])...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // a wrong policy is an error
		if string(out) != m[2] {
			t.Errorf("shaperd %s prints\n%s\nand the README shows\n%s", m[1], out, m[2])
		}
	}
}
