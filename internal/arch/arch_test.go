package arch

import (
	"bytes"
	"fmt"
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
	"testing/fstest"
)

func TestRepositoryKeepsItsRules(t *testing.T) {
	broken, files, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatal("found no Go file")
	}
	for _, b := range broken {
		t.Error(b)
	}
}

// A rule that nothing can break checks nothing: each line here breaks one.
func TestEveryRuleCanBreak(t *testing.T) {
	const doc = "// Package x is.\npackage x\n"
	for _, tt := range []struct{ name, file, source, want string }{
		{"import upwards", "shaper/a.go", `import _ "shaperd/conn"`, `shaper may not import "shaperd/conn"`},
		{"import upwards in a test", "classify/a_test.go", `import _ "shaperd/shaper"`, `classify may not import "shaperd/shaper"`},
		{"import sideways", "conn/a.go", `import _ "shaperd/configs"`, `conn may not import "shaperd/configs"`},
		{"unknown package", "utils/a.go", ``, `utils is not in layers`},
		{"unknown package of ours", "conn/a.go", `import _ "shaperd/utils"`, `conn may not import "shaperd/utils"`},
		{"I/O in shaper", "shaper/a.go", `import _ "os"`, `shaper may not import "os"`},
		{"module in shaper", "shaper/a.go", `import _ "golang.org/x/sys/unix"`, `shaper may not import "golang.org/x/sys/unix"`},
		{"netlink elsewhere", "conn/a_test.go", `import _ "github.com/vishvananda/netlink/nl"`, `conn may not import "github.com/vishvananda/netlink/nl"`},
		{"cobra elsewhere", "internal/daemon/a.go", `import _ "github.com/spf13/cobra"`, `internal/daemon may not import "github.com/spf13/cobra"`},
		{"YAML elsewhere", "cmd/shaperd/a.go", `import _ "github.com/goccy/go-yaml/ast"`, `cmd/shaperd may not import`},
		{"contender in the product", "conn/a.go", `import _ "golang.org/x/time/rate"`, `conn may not import "golang.org/x/time/rate"`},
		{"socket call", "internal/daemon/a.go", "import \"golang.org/x/sys/unix\"\nvar _ = unix.SetsockoptInt", `internal/daemon may not use unix.SetsockoptInt`},
		{"renamed socket call", "configs/a.go", "import s \"syscall\"\nvar _ = s.Socket", `configs may not use syscall.Socket`},
		{"raw socket call", "internal/daemon/a.go", "import \"golang.org/x/sys/unix\"\nvar _ = unix.SYS_SENDTO", `may not use unix.SYS_SENDTO`},
		{"long file", "conn/a.go", strings.Repeat("\n", maxLines), "conn/a.go has 452 lines"},
		{"no doc.go", "netlink/a.go", ``, "netlink has no doc.go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{tt.file: {Data: []byte("package x\n" + tt.source + "\n")}}
			if tt.name != "no doc.go" {
				tree[path.Dir(tt.file)+"/doc.go"] = &fstest.MapFile{Data: []byte(doc)}
			}
			broken, _, err := check(tree)
			if err != nil {
				t.Fatal(err)
			}
			if len(broken) != 1 || !strings.Contains(broken[0], tt.want) {
				t.Errorf("got %q, want one that contains %q", broken, tt.want)
			}
		})
	}
}

func TestWhatIsAllowedPasses(t *testing.T) {
	tree := fstest.MapFS{
		"conn/doc.go":        {Data: []byte("// Package conn relays.\npackage conn\n")},
		"conn/a.go":          {Data: []byte("package conn\nimport (\n\"golang.org/x/sys/unix\"\n_ \"shaperd/shaper\"\n)\nvar _ = unix.Socket\n")},
		"conn/a_test.go":     {Data: []byte("package conn_test\nimport (\n_ \"golang.org/x/time/rate\"\n_ \"shaperd/conn\"\n)\n" + strings.Repeat("\n", maxLines))},
		"shaper/doc.go":      {Data: []byte("// Package shaper paces.\npackage shaper\nimport _ \"net/netip\"\n")},
		"tools/go.mod":       {Data: []byte("module other\n")},
		"tools/x/main.go":    {Data: []byte("package main\n")},
		"conn/testdata/x.go": {Data: []byte("not Go\n")},
	}
	broken, files, err := check(tree)
	if err != nil || len(broken) != 0 || files != 4 {
		t.Errorf("check = %q, %d files, %v, want none broken of 4 files", broken, files, err)
	}
}

// check returns the rules that the Go files below the root of tree break, and
// how many files there are.
func check(tree fs.FS) (broken []string, files int, err error) {
	packages := map[string]bool{} // by folder: has a documented doc.go
	err = eachFile(tree, func(name string, source []byte, file *ast.File) {
		files++
		dir := path.Dir(name)
		packages[dir] = packages[dir] || path.Base(name) == "doc.go" && file.Doc != nil
		broken = append(broken, checkFile(name, source, file)...)
	})
	for dir, documented := range packages {
		if !documented {
			broken = append(broken, fmt.Sprintf("%s has no doc.go with a package comment: %s", dir, docReason))
		}
		if _, known := layers[dir]; !known {
			broken = append(broken, fmt.Sprintf("%s is not in layers: say there what it may import, and why", dir))
		}
	}
	slices.Sort(broken)
	return broken, files, err
}

// eachFile calls visit with each Go file below the root of tree. Modules inside
// the module are not looked at.
func eachFile(tree fs.FS, visit func(name string, source []byte, file *ast.File)) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || exists(tree, name+"/go.mod")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err == nil {
			visit(name, source, file)
		}
		return err
	})
}

func exists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

func checkFile(name string, source []byte, file *ast.File) (broken []string) {
	dir := path.Dir(name)
	test := strings.HasSuffix(name, "_test.go")
	layer, known := layers[dir]
	system := map[string]string{} // local name of unix and syscall to the real one
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if imported == "syscall" || imported == "golang.org/x/sys/unix" {
			local := path.Base(imported)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			system[local] = path.Base(imported)
		}
		if ours, ok := strings.CutPrefix(imported, module); ok && known && ours != dir && !slices.Contains(layer.mayImport, ours) {
			broken = append(broken, fmt.Sprintf("%s: %s may not import %q: %s", name, dir, imported, layer.because))
		}
		for _, b := range bans {
			if (b.in == nil || matches(dir, b.in)) && !matches(dir, b.except) && (b.tests || !test) && matches(imported, b.imports) {
				broken = append(broken, fmt.Sprintf("%s: %s may not import %q: %s", name, dir, imported, b.because))
				break
			}
		}
	}
	if !test {
		if lines := bytes.Count(source, []byte("\n")); lines > maxLines {
			broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d: %s", name, lines, maxLines, maxLinesSince))
		}
		if !matches(dir, socketPackages) {
			broken = append(broken, checkSockets(name, file, system)...)
		}
	}
	return broken
}

// checkSockets finds the socket calls in file, in which system maps the names
// that unix and syscall are imported under.
func checkSockets(name string, file *ast.File, system map[string]string) (broken []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := use.X.(*ast.Ident)
		if !ok || system[pkg.Name] == "" {
			return true
		}
		if slices.ContainsFunc(socketCalls, func(call string) bool { return strings.HasPrefix(use.Sel.Name, call) }) {
			broken = append(broken, fmt.Sprintf("%s: %s may not use %s.%s: %s",
				name, path.Dir(name), system[pkg.Name], use.Sel.Name, socketReason))
		}
		return true
	})
	return broken
}
