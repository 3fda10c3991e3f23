package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// programs of this machine that the test machine gets, with their libraries.
var programs = []string{"busybox", "dash", "ip", "tc", "iperf3"}

//go:embed init
var initScript []byte

// A testPackage is a Go package with tests.
type testPackage struct {
	path string // to import it
	dir  string // below the module's folder
}

// list returns the packages with tests that match the patterns, and the
// module's folder.
func list(patterns []string) (packages []testPackage, root string, err error) {
	const form = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Module.Dir}}\t{{.Dir}}{{end}}"
	cmd := exec.Command("go", append([]string{"list", "-tags=vm", "-f", form}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, "", fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		dir, err := filepath.Rel(fields[1], fields[2])
		if err != nil {
			return nil, "", err
		}
		packages, root = append(packages, testPackage{fields[0], dir}), fields[1]
	}
	if len(packages) == 0 {
		return nil, "", fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	return packages, root, nil
}

// build writes the initramfs: kernel modules, programs, the module's source
// for what tests read of it, and in each package's folder its test program.
// The machine runs these with the flags.
func build(file, kernel, root string, packages []testPackage, flags []string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	a := &archive{w: w, done: map[string]bool{}}

	var script strings.Builder
	for _, p := range packages {
		if err := addTest(a, p); err != nil {
			return err
		}
		fmt.Fprintf(&script, "run %s ./vm.test%s\n", quote(p.dir), quote(flags...))
	}
	return errors.Join(
		a.copyTree("src", root, ".git", "bin", "dist"),
		a.copyTree("lib/modules", filepath.Join(kernel, "lib/modules")),
		addPrograms(a),
		a.add("tests", 0o644, []byte(script.String())),
		a.add("init", 0o755, initScript),
		a.end(),
		w.Flush(),
	)
}

func addTest(a *archive, p testPackage) error {
	dir, err := os.MkdirTemp("", "vmtest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "vm.test")
	cmd := exec.Command("go", "test", "-c", "-tags=vm", "-ldflags=-s -w", "-o", program, p.path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", p.path, err, out)
	}
	return a.copy(path.Join("src", p.dir, "vm.test"), program)
}

var library = regexp.MustCompile(`(/\S+) \(0x`)

func addPrograms(a *archive) error {
	for _, name := range programs {
		file, err := exec.LookPath(name)
		if err != nil {
			return fmt.Errorf("%w (sh tools/deps.sh test-vm installs it)", err)
		}
		if err := a.copy("usr/sbin/"+name, file); err != nil {
			return err
		}
		out, _ := exec.Command("ldd", file).Output() // an error is a static program's, which needs none
		for _, m := range library.FindAllSubmatch(out, -1) {
			if err := a.copy(string(m[1]), string(m[1])); err != nil {
				return err
			}
		}
	}
	return nil
}

// quote returns words as the shell wants them.
func quote(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}
