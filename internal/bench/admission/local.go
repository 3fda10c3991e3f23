package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const policy = `
classes: [{name: api, unit: requests, rate: 1000000000/s, burst: 1000000000}, {name: rest, default: true, rate: 1mbit}]
admission: {rate: 1mbit}
`

// connections at a time: enough to keep both sides busy, few enough that none waits long.
const connections = 8

// local measures decisions over the control socket of a daemon.
func local(ctx context.Context, o options, dir string) error {
	program, file, socket := filepath.Join(dir, "shaperd"), filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "socket")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/shaperd")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return err
	}
	stop, err := start(ctx, socket, program, "run", "--config", file, "--socket", socket)
	if err != nil {
		return err
	}
	defer stop()
	var rates, late []float64
	for range o.rounds {
		rate, p99, err := load(ctx, socket, o.turn())
		if err != nil {
			return err
		}
		rates, late = append(rates, rate), append(late, p99.Seconds()*1e3)
	}
	fmt.Printf("control socket, %d connections: %.0f decisions/s (%s), p99 %.2f ms (%s)\n",
		connections, median(rates), spread(rates), median(late), spread(late))
	return nil
}

// load asks on all connections for a time.
func load(ctx context.Context, socket string, length time.Duration) (perSecond float64, p99 time.Duration, err error) {
	var (
		mu  sync.Mutex
		all []time.Duration
		wg  sync.WaitGroup
	)
	began := time.Now()
	for range connections {
		wg.Go(func() {
			took, one := asker(ctx, socket, began.Add(length))
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, took...), errors.Join(err, one)
		})
	}
	wg.Wait()
	if err != nil {
		return 0, 0, err
	}
	elapsed := time.Since(began)
	slices.Sort(all)
	return float64(len(all)) / elapsed.Seconds(), all[len(all)*99/100], nil
}

const body = `{"cost":1}`

// asker asks one request after another, with nothing made for each: what is measured is the daemon.
func asker(ctx context.Context, socket string, until time.Time) (took []time.Duration, err error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	request := fmt.Appendf(nil, "POST /v1/classes/api/take HTTP/1.1\r\nHost: shaperd\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answer := make([]byte, 4<<10)
	for now := time.Now(); now.Before(until) && ctx.Err() == nil; {
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		n := 0
		for !bytes.HasSuffix(answer[:n], []byte("}\n")) {
			m, err := c.Read(answer[n:])
			if err != nil {
				return nil, err
			}
			n += m
		}
		if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
			return nil, fmt.Errorf("answered: %s", answer[:n])
		}
		end := time.Now()
		took = append(took, end.Sub(now))
		now = end
	}
	return took, nil
}
