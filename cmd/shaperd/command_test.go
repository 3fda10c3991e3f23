package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// counting is a command that says which signals it gets. A line of its input has
// it ask shaperd to end it.
const counting = `i=0 q=0
trap 'i=$((i+1)); echo int $i.' INT
trap 'q=$((q+1)); echo quit $q.' QUIT
trap 'echo in all $i and $q.; exit 3' TERM
echo began.
while :; do read line && kill -TERM $PPID; done
`

// A terminal tells the command itself of ^C and ^\. Many, since two signals that
// come close together are one.
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
	}
	term.press("Enter")
	term.await(fmt.Sprintf("in all %d and %[1]d.", times), "ended with 3")
}

// Without a terminal nobody else tells the command.
func TestTakePassesSignalsOn(t *testing.T) {
	d := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	d.await("msg=ready")
	alone := func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if _, err := cmd.StdinPipe(); err != nil { // to which nobody writes
			t.Fatal(err)
		}
	}
	take := start(t, alone, "take", "api", "--requests", "1", "--socket", d.socket, "--", "sh", "-c", "exec >&2\n"+counting)
	take.await("began.")
	take.signal(unix.SIGINT)
	take.await("int 1.")
	take.signal(unix.SIGQUIT)
	take.await("quit 1.")
	take.signal(unix.SIGTERM)
	take.await("in all 1 and 1.")
	if code, said := take.exit(); code != 3 {
		t.Errorf("exit code %d, want the command's; %s", code, said)
	}
}
