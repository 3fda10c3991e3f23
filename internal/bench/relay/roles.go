package main

import (
	"io"
	"net"

	"shaperd/internal/measure"
)

// serve accepts on addr and runs handle for each connection.
func serve(addr string, handle func(*net.TCPConn)) error {
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		return err
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go handle(c.(*net.TCPConn))
	}
}

// sink throws away what it gets, cheaply, and says so after the end of the stream.
func sink() error {
	return serve(upstreamAddr, func(c *net.TCPConn) {
		defer c.Close()
		for {
			if _, err := measure.Discard(c); err != nil {
				break
			}
		}
		_, _ = c.Write([]byte{1})
	})
}

// echo sends everything back.
func echo() error {
	return serve(upstreamAddr, func(c *net.TCPConn) {
		defer c.Close()
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// ioCopyRelay is what a Go programmer writes first: two goroutines and io.Copy,
// which splices between TCP connections.
func ioCopyRelay() error {
	return serve(relayAddr, func(client *net.TCPConn) {
		defer client.Close()
		c, err := net.Dial("tcp", upstreamAddr)
		if err != nil {
			return
		}
		upstream := c.(*net.TCPConn)
		defer upstream.Close()
		done := make(chan struct{})
		go func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.CloseWrite()
			close(done)
		}()
		_, _ = io.Copy(client, upstream)
		_ = client.CloseWrite()
		<-done
	})
}
