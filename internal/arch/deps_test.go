package arch

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
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
	err = eachFile(os.DirFS("../.."), func(name string, source []byte, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") || bytes.HasPrefix(source, []byte("//go:build ")) {
			return // no test, or one of another make target
		}
		for _, program := range programs(file) {
			if found++; !path.IsAbs(program) && !slices.Contains(installed, program) && !slices.Contains(base, program) {
				t.Errorf("%s runs %s, which make test does not install: name it in tools/deps.sh", name, program)
			}
		}
	})
	if err != nil || found == 0 || len(installed) == 0 {
		t.Fatalf("%d programs of tests and %d of deps.sh found: %v", found, len(installed), err)
	}
}

func TestProgramsAreFound(t *testing.T) {
	tree := fstest.MapFS{"a.go": {Data: []byte(`package x; var _, _, _ = exec.Command("a", "b"), exec.CommandContext(ctx, "c"), other.Command("d")`)}}
	err := eachFile(tree, func(_ string, _ []byte, file *ast.File) {
		if got := programs(file); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("found %q", got)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// programs lists those that a file runs by a name in it.
func programs(file *ast.File) (list []string) {
	position := map[string]int{"Command": 0, "CommandContext": 1, "LookPath": 0} // of the name in the arguments
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		i, ok := position[f.Sel.Name]
		if from, is := f.X.(*ast.Ident); !ok || !is || from.Name != "exec" {
			return true
		}
		if text, ok := call.Args[i].(*ast.BasicLit); ok {
			name, _ := strconv.Unquote(text.Value)
			list = append(list, name)
		}
		return true
	})
	return list
}
