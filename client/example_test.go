package client_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"shaperd/internal/admission/api"
)

// exampleDaemon answers on a unix socket, for examples.
func exampleDaemon() (path string, stop func()) {
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	api.Mount(mux, newAdmission())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	return path, func() { s.Close(); os.RemoveAll(dir) }
}
