package main

import (
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shaperd/internal/measure"
	"shaperd/shaper"
)

// shaped measures how exactly shaperd holds a class to its rate: sent to it is
// always more than the rate, and what arrives behind it is timed.
func (b *bench) shaped() error {
	for _, text := range []string{"1mbit", "100mbit", "1gbit", "5gbit"} {
		for _, conns := range []int{1, 8} {
			if err := b.shapedOnce(text, conns); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) shapedOnce(text string, conns int) error {
	rate, err := shaper.ParseRate(text)
	if err != nil {
		return err
	}
	bytes := float64(rate) / 8
	r := &receiver{Recorder: measure.NewRecorder()}
	ln, err := net.Listen("tcp4", upstreamAddr)
	if err != nil {
		return err
	}
	defer ln.Close()
	relay, err := b.start(shaperd, text)
	if err != nil {
		return err
	}
	defer relay.stop()
	time.Sleep(100 * time.Millisecond) // the probe of start has come and gone
	go r.serve(ln)

	span, idle := 5*time.Second, 2*time.Second
	if b.quick {
		span, idle = time.Second, time.Second
	}
	src := &source{}
	defer src.close()
	if err := src.open(conns, int(max(4096, bytes/100))); err != nil {
		src.on() // for close
		return err
	}
	src.on()
	time.Sleep(time.Second) // past the burst of the start
	from := r.Now()
	time.Sleep(span + span/10)
	got, each := measure.Rate(r.Since(from), span, int(r.conns.Load()))
	src.off()
	for r.Now()-r.Last() < idle { // everything on the way has arrived, and then a pause
		time.Sleep(10 * time.Millisecond)
	}
	from = r.Now()
	src.on()
	time.Sleep(time.Second)
	burst := measure.Burst(r.Since(from), from, bytes)

	deviation := (got/bytes - 1) * 100
	each = slices.DeleteFunc(each, func(v float64) bool { return v == 0 })
	fair := measure.Jain(each)
	if len(each) < conns {
		fair = 0
	}
	allowed := float64(shaper.DefaultBurst(rate) + shaper.Chunk(rate))
	b.progress("shaped, %s, %d connections: error %+.3f %%, burst %.0f of %.0f, Jain %.5f", text, conns, deviation, burst, allowed, fair)
	what := fmt.Sprintf("%s, %d connections: ", text, conns)
	b.require(what+"rate error %", deviation, "within ± 0.2", math.Abs(deviation) <= 0.2)
	b.require(what+"bytes at once after idle", burst, fmt.Sprintf("≤ %.0f", allowed), burst <= allowed)
	b.require(what+"Jain", fair, "≥ 0.998", fair >= 0.998)
	return nil
}

// receiver numbers the connections that arrive.
type receiver struct {
	*measure.Recorder
	conns atomic.Int32
}

func (r *receiver) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		id := int(r.conns.Add(1)) - 1
		go func() {
			defer c.Close()
			r.Count(id, c.(*net.TCPConn))
		}()
	}
}

// A source writes as much as it can on its connections while it is on.
type source struct {
	list []net.Conn
	gate sync.RWMutex // held while it is off
	wg   sync.WaitGroup
	done atomic.Bool
}

// open connects, with a small buffer: what is in it still comes after off.
func (s *source) open(conns, buffer int) error {
	s.off()
	for range conns {
		c, err := net.Dial("tcp4", relayAddr)
		if err != nil {
			return err
		}
		_ = c.(*net.TCPConn).SetWriteBuffer(min(buffer, 4<<20))
		s.list = append(s.list, c)
		s.wg.Go(func() {
			buf := make([]byte, 256<<10)
			for !s.done.Load() {
				s.gate.RLock()
				_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = c.Write(buf)
				s.gate.RUnlock()
			}
		})
	}
	return nil
}

func (s *source) on()  { s.gate.Unlock() }
func (s *source) off() { s.gate.Lock() }

func (s *source) close() {
	s.done.Store(true)
	for _, c := range s.list {
		c.Close()
	}
	s.wg.Wait()
}
