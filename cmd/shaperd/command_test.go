package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// counting is a command that says which signals it gets. A line of its input has
// it ask shaperd to end it.
const counting = `i=0 q=0 w=0
trap 'i=$((i+1)); echo int $i.' INT
trap 'q=$((q+1)); echo quit $q.' QUIT
trap 'w=$((w+1)); echo winch $w.' WINCH
trap 'echo in all $i, $q and $w.; exit 3' TERM
for s in HUP USR1 USR2 ALRM CONT; do trap "echo $s." $s; done
echo began.
while :; do read line && kill -TERM $PPID; done
`

// A terminal tells the command itself of ^C, ^\ and another size. Many, since two
// signals that come close together are one.
func TestTakeLeavesTheTerminalsSignalsToTheTerminal(t *testing.T) {
	d := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	d.await("msg=ready")
	// The shell that the terminal runs is to outlive the signals.
	term := inTerminal(t, "trap : INT QUIT; "+program+" take api --requests 1 --socket "+d.socket+" -- sh "+file(t, "counting", counting))
	term.await("began.")
	const times = 10
	for i := range times {
		term.press(`C-c`)
		term.await(fmt.Sprintf("int %d.", i+1))
		term.press(`C-\`)
		term.await(fmt.Sprintf("quit %d.", i+1))
		term.tmux("resize-window", "-x", fmt.Sprint(81+i), "-y", "24")
		term.await(fmt.Sprintf("winch %d.", i+1))
	}
	term.press("Enter")
	term.await(fmt.Sprintf("in all %d, %[1]d and %[1]d.", times), "ended with 3")
}

// takeCounting has a take run counting in a session of its own, without a terminal,
// and returns when it has begun. Within is what starts it, if anything.
func takeCounting(t *testing.T, within ...string) *process {
	t.Helper()
	d := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	d.await("msg=ready")
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP) // where the tests ignore it, as by nohup, what they start does not
	t.Cleanup(func() { signal.Stop(caught) })
	take := start(t, func(cmd *exec.Cmd) {
		if len(within) > 0 {
			cmd.Path, cmd.Args = within[0], append(within, cmd.Args...)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if _, err := cmd.StdinPipe(); err != nil { // to which nobody writes
			t.Fatal(err)
		}
	}, "take", "api", "--requests", "1", "--socket", d.socket, "--", "sh", "-c", "exec >&2\n"+counting)
	t.Cleanup(func() { _ = unix.Kill(-take.cmd.Process.Pid, unix.SIGKILL) }) // the command too, where take has left it
	take.await("began.")
	return take
}

// Without a terminal nobody else tells the command.
func TestTakePassesSignalsOn(t *testing.T) {
	take := takeCounting(t)
	for _, one := range []struct {
		sig  syscall.Signal
		said string
	}{
		{unix.SIGINT, "int 1."},
		{unix.SIGQUIT, "quit 1."},
		{unix.SIGWINCH, "winch 1."},
		{unix.SIGHUP, "HUP."},
		{unix.SIGUSR1, "USR1."},
		{unix.SIGUSR2, "USR2."},
		{unix.SIGALRM, "ALRM."},
		{unix.SIGCONT, "CONT."},
		{unix.SIGTERM, "in all 1, 1 and 1."},
	} {
		take.signal(one.sig)
		take.await(one.said)
	}
	if code, said := take.exit(); code != 3 {
		t.Errorf("exit code %d, want the command's; %s", code, said)
	}
}

// What is ignored, as by nohup, the command ignores too.
func TestTakeLeavesIgnoredSignalsIgnored(t *testing.T) {
	take := takeCounting(t, "/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`)
	take.signal(unix.SIGHUP)
	take.signal(unix.SIGTERM)
	if code, said := take.exit(); code != 3 || strings.Contains(said, "HUP.") {
		t.Errorf("exit code %d, want the command's, which has had no HUP; %s", code, said)
	}
}

// As shells do, and before anything is taken where it can be seen so early.
func TestTakeSaysWhyACommandDoesNotRun(t *testing.T) {
	d := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	d.await("msg=ready")
	plain := file(t, "plain", "#!/bin/sh\n")
	broken := file(t, "broken", "#!/no/interpreter\n")
	if err := os.Chmod(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		code    int
		taken   uint64
	}{
		{plain, 126, 0},
		{filepath.Dir(plain), 126, 0},
		{plain + ".not", 127, 0},
		{"no-such-command", 127, 0},
		{broken, 126, 1},
	} {
		if got := output(t, tt.code, "take", "api", "--requests", "1", "--socket", d.socket, "--", tt.command); !strings.Contains(got, tt.command) {
			t.Errorf("%s: take prints %q", tt.command, got)
		}
		if got := d.status().Admission[0]; got.Class != "api" || got.Granted != tt.taken {
			t.Errorf("%s: %+v, want %d granted", tt.command, got, tt.taken)
		}
	}
}
