package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
		"status", "set", "sessions", "reload", "drain", "log-level", "doctor", "top", "take", "pace"} {
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
		{"rum", `unknown command "rum"; did you mean run?` + "\nusage: shaperd COMMAND\ntry: shaperd --help"},
		{"statsu --json", `unknown command "statsu"; did you mean status?`},
		{"paln shaperd.yaml", "did you mean plan?"},
		{"expl", "did you mean explain?"},
		{"take loc --requests 1 ls -l /srv", "unknown flag -l\nwrite \"--\" before the command: shaperd take loc --requests 1 -- ls -l /srv\nusage: shaperd take CLASS [flags] [-- COMMAND]...\n"},
		{"take take --requests 1 take --vrebose", "\nwrite \"--\" before the command: shaperd take take --requests 1 -- take --vrebose\n"},
		{"take loc --requests 1 ls", `"ls" is an argument too many` + "\nwrite \"--\" before the command: shaperd take loc --requests 1 -- ls\n"},
		{"take loc --requests 1 -l", "unknown flag -l\nusage: "},
		{"teleport", `unknown command "teleport"` + "\nusage"},
		{"help rum", `unknown command "rum"; did you mean run?`},
		{"help config shema", `unknown command "config shema"; did you mean schema?`},
		{"config shema", `unknown command "config shema"; did you mean schema?` + "\nusage: shaperd config COMMAND"},
		{"config default extra", `default: "extra" is an argument too many`},
		{"completion bsh", `unknown command "completion bsh"; did you mean bash or zsh?`},
		{"--json status", "unknown flag --json: a command's flags come after it"},
		{"completion bash extra", `bash: "extra" is an argument too many`},
		{"run --confg x", "unknown flag --confg; did you mean --config?\nusage: shaperd run [flags]\ntry: shaperd run --help"},
		{"run --config", "--config has no value: write --config FILE"},
		{"run -c", "--config has no value: write --config FILE"},
		{"run -x", "unknown flag -x"},
		{"run shaperd.yaml", `run: "shaperd.yaml" is an argument too many: a policy file is given with --config`},
		{"doctor --config good.yaml", "unknown flag --config: the policy file is an argument: shaperd doctor FILE\nusage: shaperd doctor [FILE] [flags]"},
		{"plan -c good.yaml", "unknown flag -c: the policy file is an argument: shaperd plan FILE"},
		{"check --config=good.yaml", "unknown flag --config: the policy file is an argument: shaperd check FILE"},
		{"status --config good.yaml", "unknown flag --config\nusage"},
		{"check", "check: no FILE is given\nusage: shaperd check FILE... [flags]"},
		{"check --frobnicate good.yaml", "unknown flag --frobnicate\nusage"},
		{"explain", "explain: no FILE is given\nusage: shaperd explain FILE [flags]"},
		{"explain good.yaml bad.yaml --dst :22", `explain: "bad.yaml" is an argument too many`},
		{"explain good.yaml", "no flow is given: write what is known of it with --src, --dst"},
		{"explain good.yaml --json", "no flow is given"},
		{"explain good.yaml --src 1.2.3", `--src "1.2.3": write 192.0.2.1`},
		{"explain good.yaml --dst example.com:443", `--dst "example.com:443": names are not looked up: write an address, such as 192.0.2.1:443`},
		{"explain good.yaml --dst localhost", `--dst "localhost": names are not looked up: write an address, such as 192.0.2.1` + "\n"},
		{"explain good.yaml --dst 192.0.2.1:https", `--dst "192.0.2.1:https": a port is a number`},
		{"explain good.yaml --dst [2001:db8::1]:70000", "a port is a number up to 65535"},
		{"explain good.yaml --dst :https", "a port is a number"},
		{"explain good.yaml --proto tpc", "--proto"},
		{"explain good.yaml --dscp 64", "--dscp"},
		{"explain good.yaml --fwmark -1", "--fwmark"},
		{"explain good.yaml --pcap x --src 192.0.2.1", "--pcap brings its own flows"},
		{"explain good.yaml --pcap x --proto tcp", "--pcap brings its own flows"},
		{"man", "man: no DIR is given"},
		{"plan --json --tc", "give --json or --tc, not both"},
		{"plan a b", `plan: "b" is an argument too many` + "\nusage: shaperd plan [FILE] [flags]"},
		{"apply a b", `apply: "b" is an argument too many`},
		{"apply --confirm 60", `--confirm "60": write a time such as 90s or 1h`},
		{"apply --confirm -1s", "--confirm -1s: write a time such as 60s"},
		{"clear eth0", `clear: "eth0" is an argument too many`},
		{"doctor a b", `doctor: "b" is an argument too many`},
		{"doctor --json --verbose", "give --json or --verbose, not both"},
		{"demo --seconds many", `--seconds "many": write a whole number`},
		{"demo --seconds 1", "--seconds 1: at least"},
		{"demo --kernel --seconds 30", "give --kernel or --seconds, not both"},
		{"status extra", `status: "extra" is an argument too many`},
		{"sessions --limit all", `--limit "all": write a whole number`},
		{"set a b", `set: "b" is an argument too many`},
		{"set a --reset --rate 1mbit", "give --rate or --reset, not both"},
		{"drain", "drain: no RELAY is given"},
		{"log-level loud", `log level "loud": give debug, info, warn or error`},
		{"log-level debug info", `log-level: "info" is an argument too many`},
		{"reload now", `reload: "now" is an argument too many`},
		{"version --json=maybe", `--json "maybe": write true or false`},
		{"version 2", `version: "2" is an argument too many`},
		{"top --interval 100ms", "--interval 100ms: give 250ms or more"},
		{"top --interval soon", `--interval "soon": write a time such as 90s or 1h`},
		{"top --once -n 2", "give --once or --samples"},
		{"top -n -1", "--samples: give 0 or more"},
	} {
		got := output(t, 2, strings.Fields(tt.args)...)
		if !strings.HasPrefix(got, "shaperd: ") || !strings.Contains(got, tt.want) || !strings.Contains(got, "\nusage: shaperd") || !strings.Contains(got, "\ntry: shaperd") {
			t.Errorf("shaperd %s: %q, want %q and the usage", tt.args, got, tt.want)
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

// A policy may be checked on another host than the one that runs it.
func TestCheckWarnsOfFilesThatItCannotRead(t *testing.T) {
	there := file(t, "token", "0123456789abcdef")
	const text = `classes: [{name: all, default: true, rate: 1mbit, shared: true}]
admission:
  listen: 127.0.0.1:9478
  token_file: %s
shared: {redis: "redis://127.0.0.1", cluster: edge, password_file: %s}
`
	policy := file(t, "shaperd.yaml", fmt.Sprintf(text, there, "/nonexistent/password"))
	got := output(t, 0, "check", policy)
	want := policy + `:5:68: warning: password_file "/nonexistent/password": no such file or directory; write it on each host that runs the policy: shaperd does not start without
    5 | shared: {redis: "redis://127.0.0.1", cluster: edge, password_file: /nonexistent/password}
      |                                                                    ^^^^^^^^^^^^^^^^^^^^^
` + policy + ": in order\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("check prints\n%s\nwant\n%s", got, want)
	}
	if got := output(t, 0, "check", "--quiet", policy); got != "" {
		t.Errorf("check --quiet prints\n%s", got)
	}
	var all []checkResult
	if err := json.Unmarshal([]byte(output(t, 0, "check", "--json", policy)), &all); err != nil || !all[0].Valid || len(all[0].Warnings) != 1 || all[0].Warnings[0].Line != 5 {
		t.Errorf("check --json: %+v, %v", all, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got = output(t, 0, "check", file(t, "shaperd.yaml", fmt.Sprintf(text, pipe, "/dev/zero")))
	for _, want := range []string{`token_file "` + pipe + `": is a named pipe, not a regular file; name`, `password_file "/dev/zero": is a device, not`} {
		if !strings.Contains(got, want) {
			t.Errorf("check of a pipe and a device prints\n%s\nwant %s", got, want)
		}
	}
	policy = file(t, "shaperd.yaml", fmt.Sprintf(text, filepath.Dir(there), there))
	if got := output(t, 0, "check", policy); !strings.Contains(got, `:4:15: warning: token_file "`+filepath.Dir(there)+`": is a directory, not a regular file; name a file`) || strings.Count(got, "warning") != 1 {
		t.Errorf("check of a token that is a directory prints\n%s", got)
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
