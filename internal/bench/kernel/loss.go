package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"shaperd/shaper"
)

// loss counts packets that go missing while a class's rate changes under load.
func (b *bench) loss() error {
	var receiver *net.UDPConn
	if err := b.lab.Do("receiver", func() (err error) {
		receiver, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 1, 0, 2), Port: 5400})
		return err
	}); err != nil {
		return err
	}
	defer receiver.Close()
	if err := receiver.SetReadBuffer(8 << 20); err != nil {
		return err
	}
	for _, kind := range []string{"hard cap", "borrowing", "leaky"} {
		if err := b.shape(link(kind, 20*shaper.Mbit)); err != nil {
			return err
		}
		sent, got, changes, err := b.changeUnderLoad(receiver, kind)
		if err != nil {
			return err
		}
		b.add(fmt.Sprintf("%s, %d changes of rate under load: packets lost of %d", kind, changes, sent), fmt.Sprint(sent-got), "", "0", sent == got)
	}
	return nil
}

// changeUnderLoad sends 12 mbit for 3 s, while the class has now 20, now 30 mbit.
func (b *bench) changeUnderLoad(receiver *net.UDPConn, kind string) (sent, got, changes int, err error) {
	var conn net.Conn
	if err := b.lab.Do("sender", func() (err error) {
		conn, err = net.Dial("udp4", "10.1.0.2:5400")
		return err
	}); err != nil {
		return 0, 0, 0, err
	}
	defer conn.Close()
	done := make(chan error, 1)
	const packets, length = 3600, 3 * time.Second
	go func() {
		payload := make([]byte, 1200)
		begin := time.Now()
		for n := range packets {
			time.Sleep(time.Until(begin.Add(length * time.Duration(n) / packets)))
			binary.BigEndian.PutUint32(payload, uint32(n))
			if _, err := conn.Write(payload); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for running := true; running; changes++ {
		if err := b.shape(link(kind, []shaper.Rate{30, 20}[changes%2]*shaper.Mbit)); err != nil {
			return 0, 0, 0, err
		}
		select {
		case err := <-done:
			if err != nil {
				return 0, 0, 0, err
			}
			running = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	seen := make([]bool, packets)
	buf := make([]byte, 2000)
	for {
		_ = receiver.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := receiver.Read(buf)
		if err != nil {
			break
		}
		if at := binary.BigEndian.Uint32(buf); n == 1200 && !seen[at] {
			seen[at] = true
			got++
		}
	}
	return packets, got, changes, nil
}
