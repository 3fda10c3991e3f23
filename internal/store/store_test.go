package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
)

func TestOptionsThatCannotBeRightAreRefused(t *testing.T) {
	const good = "10.0.0.9:6379"
	missing, empty := t.TempDir()+"/none", file(t, "\n")
	pipe := t.TempDir() + "/pipe"
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		o    store.Options
		want string
	}{
		{"none", store.Options{}, "redis: no address"},
		{"no password file", store.Options{Addrs: []string{good}, PasswordFile: missing},
			"read redis password: open " + missing + ": no such file or directory"},
		{"empty password file", store.Options{Addrs: []string{good}, PasswordFile: empty},
			`redis password file "` + empty + `": it must hold one line, the password`},
		{"CA without certificates", store.Options{Addrs: []string{good}, TLS: true, CAFile: empty},
			`redis CA file "` + empty + `": no certificate in it: PEM is needed`},
		{"password from a pipe", store.Options{Addrs: []string{good}, PasswordFile: pipe},
			"read redis password: read " + pipe + ": is a named pipe, not a regular file"},
		{"CA from a pipe", store.Options{Addrs: []string{good}, TLS: true, CAFile: pipe},
			"read redis CA: read " + pipe + ": is a named pipe, not a regular file"},
		{"password without end", store.Options{Addrs: []string{good}, PasswordFile: "/dev/zero"},
			"read redis password: read /dev/zero: is a device, not a regular file"},
		{"CA without end", store.Options{Addrs: []string{good}, TLS: true, CAFile: "/dev/zero"},
			"read redis CA: read /dev/zero: is a device, not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := store.New(tt.o)
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v\n   want %s", err, tt.want)
			}
		})
	}
}

func TestOutagesAreReadAsTheyAreWritten(t *testing.T) {
	for _, o := range []store.Outage{store.OutageShare, store.OutageMin, store.OutageOpen, store.OutageClosed} {
		if got, err := store.ParseOutage(o.String()); err != nil || got != o {
			t.Errorf("ParseOutage(%v) = %v, %v", o, got, err)
		}
	}
	if _, err := store.ParseOutage("fair"); err == nil || err.Error() != `on_outage "fair": share, min, open or closed is right` {
		t.Error(err)
	}
}

func TestScriptsRunInOneRoundTrip(t *testing.T) {
	r := storetest.Start(t)
	s := open(t, store.Options{Addrs: []string{r.Addr()}})
	read := store.NewScript(`return {redis.call('HGET', KEYS[1], 'time'), ARGV[1], 7}`)
	calls := func() []*store.Call {
		return []*store.Call{call(), {Script: read, Keys: []string{"shaperd:{test}:key"}, Args: []any{"a"}}}
	}
	for round, want := range []struct{ evalsha, eval int }{
		{2, 2}, // the server knows no script yet
		{4, 2}, {6, 2},
	} {
		c := calls()
		if err := s.Do(context.Background(), c...); err != nil {
			t.Fatal(err)
		}
		answer, ok := c[1].Value.([]any)
		if c[0].Value != "written" || !ok || len(answer) != 3 || answer[1] != "a" || answer[2] != int64(7) {
			t.Errorf("values %v, %v", c[0].Value, c[1].Value)
		}
		if evalsha, eval := r.Calls("evalsha"), r.Calls("eval"); evalsha != want.evalsha || eval != want.eval {
			t.Errorf("round %d: %d evalsha and %d eval; want %+v", round, evalsha, eval, want)
		}
	}
	r.Flush()
	if err := s.Do(context.Background(), calls()...); err != nil {
		t.Errorf("after the server forgot the scripts: %v", err)
	}
}

func TestAScriptsOwnErrorIsNoProblemOfTheServer(t *testing.T) {
	r := storetest.Start(t)
	s := open(t, store.Options{Addrs: []string{r.Addr()}})
	bad := &store.Call{Script: store.NewScript(`return redis.error_reply('rate: a number is right')`), Keys: []string{"shaperd:{test}:key"}}
	good := call()
	for range 10 {
		if err := s.Do(context.Background(), bad, good); err == nil || err.Error() != "rate: a number is right" {
			t.Fatalf("Do = %v", err)
		}
		if good.Err != nil || good.Value != "written" || s.Problem() != nil {
			t.Fatalf("the other call: %v, %v; problem %v", good.Value, good.Err, s.Problem())
		}
	}
}

func TestPasswordChangesWithoutARestart(t *testing.T) {
	r := storetest.Start(t, "--requirepass", "new")
	path := file(t, "old")
	s := open(t, store.Options{Addrs: []string{r.Addr()}, PasswordFile: path})
	if err := s.Do(context.Background(), call()); err == nil {
		t.Fatal("the old password does")
	}
	rewrite(t, path, "new\n")
	if err := s.Do(context.Background(), call()); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	if err := s.Problem(); err != nil {
		t.Errorf("Problem = %v", err)
	}
}

func TestTheACLRuleIsEnough(t *testing.T) {
	r := storetest.Start(t)
	r.Do(append([]any{"ACL", "SETUSER", "shaperd", "on", ">secret"}, words(store.ACL)...)...)
	s := open(t, store.Options{Addrs: []string{r.Addr()}, User: "shaperd", PasswordFile: file(t, "secret")})
	if err := s.Do(context.Background(), call()); err != nil {
		t.Error(err)
	}
	if _, err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.Client().Set(context.Background(), "other", 1, 0).Err(); err == nil {
		t.Error("other keys are writable")
	}
	if err := s.Client().FlushAll(context.Background()).Err(); err == nil {
		t.Error("everything may be removed")
	}
}

func TestCheckSaysWhatServerItIs(t *testing.T) {
	r := storetest.Start(t)
	got, err := open(t, store.Options{Addrs: []string{r.Addr()}}).Check(context.Background())
	if err != nil || got.Software == "" || got.Version == "" || got.Mode != "standalone" || got.Role != "master" || got.Eviction != "noeviction" || got.Latency <= 0 {
		t.Errorf("Check = %+v, %v", got, err)
	}
	r.Do("REPLICAOF", "127.0.0.1", "1")
	if got, err := open(t, store.Options{Addrs: []string{r.Addr()}}).Check(context.Background()); err == nil || got.Role != "slave" {
		t.Errorf("Check of a replica = %+v, %v", got, err)
	}
}

func TestClusterAndSentinelsServe(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		var addrs []string
		for _, n := range storetest.StartCluster(t, 3) {
			addrs = append(addrs, n.Addr())
		}
		s := open(t, store.Options{Addrs: addrs})
		calls := []*store.Call{call(), call(), call()}
		for i, c := range calls {
			c.Keys = []string{"shaperd:{" + string(rune('a'+i)) + "}:key"} // on different nodes
		}
		if err := s.Do(context.Background(), calls...); err != nil {
			t.Error(err)
		}
		if got, err := s.Check(context.Background()); err != nil || got.Mode != "cluster" {
			t.Errorf("Check = %+v, %v", got, err)
		}
	})
	t.Run("a node is away", func(t *testing.T) {
		nodes := storetest.StartCluster(t, 3)
		s := open(t, store.Options{Addrs: []string{nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr()}})
		on := map[int]*store.Call{} // of each node
		var calls []*store.Call
		for i := range 100 {
			c := call()
			c.Keys = []string{"shaperd:{" + strings.Repeat("x", i) + "}:key"}
			node := int(nodes[0].Do("CLUSTER", "KEYSLOT", c.Keys[0]).(int64)) * 3 / 16384
			if on[node] == nil {
				on[node] = c
				calls = append(calls, c)
			}
		}
		if err := s.Do(context.Background(), calls...); err != nil || len(calls) != 3 {
			t.Fatalf("%d calls: %v", len(calls), err)
		}
		nodes[2].Kill()
		for range 10 { // the others know only after a while that a node is gone, and then refuse
			if err := s.Do(context.Background(), calls...); err == nil || on[2].Err == nil {
				t.Fatalf("Do = %v; the call of the node that is away %v", err, on[2].Err)
			}
			if s.Problem() == nil {
				t.Error("no problem is known")
			}
			if away, ok := errors.AsType[*store.AwayError](on[2].Err); ok && !away.Asked() {
				t.Errorf("the breaker has opened: %v; %v; %v", on[0].Err, on[1].Err, on[2].Err)
			}
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		sentinels := storetest.StartSentinels(t)
		s := open(t, store.Options{Addrs: []string{sentinels.Addr()}, Sentinel: sentinels.Name})
		if err := s.Do(context.Background(), call()); err != nil {
			t.Fatal(err)
		}
		sentinels.Failover()
		storetest.Eventually(t, "an answer of the new master", func() bool { return s.Do(context.Background(), call()) == nil })
		if sentinels.Replica.Do("EXISTS", "shaperd:{test}:key") != int64(1) {
			t.Error("the new master has not been written to")
		}
	})
}
