package storetest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
)

// Sentinels watch a master with one replica.
type Sentinels struct {
	Master, Replica *Server
	Name            string // of the master

	t       testing.TB
	process *process
	port    int
}

// StartSentinels starts a master, its replica and a Sentinel that knows both.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t, Name: "mymaster", Master: Start(t)}
	s.Replica = Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(s.Master.port))
	for s.Master.Do("WAIT", 1, 100) != int64(1) { // it blocks
		s.Master.Do("SET", "wait", 1) // an offset that the replica has to reach
	}
	s.Master.Do("DEL", "wait")
	file := t.TempDir() + "/sentinel.conf"
	for range 10 {
		s.port = freePort(t)
		conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %d 1\n"+
			"sentinel down-after-milliseconds %[3]s 300\nsentinel failover-timeout %[3]s 2000\n", s.port, t.TempDir(), s.Name, s.Master.port)
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		s.process = start(t, "redis-sentinel", file)
		if s.process.await("+slave slave 127.0.0.1:"+strconv.Itoa(s.Replica.port), 0) > 0 {
			return s
		}
	}
	t.Fatalf("redis-sentinel does not start:\n%s", s.process.said())
	return nil
}

// Addr is the Sentinel's address.
func (s *Sentinels) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// Failover kills the master and returns when the Sentinel has made the replica the master.
func (s *Sentinels) Failover() {
	s.t.Helper()
	from := s.process.printed()
	s.Master.Kill()
	if s.process.await("+switch-master "+s.Name, from) < 0 {
		s.t.Fatalf("redis-sentinel has ended:\n%s", s.process.said())
	}
}

// StartCluster starts a Redis Cluster of so many masters and returns when all of
// them know that it is complete.
func StartCluster(t testing.TB, nodes int) []*Server {
	t.Helper()
	const slots = 16384
	all := make([]*Server, nodes)
	for i := range all {
		all[i] = Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		for slot := i * slots / nodes; slot < (i+1)*slots/nodes; slot += 1024 {
			args := []any{"CLUSTER", "ADDSLOTS"}
			for n := slot; n < min(slot+1024, (i+1)*slots/nodes); n++ {
				args = append(args, n)
			}
			all[i].Do(args...)
		}
		if i > 0 {
			all[i].Do("CLUSTER", "MEET", "127.0.0.1", all[0].port)
		}
	}
	for _, s := range all {
		s.AwaitLog("Cluster state changed: ok")
	}
	return all
}
