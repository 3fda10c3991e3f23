package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// An arrival is a packet's, as large as it is on the wire.
type arrival struct {
	at    time.Duration
	bytes int
}

// leaky compares the pace of packets in a steady class and in one with a burst of 64 KB.
func (b *bench) leaky() error {
	const rate = 10 * shaper.Mbit
	if err := b.shape(link("leaky", rate)); err != nil {
		return err
	}
	steady, err := b.arrivals()
	if err != nil {
		return err
	}
	token := link("hard cap", rate)
	token.Classes[0].Burst = 68 * shaper.KiB // with headers, the largest offloaded packet fits
	if err := b.shape(token); err != nil {
		return err
	}
	bursts, err := b.arrivals()
	if err != nil {
		return err
	}
	own, theirs := spread(steady), spread(bursts)
	b.add("leaky at 10mbit, deviation of the gaps between packets; beside: a burst of 64 KiB", own.String(), theirs.String(), "10× smaller", own*10 <= theirs)
	worst := busiest(steady, 10*time.Millisecond) / (float64(rate) / 8 * 0.010)
	b.add("leaky at 10mbit, the most in 10 ms, of the rate", fmt.Sprintf("%.2f×", worst),
		fmt.Sprintf("%.2f×", busiest(bursts, 10*time.Millisecond)/(float64(rate)/8*0.010)), "≤ 1.25×", worst <= 1.25)
	return nil
}

// arrivals sends over TCP for 4 s, and returns the packets of the last three.
func (b *bench) arrivals() (list []arrival, err error) {
	var fd int
	var listener net.Listener
	if err := b.lab.Do("receiver", func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_IP))); err != nil {
			return err
		}
		timeout := unix.NsecToTimeval(int64(100 * time.Millisecond))
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
			return err
		}
		listener, err = net.Listen("tcp4", "10.1.0.2:5300")
		return err
	}); err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	var conn net.Conn
	if err := b.lab.Do("sender", func() (err error) {
		conn, err = net.Dial("tcp4", "10.1.0.2:5300")
		return err
	}); err != nil {
		return nil, err
	}
	defer conn.Close()
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(buf); err != nil {
				return
			}
		}
	}()
	begin := time.Now()
	buf, oob := make([]byte, 128), make([]byte, 128)
	for time.Since(begin) < 4*time.Second {
		n, oobn, flags, from, err := unix.Recvmsg(fd, buf, oob, unix.MSG_TRUNC)
		if link, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || link.Pkttype == unix.PACKET_OUTGOING || flags&unix.MSG_CTRUNC != 0 || n < 200 {
			continue
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) == 0 {
			continue
		}
		ts := (*unix.Timespec)(unsafe.Pointer(&messages[0].Data[0]))
		if time.Since(begin) > time.Second {
			list = append(list, arrival{time.Duration(ts.Nano()), n})
		}
	}
	return list, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// spread is the standard deviation of the gaps between full packets: an
// offloaded packet is so many without a gap.
func spread(list []arrival) time.Duration {
	var gaps []float64
	for i := 1; i < len(list); i++ {
		for range max(list[i-1].bytes/1448-1, 0) {
			gaps = append(gaps, 0)
		}
		gaps = append(gaps, float64(list[i].at-list[i-1].at))
	}
	mean, square := 0., 0.
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	for _, g := range gaps {
		square += (g - mean) * (g - mean) / float64(len(gaps))
	}
	return time.Duration(math.Sqrt(square)).Round(time.Microsecond)
}

// busiest returns the most bytes that arrived in a window of that length.
func busiest(list []arrival, length time.Duration) (most float64) {
	sum, from := 0, 0
	for i := range list {
		sum += list[i].bytes
		for list[i].at-list[from].at >= length {
			sum -= list[from].bytes
			from++
		}
		most = max(most, float64(sum))
	}
	return most
}
