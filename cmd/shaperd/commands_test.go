package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// output runs the command that args give, in testdata, and returns what it
// prints on both streams.
func output(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	t.Chdir(testdata)
	var out bytes.Buffer
	if code := report(run(t.Context(), args, strings.NewReader(""), &out, &out), &out); code != wantCode {
		t.Errorf("shaperd %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, wantCode, &out)
	}
	return out.String()
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "run", "check", "explain", "config", "config default", "version", "man", "completion", "demo", "plan", "apply", "clear",
		"status", "set", "sessions", "reload", "drain", "log-level", "doctor", "top"} {
		t.Run(command, func(t *testing.T) {
			got := output(t, 0, append(strings.Fields(command), "--help")...)
			golden(t, "help"+strings.ReplaceAll("-"+command, " ", "-")+".txt", got)
			if strings.Contains(got, "\t") {
				t.Error("a tab, whose width differs from terminal to terminal")
			}
		})
	}
}

func TestWrongUsageExitsWith2(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"rum", "unknown command \"rum\""},
		{"run --confg x", "unknown flag: --confg\ntry: shaperd run --help"},
		{"run extra", "unknown command \"extra\""},
		{"check", "requires at least 1 arg(s)"},
		{"explain", "accepts 1 arg(s)"},
		{"explain good.yaml --src 1.2.3", "--src \"1.2.3\""},
		{"explain good.yaml --proto tpc", "--proto"},
		{"explain good.yaml --dscp 64", "--dscp"},
		{"explain good.yaml --fwmark -1", "--fwmark"},
		{"explain good.yaml --pcap x --src 192.0.2.1", "--pcap brings its own flows"},
		{"man", "accepts 1 arg(s)"},
		{"doctor a b", "accepts at most 1 arg(s)"},
		{"top --interval 100ms", "--interval 100ms: give 250ms or more"},
		{"top --once -n 2", "give --once or --samples"},
		{"top -n -1", "--samples: give 0 or more"},
	} {
		got := output(t, 2, strings.Fields(tt.args)...)
		if !strings.HasPrefix(got, "shaperd: ") || !strings.Contains(got, tt.want) {
			t.Errorf("shaperd %s: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int
		args []string
	}{
		{"good", 0, []string{"good.yaml"}},
		{"good-json", 0, []string{"--json", "good.yaml"}},
		{"bad", 1, []string{"bad.yaml"}},
		{"bad-json", 1, []string{"--json", "bad.yaml"}},
		{"both", 1, []string{"good.yaml", "bad.yaml", "missing.yaml"}},
		{"interfaces", 0, []string{"interfaces.yaml"}},
		{"quiet", 1, []string{"--quiet", "good.yaml", "bad.yaml"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden(t, "check-"+tt.name+".txt", output(t, tt.code, append([]string{"check"}, tt.args...)...))
		})
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct{ name, args string }{
		{"first", "--dscp ef"},
		{"later", "--src 192.0.2.1:40000 --dst 198.51.100.9:443"},
		{"ipv6", "--src [2001:db8::1]:40000 --dst [2001:db8:1::2]:22"},
		{"marked", "--src 192.0.2.1 --dst 198.51.100.9 --proto udp --fwmark 0x10"},
		{"default", "--src 192.0.2.1:40000 --dst 198.51.100.9:9999"},
		{"json", "--json --src 192.0.2.1:40000 --dst 198.51.100.9:443"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden(t, "explain-"+tt.name+".txt", output(t, 0, append([]string{"explain", "good.yaml"}, strings.Fields(tt.args)...)...))
		})
	}
}

func TestBuiltInPoliciesAreInOrder(t *testing.T) {
	for _, name := range []string{"default", "reference"} {
		policy := file(t, name+".yaml", output(t, 0, "config", name))
		if got := output(t, 0, "check", "--quiet", policy); name == "default" && got != "" {
			t.Errorf("check of the %s policy: %s", name, got)
		}
	}
	if got := output(t, 0, "config", "schema"); !json.Valid([]byte(got)) {
		t.Error("the schema is no JSON")
	}
}

func TestVersionSaysWhatWasBuilt(t *testing.T) {
	if got := output(t, 0, "version"); !strings.HasPrefix(got, "shaperd ") || !strings.Contains(got, runtime.Version()) {
		t.Errorf("version: %q", got)
	}
	var b build
	if err := json.Unmarshal([]byte(output(t, 0, "version", "--json")), &b); err != nil || b.Version == "" || b.Go != runtime.Version() {
		t.Errorf("version --json: %+v, %v", b, err)
	}
}

func TestManWritesAPageForEachCommand(t *testing.T) {
	dir := t.TempDir()
	output(t, 0, "man", dir)
	for _, page := range []string{"shaperd", "shaperd-run", "shaperd-check", "shaperd-explain", "shaperd-config", "shaperd-version"} {
		text, err := os.ReadFile(filepath.Join(dir, page+".1"))
		if err != nil {
			t.Error(err)
		} else if !bytes.Contains(text, []byte(`.SH NAME`)) {
			t.Errorf("%s.1 is no man page:\n%s", page, text)
		}
	}
}

func TestCompletionKnowsTheCommands(t *testing.T) {
	if got := output(t, 0, "__complete", "ex"); !strings.HasPrefix(got, "explain\t") {
		t.Errorf("completion of ex: %q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := output(t, 0, "completion", shell); !strings.Contains(got, "shaperd") {
			t.Errorf("no completion for %s", shell)
		}
	}
}
