package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"shaperd/configs"
	"shaperd/internal/measure"
	"shaperd/shaper"
)

//go:embed shared.yaml
var sharedPolicy []byte

var (
	redisReady = regexp.MustCompile(`Ready to accept connections`)
	relayReady = regexp.MustCompile(`msg="relay listens".* listen="?\[([0-9.:]+)`)
)

// sharedClass is the class of the policy.
func sharedClass() (*shaper.Class, error) {
	p, err := configs.Parse("shared.yaml", policyOf("relay1", "/tmp", "6379"))
	if err != nil {
		return nil, err
	}
	return &p.Relays[0].Download.Classes[0], nil
}

// policyOf fills in what is a host's own.
func policyOf(host, folder, redisPort string) []byte {
	own := map[string]string{"HOST": host, "FOLDER": folder, "REDIS": redisPort}
	return []byte(os.Expand(string(sharedPolicy), func(name string) string { return own[name] }))
}

// build starts the Redis, and the hosts with their traffic; whatever breaks later is told to fail.
func (d *sharedDemo) build(ctx context.Context, program string, fail func(error)) (err error) {
	if d.redisServer, err = exec.LookPath("redis-server"); err != nil {
		return fmt.Errorf("start a Redis: %w: install redis-server (Debian, Ubuntu: apt-get install redis-server; make demo-shared does so)", err)
	}
	if d.class, err = sharedClass(); err != nil {
		return err
	}
	if d.folder, err = os.MkdirTemp("", "shaperd-demo-"); err != nil {
		return err
	}
	if d.redisPort, err = freePort(); err != nil {
		return err
	}
	if err := d.startRedis(ctx, fail); err != nil {
		return err
	}
	for i := range relays {
		if err := d.startHost(ctx, i, program, fail); err != nil {
			return err
		}
	}
	return nil
}

// close ends what build has made: the connections first, so that the daemons have none to wait for.
func (d *sharedDemo) close() {
	for _, h := range d.hosts {
		h.close()
	}
	for _, h := range d.hosts {
		if h.daemon != nil {
			h.daemon.stop()
		}
	}
	if d.redis != nil {
		d.redis.kill() // it has nothing to keep
	}
	if d.folder != "" {
		os.RemoveAll(d.folder)
	}
}

// startRedis returns when there is a Redis with nothing in it.
func (d *sharedDemo) startRedis(ctx context.Context, fail func(error)) (err error) {
	d.redis, err = startProcess("redis-server", redisReady, fail, d.redisServer,
		"--port", d.redisPort, "--bind", "127.0.0.1", "--dir", d.folder, "--save", "", "--appendonly", "no")
	if err == nil {
		_, err = d.redis.await(ctx)
	}
	return err
}

// startHost starts a server, a shaperd with a relay, and clients that reach the server through it.
func (d *sharedDemo) startHost(ctx context.Context, i int, program string, fail func(error)) error {
	h := &host{name: "relay" + strconv.Itoa(i+1)}
	file := filepath.Join(d.folder, h.name+".yaml")
	if err := os.WriteFile(file, policyOf(h.name, d.folder, d.redisPort), 0o600); err != nil {
		return err
	}
	traffic, err := newClass(d.class, func(err error) { d.trafficFailed(ctx, h, err, fail) })
	if err != nil {
		return err
	}
	traffic.got, traffic.first = d.got, i*connectionsPerRelay
	h.class = traffic
	d.hosts = append(d.hosts, h)
	if h.daemon, err = startProcess(h.name, relayReady, fail, program, "run", "--config", file); err != nil {
		return err
	}
	listens, err := h.daemon.await(ctx)
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddrPort(listens[1])
	if err != nil {
		return fmt.Errorf("%s says where it listens: %w", h.name, err)
	}
	return h.connect(ctx, addr, connectionsPerRelay)
}

// trafficFailed tells that a connection broke, or rather that the daemon did, if it was that.
func (d *sharedDemo) trafficFailed(ctx context.Context, h *host, err error, fail func(error)) {
	if ctx.Err() != nil {
		return
	}
	select {
	case <-h.daemon.ended: // told already
	case <-time.After(time.Second):
	}
	fail(fmt.Errorf("%s: %w", h.name, err))
}

// freePort returns a free port that no connection gets by itself while the Redis
// is away: the kernel hands out those from 32768 on.
func freePort() (string, error) {
	var errs error
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		l, err := net.Listen("tcp4", addr)
		if err == nil {
			_, port, _ := net.SplitHostPort(addr)
			return port, l.Close()
		}
		errs = err
	}
	return "", errors.Join(errors.New("find a free port for the Redis: none of 100 is"), errs)
}

// A host is one shaperd, with a server and its clients.
type host struct {
	*class
	name    string
	daemon  *process
	wants   float64  // what its clients want, in bits per second
	samples []sample // of the picture
}

// connectionsPerRelay is how many clients each relay has.
const connectionsPerRelay = 2

// want has the servers send a rate in bits per second, or all that goes.
func (h *host) want(rate float64) {
	if rate == h.wants {
		return
	}
	h.wants = rate
	h.keepSending(false)
	switch rate {
	case 0:
	case all:
		h.keepSending(true)
	default:
		h.sendAt(rate)
	}
}

// of returns the arrivals at a host's clients.
func of(host int, list []measure.Arrival) (own []measure.Arrival) {
	for _, a := range list {
		if a.Conn/connectionsPerRelay == host {
			a.Conn -= host * connectionsPerRelay
			own = append(own, a)
		}
	}
	return own
}
