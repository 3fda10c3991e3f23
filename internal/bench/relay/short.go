package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// short measures short connections, and request and response on one that stays.
func (b *bench) short() error {
	count := 4000
	if b.quick {
		count = 500
	}
	for _, at := range []int{1, 16} {
		what := fmt.Sprintf("CPU µs per short connection, %d at once", at)
		own, of, err := b.compare(what, roleEcho, func(_ contender, relay *process) (float64, error) {
			before := relay.cpu()
			var g errgroup.Group
			for range at {
				g.Go(func() error {
					for range count / at {
						c, err := net.Dial("tcp4", relayAddr)
						if err != nil {
							return err
						}
						err = ask(c, make([]byte, 100))
						c.Close()
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			err := g.Wait()
			return float64((relay.cpu() - before).Microseconds()) / float64(count), err
		})
		if err != nil {
			return err
		}
		b.add(what, "", own, of, map[string]float64{haproxy.name: 1, nginx.name: 1})
	}
	what := "request and response, p50 in µs"
	own, of, err := b.compare(what, roleEcho, func(contender, *process) (float64, error) {
		c, err := net.Dial("tcp4", relayAddr)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		took := make([]time.Duration, 2*count)
		buf := make([]byte, 64)
		for i := range took {
			start := time.Now()
			if err := ask(c, buf); err != nil {
				return 0, err
			}
			took[i] = time.Since(start)
		}
		slices.Sort(took)
		return float64(took[len(took)/2].Nanoseconds()) / 1000, nil
	})
	if err != nil {
		return err
	}
	b.add(what, "", own, of, map[string]float64{haproxy.name: 1.2})
	return nil
}

// ask sends buf and waits until it comes back.
func ask(c net.Conn, buf []byte) error {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(c, buf)
	return err
}
