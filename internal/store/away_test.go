package store_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
)

// write is a script as ours are: it asks for the time, then writes.
var write = store.NewScript(`local t = redis.call('TIME'); redis.call('HSET', KEYS[1], 'time', t[1]); return 'written'`)

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func call() *store.Call {
	return &store.Call{Script: write, Keys: []string{"shaperd:{test}:key"}}
}

func TestAProblemSaysWhatIsWrongAndTheCure(t *testing.T) {
	const password = "correct horse"
	tests := []struct {
		name string
		in   func(t *testing.T) store.Options // a server in the state
		want string                           // the error, without numbers
	}{
		{"nobody listens", func(t *testing.T) store.Options {
			r := storetest.Start(t)
			r.Kill()
			return store.Options{Addrs: []string{r.Addr()}}
		}, "redis PORT: cannot connect (connection refused): start it there, or correct the URL or its bind"},
		{"it hangs", func(t *testing.T) store.Options {
			r := storetest.Start(t)
			r.Pause()
			return store.Options{Addrs: []string{r.Addr()}}
		}, "redis PORT: no answer (nothing within 100ms): see whether it runs, whether both ends speak TLS or none, and whether a firewall or its load is in the way"},
		{"no password", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.Start(t, "--requirepass", password).Addr()}}
		}, "redis PORT: it wants a password (NOAUTH Authentication required): write it to the password file"},
		{"no password, many arguments", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.Start(t, "--requirepass", password).Addr()}}
		}, "redis PORT: it wants a password (ERR Protocol error: unauthenticated multibulk length): write it to the password file"},
		{"wrong password", func(t *testing.T) store.Options {
			r := storetest.Start(t, "--requirepass", password)
			return store.Options{Addrs: []string{r.Addr()}, PasswordFile: file(t, "wrong\n")}
		}, "redis PORT: wrong user or password (…): " +
			"correct the password file and the user in the URL"},
		{"no permission", func(t *testing.T) store.Options {
			r := storetest.Start(t)
			r.Do("ACL", "SETUSER", "weak", "on", ">"+password, "~*", "+get")
			return store.Options{Addrs: []string{r.Addr()}, User: "weak", PasswordFile: file(t, password)}
		}, "redis PORT: its user may not do this (…): " +
			"give the user these rules: " + store.ACL},
		{"no permission inside a script", func(t *testing.T) store.Options {
			r := storetest.Start(t)
			r.Do("ACL", "SETUSER", "weak", "on", ">"+password, "~*", "+eval", "+evalsha")
			return store.Options{Addrs: []string{r.Addr()}, User: "weak", PasswordFile: file(t, password)}
		}, "redis PORT: its user may not do this (…): " +
			"give the user these rules: " + store.ACL},
		{"replica", func(t *testing.T) store.Options {
			r := storetest.Start(t)
			r.Do("REPLICAOF", "127.0.0.1", "1")
			return store.Options{Addrs: []string{r.Addr()}}
		}, "redis PORT: a replica, which cannot be written to (READONLY You can't write against a read only replica): " +
			"name the master, or the Sentinels that know it"},
		{"out of memory", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.Start(t, "--maxmemory", "1kb").Addr()}}
		}, "redis PORT: out of memory (OOM command not allowed when used memory > 'maxmemory'): " +
			"give it more maxmemory, and a Redis of its own"},
		{"loading", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.StartLoading(t).Addr()}}
		}, "redis PORT: it is loading its data (…): wait; nothing of shaperd's needs to be saved there"},
		{"incomplete cluster", func(t *testing.T) store.Options {
			a, b := storetest.Start(t, "--cluster-enabled", "yes"), storetest.Start(t, "--cluster-enabled", "yes")
			return store.Options{Addrs: []string{a.Addr(), b.Addr()}}
		}, "redis PORT, PORT: the Redis Cluster is down (CLUSTERDOWN Hash slot not served): bring its nodes back; \"redis-cli cluster info\" says which slots have none"},
		{"node of a cluster", func(t *testing.T) store.Options {
			nodes := storetest.StartCluster(t, 3)
			owner := int(nodes[0].Do("CLUSTER", "KEYSLOT", call().Keys[0]).(int64)) * 3 / 16384
			return store.Options{Addrs: []string{nodes[(owner+1)%3].Addr()}}
		}, "redis PORT: a node of a Redis Cluster (MOVED PORT PORT): name several of its nodes"},
		{"not a cluster", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.Start(t).Addr(), storetest.Start(t).Addr()}}
		}, "redis PORT, PORT: not a node of a Redis Cluster (ERR This instance has cluster support disabled): name one URL, or the Sentinels' master"},
		{"unknown to the Sentinels", func(t *testing.T) store.Options {
			return store.Options{Addrs: []string{storetest.StartSentinels(t).Addr()}, Sentinel: "other"}
		}, "redis \"other\" of Sentinels PORT: unknown (the Sentinels know no such master): name a master that the Sentinels watch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tt.in(t))
			c := call()
			if strings.HasSuffix(tt.name, "many arguments") {
				c.Args = make([]any, 20)
				for i := range c.Args {
					c.Args[i] = i
				}
			}
			err := s.Do(context.Background(), c)
			if _, ok := errors.AsType[*store.AwayError](err); !ok {
				t.Fatalf("Do = %v, value %v; want an *AwayError", err, c.Value)
			}
			got := strings.ReplaceAll(err.Error(), "127.0.0.1:", "")
			if strings.Contains(tt.want, "(…)") { // servers say it in words of their own
				got = regexp.MustCompile(`\(.+\): `).ReplaceAllString(got, "(…): ")
			}
			if got = regexp.MustCompile(`\b\d{4,5}\b`).ReplaceAllString(got, "PORT"); got != tt.want {
				t.Errorf("error\n got %s\nwant %s", got, tt.want)
			}
			if s.Problem() == nil {
				t.Error("Problem = nil")
			}
		})
	}
}

// A Redis without a password answers other hosts once, and closes. No test is on
// another host: this is what it says there.
func TestProtectedModeIsNoAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.\r\n")
			c.Close()
		}
	}()
	s := open(t, store.Options{Addrs: []string{l.Addr().String()}})
	for range 2 { // it may close before it is asked
		if err := s.Do(context.Background(), call()); err == nil || !strings.Contains(err.Error(), "its protected-mode keeps others out") || s.Problem() == nil {
			t.Errorf("Do = %v, Problem = %v", err, s.Problem())
		}
	}
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func words(s string) []any {
	var all []any
	for w := range strings.FieldsSeq(s) {
		all = append(all, w)
	}
	return all
}
