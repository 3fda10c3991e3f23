package storetest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Server is one redis-server.
type Server struct {
	t       testing.TB
	port    int
	options []string
	process *process
	client  *redis.Client // of the test itself
}

// Start starts a server with options as on its command line, such as
// "--maxmemory", "2mb", and returns when it is ready.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s := &Server{t: t, options: options}
	s.begin("Ready to accept connections")
	return s
}

// StartLoading starts a server that loads data for half a minute.
func StartLoading(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	full := Start(t, "--dir", dir)
	full.Do("EVAL", "for i = 1, 200000 do redis.call('SET', i, string.rep('x', 100)) end", 0)
	full.Do("SAVE")
	s := &Server{t: t, options: []string{"--dir", dir, "--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024"}}
	s.begin("Loading RDB")
	return s
}

func (s *Server) begin(ready string) {
	s.t.Helper()
	for range 10 { // another may take the port first
		s.port = freePort(s.t)
		if s.start(ready) {
			return
		}
	}
	s.t.Fatalf("redis-server does not start:\n%s", s.process.said())
}

func (s *Server) start(ready string) bool {
	s.t.Helper()
	dir := s.t.TempDir()
	s.process = start(s.t, "redis-server", append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
	}, s.options...)...)
	return s.process.await(ready, 0) > 0
}

// Addr is its address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is its address as a URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill ends it as the kernel's out-of-memory killer does: it loses what it holds.
func (s *Server) Kill() { s.process.kill() }

// Pause stops it: the kernel takes connections and bytes for it, nobody answers.
func (s *Server) Pause() { s.process.signal(syscall.SIGSTOP) }

// Resume ends a Pause: it answers what has come since.
func (s *Server) Resume() { s.process.signal(syscall.SIGCONT) }

// Restart kills it, if it runs, and starts it on the same port, empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.start("Ready to accept connections") {
		s.t.Fatalf("redis-server does not start again:\n%s", s.process.said())
	}
}

// Flush removes all that it holds, scripts too.
func (s *Server) Flush() {
	s.t.Helper()
	s.Do("FLUSHALL")
	s.Do("SCRIPT", "FLUSH")
}

// Do runs a command, as an administrator would, and returns the answer.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	v, err := s.admin().Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("redis %v: %v", args, err)
	}
	return v
}

// Calls counts the calls of a command since the server started, such as
// "evalsha"; a command inside a script counts too.
func (s *Server) Calls(command string) int {
	s.t.Helper()
	for line := range strings.Lines(s.Do("INFO", "commandstats").(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			count, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(count)
			if err != nil {
				s.t.Fatalf("commandstats: %q", line)
			}
			return n
		}
	}
	return 0
}

// AwaitLog waits until the server has printed a line with the text.
func (s *Server) AwaitLog(text string) {
	s.t.Helper()
	if s.process.await(text, 0) < 0 {
		s.t.Fatalf("redis-server ended before it said %q:\n%s", text, s.process.said())
	}
}

func (s *Server) admin() *redis.Client {
	if s.client == nil {
		s.client = redis.NewClient(&redis.Options{
			Addr: s.Addr(), Password: s.password(), DisableIdentity: true, Protocol: 2, MaxRetries: 1, ReadTimeout: patience,
		})
		s.t.Cleanup(func() { s.client.Close() })
	}
	return s.client
}

// password is that of its option requirepass.
func (s *Server) password() string {
	for i, o := range s.options {
		if o == "--requirepass" {
			return s.options[i+1]
		}
	}
	return ""
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
