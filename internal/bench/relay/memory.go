package main

import (
	"net"
)

// memory measures what an idle session costs the contender.
func (b *bench) memory() error {
	sessions := 5000
	if b.quick {
		sessions = 1000
	}
	rounds := b.rounds
	b.rounds = min(rounds, 3)
	defer func() { b.rounds = rounds }()
	what := "bytes per idle session"
	own, of, err := b.compare(what, roleEcho, func(c contender, relay *process) (float64, error) {
		sessions := sessions
		if c.name == ioCopy.name {
			sessions = min(sessions, 2500) // it holds six descriptors for each
		}
		open := make([]net.Conn, 0, sessions)
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		before := relay.memory()
		for range sessions {
			c, err := net.Dial("tcp4", relayAddr)
			if err != nil {
				return 0, err
			}
			open = append(open, c)
			if err := ask(c, make([]byte, 100)); err != nil { // it has been of use
				return 0, err
			}
		}
		return float64(relay.memory()-before) / float64(sessions), nil
	})
	if err != nil {
		return err
	}
	b.add(what, "", own, of, nil)
	b.require(what, median(own), "≤ 1024", median(own) <= 1024)
	return nil
}
