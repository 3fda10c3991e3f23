package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// An exitError is the exit code of a command that was run.
type exitError struct {
	code int
	err  error // to be said; nil for what the command has said itself
}

func (e exitError) Error() string { return fmt.Sprintf("the command returned %d: %v", e.code, e.err) }

// The exit codes of a command that did not begin, as shells have them.
const (
	cannotRun = 126
	notFound  = 127
)

// passedOn are the signals that the command gets too: those that end a program or
// tell it something. Those that stop one are not: a shell has to see us stop.
var passedOn = []os.Signal{
	unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCONT, unix.SIGWINCH,
}

// runCommand runs a command and passes on what it is signalled meanwhile. It
// returns an exitError when the command has ended: with its code, or as shells do
// 128 and the number of the signal that ended it.
func runCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	signals := make(chan os.Signal, 16)
	for _, sig := range passedOn {
		if !signal.Ignored(sig) { // as by nohup: the command is to ignore it too
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)
	run := exec.Command(args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = stdin, stdout, stderr
	if err := run.Start(); err != nil {
		return exitError{cannotRun, err} // it was found
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	for {
		select {
		case sig := <-signals:
			if !fromTerminal(sig) {
				_ = run.Process.Signal(sig) // it may have ended
			}
		case err := <-ended:
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				return err
			}
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return exitError{128 + int(status.Signal()), nil}
			}
			return exitError{exit.ExitCode(), nil}
		}
	}
}

// fromTerminal reports whether the command has the signal already: of ^C, ^\ and
// another size a terminal tells all of its foreground group, to which the command
// belongs as we do, and so does a shell of fg. Whether one came from these or from
// kill, nobody says; so in the foreground all count as the terminal's.
func fromTerminal(sig os.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, unix.SIGCONT:
	default:
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer terminal.Close()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
