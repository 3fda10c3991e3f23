// Package httpd is an HTTP server with bounds, for the daemon's small services:
//
//	srv := httpd.New(listener, handler, httpd.Limits{Connections: 64, Read: 5 * time.Second, Write: 30 * time.Second})
//	err := srv.Run(ctx)
//
// A client that sends nothing, reads nothing or sends too much is dropped, and
// there are never more than so many of them: one that is idle, or has said nothing
// yet, makes room for another, and where none is, others wait in the kernel's queue.
//
// A Server owns its listener: Run or Close releases it. The package knows
// nothing of what is served.
package httpd
