package httpd

import (
	"net"
	"sync"
)

// A limited listener accepts while fewer than cap(open) of its connections are
// open. Others wait in the kernel's queue.
type limited struct {
	net.Listener
	open   chan struct{} // an element for each connection
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, connections int) *limited {
	return &limited{Listener: l, open: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, open: l.open}, nil
}

// Close implements net.Listener. It wakes Accept.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A counted connection makes room for another when it is closed.
type counted struct {
	net.Conn
	open chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.open })
	return err
}

// NetConn returns the connection itself, for those who have to know what it is.
func (c *counted) NetConn() net.Conn { return c.Conn }
