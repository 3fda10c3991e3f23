package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
)

func TestOptionsThatCannotBeRightAreRefused(t *testing.T) {
	const good = "redis://10.0.0.9:6379"
	missing, empty := t.TempDir()+"/none", file(t, "\n")
	tests := []struct {
		name string
		o    store.Options
		want string
	}{
		{"none", store.Options{}, `redis: no URL: write one such as "redis://10.0.0.9:6379"`},
		{"scheme", store.Options{URLs: []string{"http://h"}}, `redis URL "http://h": scheme "http": redis or rediss (TLS) is right`},
		{"no scheme", store.Options{URLs: []string{"10.0.0.9:6379"}}, `redis URL: not a URL: write one such as "redis://10.0.0.9:6379"`},
		{"host", store.Options{URLs: []string{"redis://"}}, `redis URL "redis://": no host: write one such as "redis://10.0.0.9:6379"`},
		{"port", store.Options{URLs: []string{"redis://h:70000"}}, `redis URL "redis://h:70000": port "70000": 1 to 65535 is right`},
		{"database", store.Options{URLs: []string{"redis://h/x"}}, `redis URL "redis://h/x": database "x": a number is right`},
		{"query", store.Options{URLs: []string{"redis://h?a=b"}}, `redis URL "redis://h?a=b": nothing may follow the database`},
		{"password", store.Options{URLs: []string{"redis://u:secret@h"}},
			`redis URL "redis://u:xxxxx@h": a password does not belong here: write it to the password file`},
		{"password in no URL", store.Options{URLs: []string{"redis://u:secret@h:x"}},
			`redis URL: not a URL: write one such as "redis://10.0.0.9:6379"`},
		{"different", store.Options{URLs: []string{good, "rediss://h"}},
			`redis URLs "redis://10.0.0.9:6379" and "rediss://h": they may differ in host and port only`},
		{"database of a cluster", store.Options{URLs: []string{"redis://a/1", "redis://b/1"}},
			`redis URL "redis://a/1": a Redis Cluster has database 0 only: leave out /1`},
		{"no password file", store.Options{URLs: []string{good}, PasswordFile: missing},
			"read redis password: open " + missing + ": no such file or directory"},
		{"empty password file", store.Options{URLs: []string{good}, PasswordFile: empty},
			`redis password file "` + empty + `": it must hold one line, the password`},
		{"CA without TLS", store.Options{URLs: []string{good}, CAFile: empty},
			`redis CA file "` + empty + `": the URL has no TLS: write rediss:// or leave the file out`},
		{"CA without certificates", store.Options{URLs: []string{"rediss://h"}, CAFile: empty},
			`redis CA file "` + empty + `": no certificate in it: PEM is needed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := store.New(tt.o)
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v\n   want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("the message has the password")
			}
		})
	}
}

func TestScriptsRunInOneRoundTrip(t *testing.T) {
	r := storetest.Start(t)
	s := open(t, store.Options{URLs: []string{r.URL()}})
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
	s := open(t, store.Options{URLs: []string{r.URL()}})
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
	s := open(t, store.Options{URLs: []string{r.URL()}, PasswordFile: path})
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
	s := open(t, store.Options{URLs: []string{strings.Replace(r.URL(), "//", "//shaperd@", 1)}, PasswordFile: file(t, "secret")})
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
	got, err := open(t, store.Options{URLs: []string{r.URL()}}).Check(context.Background())
	if err != nil || got.Software == "" || got.Version == "" || got.Mode != "standalone" || got.Role != "master" || got.Eviction != "noeviction" || got.Latency <= 0 {
		t.Errorf("Check = %+v, %v", got, err)
	}
	r.Do("REPLICAOF", "127.0.0.1", "1")
	if got, err := open(t, store.Options{URLs: []string{r.URL()}}).Check(context.Background()); err == nil || got.Role != "slave" {
		t.Errorf("Check of a replica = %+v, %v", got, err)
	}
}

func TestClusterAndSentinelsServe(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		var urls []string
		for _, n := range storetest.StartCluster(t, 3) {
			urls = append(urls, n.URL())
		}
		s := open(t, store.Options{URLs: urls})
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
		s := open(t, store.Options{URLs: []string{nodes[0].URL(), nodes[1].URL(), nodes[2].URL()}})
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
		s := open(t, store.Options{URLs: []string{sentinels.URL()}, Sentinel: sentinels.Name})
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
