// Package daemon puts the parts together: it turns a policy into relays and
// metrics, runs them, reloads the policy, and ends them.
//
//	err := daemon.Run(ctx, daemon.Options{
//		Load:    func() (*configs.Policy, error) { return configs.Load(path) },
//		Log:     daemon.NewLogger(os.Stderr, slog.LevelInfo),
//		OnReady: func(s daemon.Serving) { fmt.Println(s.Relays) },
//	})
//
// A start and a reload take the same two steps. prepare does all that can fail:
// it reads the policy, binds what is new, and has each running relay prepare
// its update. commit cannot fail. So a policy comes into force as a whole or
// not at all, and no session is dropped.
//
// The goroutine that calls Run owns the daemon's state and acts on signals:
// SIGHUP reloads; SIGTERM and SIGINT drain the relays, and the second of them
// ends at once. Everything else is a task with a goroutine of its own. When one
// task fails, all are ended, and Run returns its error.
//
// The package shapes nothing and prints nothing: that is for conn and for the
// command.
package daemon
