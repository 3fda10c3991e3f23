package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// compare measures every contender in turn, rounds times, and returns shaperd's
// results and each peer's, by name; a peer that is not installed has none.
func (b *bench) compare(what, upstream string, measure func(contender, *process) (float64, error)) (own []float64, of map[string][]float64, err error) {
	of = map[string][]float64{}
	missing := map[string]bool{}
	for round := range b.rounds {
		for _, c := range append([]contender{shaperd}, peers...) {
			if missing[c.name] {
				continue
			}
			if c.binary != "" {
				if _, err := b.look(c.binary); err != nil {
					b.progress("%v", err)
					missing[c.name] = true
					continue
				}
			}
			v, err := b.once(c, upstream, measure)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.name, err)
			}
			b.progress("%s, round %d of %d: %s %.4g", what, round+1, b.rounds, c.name, v)
			if c.name == shaperd.name {
				own = append(own, v)
			} else {
				of[c.name] = append(of[c.name], v)
			}
		}
	}
	return own, of, nil
}

// once measures one contender before a fresh upstream.
func (b *bench) once(c contender, upstream string, measure func(contender, *process) (float64, error)) (float64, error) {
	up, err := b.self(upstream, upstreamAddr)
	if err != nil {
		return 0, err
	}
	defer up.stop()
	relay, err := b.start(c, "")
	if err != nil {
		return 0, err
	}
	defer relay.stop()
	return measure(c, relay)
}

// cpu measures CPU seconds per gigabyte, unshaped.
func (b *bench) cpu() error {
	size := int64(3e9)
	if b.quick {
		size = 5e8
	}
	for _, conns := range []int{1, 16} {
		what := fmt.Sprintf("CPU s/GB, %d connections", conns)
		own, of, err := b.compare(what, roleSink, func(_ contender, relay *process) (float64, error) {
			before := relay.cpu()
			if err := pump(conns, size/int64(conns)); err != nil {
				return 0, err
			}
			return (relay.cpu() - before).Seconds() / (float64(size) / 1e9), nil
		})
		if err != nil {
			return err
		}
		b.add(what, "", own, of, map[string]float64{
			haproxy.name: b.haproxyTarget(), nginx.name: 1. / 5, ioCopy.name: map[int]float64{1: 0.8, 16: 1.05}[conns],
		})
	}
	return nil
}

// pump sends size bytes on each of conns connections and waits until all have arrived.
func pump(conns int, size int64) error {
	var g errgroup.Group
	for range conns {
		g.Go(func() error {
			c, err := net.Dial("tcp4", relayAddr)
			if err != nil {
				return err
			}
			defer c.Close()
			buf := make([]byte, 256<<10)
			for left := size; left > 0; {
				n, err := c.Write(buf[:min(left, int64(len(buf)))])
				if err != nil {
					return err
				}
				left -= int64(n)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				return err
			}
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
			_, err = io.ReadFull(c, make([]byte, 1)) // nginx closes both ways: no answer comes
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		})
	}
	return g.Wait()
}
