package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// base are programs that every machine with Go and iproute2 has.
var base = []string{"go", "sh", "sleep", "tc"}

// make test installs what its tests run: on a new machine none of it is there.
func TestProgramsOfTheTestsAreInstalled(t *testing.T) {
	script, err := os.ReadFile("../../tools/deps.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, needs, _ := strings.Cut(string(script), "\ntest) needs='\n")
	needs, _, _ = strings.Cut(needs, "'")
	var installed []string
	for line := range strings.Lines(needs) {
		name, _, _ := strings.Cut(line, " ")
		installed = append(installed, name)
	}
	found := 0
	err = fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && (name == "tools" || name != "." && name[0] == '.') {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path.Join("../..", name))
		if err != nil || strings.HasPrefix(string(source), "//go:build ") {
			return err // tests of another make target
		}
		for _, program := range runs(t, source) {
			if found++; !path.IsAbs(program) && !slices.Contains(installed, program) && !slices.Contains(base, program) {
				t.Errorf("%s runs %s, which make test does not install: name it in tools/deps.sh", name, program)
			}
		}
		return nil
	})
	if err != nil || found == 0 || len(installed) == 0 {
		t.Fatalf("%d programs of tests and %d of deps.sh found: %v", found, len(installed), err)
	}
	if got := runs(t, []byte("package x\nvar _, _ = exec.Command(\"a\", \"b\"), exec.CommandContext(ctx, \"c\")")); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("finds %q", got)
	}
}

// runs lists the programs that a file runs by a name in it.
func runs(t *testing.T, source []byte) (programs []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{"Command": 0, "CommandContext": 1, "LookPath": 0}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		i, ok := at[f.Sel.Name]
		if from, is := f.X.(*ast.Ident); !ok || !is || from.Name != "exec" {
			return true
		}
		if text, ok := call.Args[i].(*ast.BasicLit); ok {
			name, _ := strconv.Unquote(text.Value)
			programs = append(programs, name)
		}
		return true
	})
	return programs
}
