// Package admin is the control socket: HTTP with JSON over a unix socket, for
// those whom the socket's file mode lets in.
//
//	l, err := admin.Listen(admin.Socket{Path: "/run/shaperd/shaperd.sock", Mode: 0o660})
//	if err != nil {
//		return err // somebody else answers there, and who
//	}
//	srv := admin.NewServer(l, daemon, log, more)
//	if err := l.Place(); err != nil { // clients find it from now on
//		return err
//	}
//	err = srv.Run(ctx)
//
// A Backend does what is asked; the package knows the requests, the answers and
// their limits. openapi.yaml describes them. Rates are in bits per second, sizes
// in bytes, times in RFC 3339.
//
// A Client asks. Commands use it, and so may programs that are written in Go.
//
// The listener owns the socket's file and removes it when it is closed.
package admin
