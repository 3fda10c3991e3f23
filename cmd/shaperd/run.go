package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/daemon"
)

const runHelp = `Run serves the relays of a policy, and keeps its interfaces shaped by the kernel,
until it is told to end.

Without --config the policy is ` + policyFile + ` where there is one,
else the built-in policy, which needs no privileges.

Signals: HUP reads the policy again. What it changes comes into force without
dropping a session, or, if anything is wrong with it, not at all; "shaperd
reload" does the same and says how it went. TERM and INT
(Ctrl-C) stop accepting and let the sessions end, up to timeouts.drain, then
remove what shapes in the kernel, unless on_exit is keep. The second of them ends
at once, and leaves the kernel shaping, as a crash does. The next start adopts
what it finds.

It tells systemd when it is ready, reloads and stops, answers its watchdog, and
raises its own limit of open files as far as it may.

The control socket, over which it is asked and told, is --socket, else
admin.socket of the policy, else the environment variable SHAPERD_SOCKET, else
` + service + `, or for other users than root shaperd.sock in
$XDG_RUNTIME_DIR.`

func newRunCmd() *cobra.Command {
	var file, socket string
	var verbose bool
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Serve the relays and interfaces of a policy",
		Long:    runHelp,
		Example: "  shaperd run\n  shaperd run --config shaperd.yaml\n  kill -HUP $(pidof shaperd)    # after an edit",
		RunE: func(cmd *cobra.Command, _ []string) error {
			given, err := adminAt(socket)
			if err != nil {
				return usageError{err}
			}
			load := func() (*configs.Policy, error) {
				p, err := loadPolicy(file)
				if err == nil && socket != "" {
					p.Admin.Socket, p.Admin.Off = given.Socket, given.Off
				}
				return p, err
			}
			level := new(slog.LevelVar)
			if verbose {
				level.Set(slog.LevelDebug)
			}
			b := readBuild()
			o := daemon.Options{
				Load:    load,
				Log:     daemon.NewLogger(cmd.ErrOrStderr(), level),
				Level:   level,
				Version: b.Version, Revision: b.Revision,
			}
			if os.Getenv("JOURNAL_STREAM") == "" {
				o.OnReady = func(s daemon.Serving) { welcome(cmd.OutOrStdout(), s) }
				return daemon.Run(cmd.Context(), o)
			}
			err = daemon.Run(cmd.Context(), o)
			for _, e := range daemon.Reasons(err) { // with its priority, for the journal
				o.Log.Error("ended", "error", e)
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "policy `FILE`")
	cmd.Flags().StringVar(&socket, "socket", "", "`PATH` of the control socket, or off, whatever the policy says")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more: each failed connection")
	return cmd
}

// adminAt is where --socket puts the control socket.
func adminAt(socket string) (configs.Admin, error) {
	if socket == "" || socket == "off" {
		return configs.Admin{Off: socket == "off"}, nil
	}
	path, err := filepath.Abs(socket)
	if err != nil {
		return configs.Admin{}, err
	}
	return configs.AdminAt(path)
}

// welcome says what is served where, and how to try it.
func welcome(w io.Writer, s daemon.Serving) {
	style := styleOf(w)
	fmt.Fprintf(w, "shaperd serves the policy %s\n\n", s.Policy.Name)
	view, err := viewPolicy(s.Policy, s.Relays, time.Now())
	if err != nil {
		fmt.Fprintln(w, err) // cannot be: the daemon runs this policy
		return
	}
	view.print(w, style)
	fmt.Fprintln(w)
	for i, r := range s.Policy.Relays {
		if r.Kind != configs.SOCKS5 || len(s.Relays[i]) == 0 {
			continue
		}
		login := ""
		if len(r.Users) > 0 {
			login = "USER:PASSWORD@"
		}
		fmt.Fprintf(w, "try it    curl -x socks5h://%s%s http://example.com/\n", login, reachable(s.Relays[i][0]))
	}
	if s.Metrics.IsValid() {
		fmt.Fprintf(w, "metrics   http://%s/metrics\n", reachable(s.Metrics))
		if s.Policy.Page {
			fmt.Fprintf(w, "page      http://%s/\n", reachable(s.Metrics))
		}
	}
	if s.Control == "" {
		fmt.Fprintf(w, "reload    kill -HUP %d\n", os.Getpid())
		return
	}
	program, socket := word(os.Args[0]), "" // as it was called, it can be called again
	if s.Control != service {               // another terminal may have another environment
		socket = " --socket " + word(s.Control)
	}
	fmt.Fprintf(w, "watch     %[1]s status%[2]s\nreload    %[1]s reload%[2]s\n", program, socket)
}

// word writes text as one word of a shell's command.
func word(text string) string {
	if strings.ContainsAny(text, " \t\n'\"\\$`!*?[]{}()<>|&;#~") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// reachable is an address on this host at which a listener on a answers.
func reachable(a netip.AddrPort) netip.AddrPort {
	switch a.Addr() {
	case netip.IPv4Unspecified():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	case netip.IPv6Unspecified():
		return netip.AddrPortFrom(netip.IPv6Loopback(), a.Port())
	}
	return a
}
