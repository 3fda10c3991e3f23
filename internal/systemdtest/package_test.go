//go:build systemd

package systemdtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the repository, where packages are made.
const root = "../.."

// pack makes a package of the format in the folder, with the version or, when
// that is empty, the commit's, and returns its path.
func pack(format, folder, version string) (string, error) {
	packing.Lock() // it stages in one folder
	defer packing.Unlock()
	cmd := exec.Command("sh", "packaging/build.sh", format, folder)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "VERSION="+version)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", &packError{err, stderr.String() + string(out)}
	}
	return strings.TrimSpace(string(out)), nil
}

type packError struct {
	error
	output string
}

func (e *packError) Error() string { return "make a package: " + e.error.Error() + "\n" + e.output }

var (
	packing sync.Mutex
	shared  string // folder, for all tests
	deb     = sync.OnceValues(func() (string, error) { return pack("deb", shared, "") })
	newer   = sync.OnceValues(func() (string, error) { return pack("deb", shared, "99.1") })
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if shared, err = os.MkdirTemp("", "shaperd"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(shared)
		return m.Run()
	}())
}

// built returns the path of a Debian package of this commit.
func built(t *testing.T) string {
	t.Helper()
	path, err := deb()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// output returns what a command of the host prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What both packages have, and what belongs to whom; a pattern for each line of
// the list, which is that of ls -l.
var contents = []string{
	`drwxr-xr-x .*/etc/shaperd/?`,
	`-rw-r----- .*root[/ ]+shaperd .*/etc/shaperd/shaperd.yaml`,
	`-rwxr-xr-x .*root[/ ]+root .*/usr/bin/shaperd`,
	`-rw-r--r-- .*/usr/lib/systemd/system/shaperd.service`,
	`-rw-r--r-- .*/usr/lib/systemd/system/shaperd.socket`,
	`-rw-r--r-- .*/usr/lib/sysusers.d/shaperd.conf`,
	`-rw-r--r-- .*/usr/share/bash-completion/completions/shaperd`,
	`-rw-r--r-- .*/usr/share/doc/shaperd/changelog.gz`,
	`-rw-r--r-- .*/usr/share/doc/shaperd/copyright`,
	`-rw-r--r-- .*/usr/share/doc/shaperd/examples/reference.yaml`,
	`-rw-r--r-- .*/usr/share/doc/shaperd/examples/shaperd.schema.json`,
	`-rw-r--r-- .*/usr/share/fish/vendor_completions.d/shaperd.fish`,
	`-rw-r--r-- .*/usr/share/man/man1/shaperd.1.gz`,
	`-rw-r--r-- .*/usr/share/zsh/site-functions/_shaperd`,
}

func wantContents(t *testing.T, list string) {
	t.Helper()
	for _, pattern := range contents {
		if !regexp.MustCompile(`(?m)^` + pattern + `$`).MatchString(list) {
			t.Errorf("the package has no %s", pattern)
		}
	}
	// A folder of the system that a package brings along must be as systems have it.
	for _, odd := range regexp.MustCompile(`(?m)^d(?:.{9}).*$`).FindAllString(list, -1) {
		if !strings.HasPrefix(odd, "drwxr-xr-x") {
			t.Errorf("a folder that is not 0755: %s", odd)
		}
	}
	if t.Failed() {
		t.Log(list)
	}
}

func TestDebianPackageHasWhatItNeeds(t *testing.T) {
	t.Parallel()
	path := built(t)
	wantContents(t, output(t, "dpkg-deb", "--contents", path))
	control := t.TempDir()
	output(t, "dpkg-deb", "--control", path, control)
	conffiles, err := os.ReadFile(filepath.Join(control, "conffiles"))
	if err != nil || string(conffiles) != policyFile+"\n" {
		t.Errorf("conffiles are %q, %v", conffiles, err)
	}
	for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
		info, err := os.Stat(filepath.Join(control, script))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("script %s: %v, %v", script, info, err)
		}
		output(t, "sh", "-n", filepath.Join(control, script))
	}
	for _, field := range []string{"Maintainer", "Description", "Section", "Priority", "Installed-Size"} {
		if output(t, "dpkg-deb", "--field", path, field) == "" {
			t.Errorf("no %s", field)
		}
	}
	version := strings.TrimSpace(output(t, "dpkg-deb", "--field", path, "Version"))
	output(t, "dpkg", "--validate-version", version)
	if got, want := filepath.Base(path), "shaperd_"+version+"_"; !strings.HasPrefix(got, want) {
		t.Errorf("the file is %s, want %s…", got, want)
	}
	if unit := output(t, "sh", "-c", `dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/lib/systemd/system/shaperd.service`, path); strings.Contains(unit, "/usr/local") {
		t.Errorf("the unit runs something in /usr/local:\n%s", unit)
	}
}

func TestRPMHasWhatItNeeds(t *testing.T) {
	t.Parallel()
	path, err := pack("rpm", t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	wantContents(t, output(t, "rpm", "-qp", "--list", "--verbose", path))
	if got := output(t, "rpm", "-qp", "--configfiles", path); got != policyFile+"\n" {
		t.Errorf("configuration files are %q", got)
	}
	flags := strings.Split(output(t, "rpm", "-qp", "--queryformat", `[%{FILENAMES} %{FILEFLAGS:fflags}\n]`, path), "\n")
	if !slices.Contains(flags, policyFile+" cn") { // configuration, not replaced
		t.Errorf("the policy's flags are in %q", flags)
	}
	scripts := output(t, "rpm", "-qp", "--scripts", path)
	for _, script := range []string{"preinstall", "postinstall", "preuninstall", "postuninstall"} {
		if !strings.Contains(scripts, script+" scriptlet") {
			t.Errorf("no script %s", script)
		}
	}
}

// From two clones, by users with other habits.
func TestSameCommitMakesTheSameBytes(t *testing.T) {
	t.Parallel()
	var sums [2]string
	for i, habit := range []string{"umask 022; TZ=UTC", "umask 077; TZ=Asia/Tokyo"} {
		clone := filepath.Join(t.TempDir(), "shaperd")
		output(t, "git", "clone", "--quiet", root, clone)
		output(t, "install", "-D", filepath.Join(root, "bin/nfpm"), filepath.Join(clone, "bin/nfpm"))
		output(t, "sh", "-c", habit+` exec make -s -C "$0" deb rpm`, clone)
		sums[i] = output(t, "sh", "-c", `cd "$0"/bin && sha256sum *.deb *.rpm`, clone)
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") != 2 {
		t.Errorf("two clones of a commit made\n%s%s", sums[0], sums[1])
	}
}
