// Package conn is the userspace datapath: a TCP relay that moves bytes at the
// pace of their class.
//
// A Relay accepts connections, learns where each one goes (a fixed upstream
// list, or the client's SOCKS5 request), classifies it, connects, and moves
// bytes in both directions through two shaper.Tree schedulers, one per
// direction, until both sides have ended:
//
//	relay, err := conn.New(cfg, logger) // binds the listeners
//	if err != nil {
//		return err
//	}
//	err = relay.Run(ctx)                // serves; drains when ctx is done
//
// Everything a relay does happens on one goroutine locked to its own thread:
// an edge-triggered epoll loop that owns the sockets, the sessions and both
// trees, so the path of a byte takes no lock and allocates nothing. The only
// other goroutines resolve names. Update and Stats may be called from any
// goroutine; they are carried out by the loop between two turns.
//
// A session costs two descriptors. Small traffic goes through one buffer that
// the loop shares among all sessions; bulk traffic is spliced through a pipe
// that is borrowed from a pool for as long as bytes are in it. What was read
// is never dropped while its receiver lives: an end of stream is passed on
// after every byte before it, a reset after what came before it.
//
// The package is not a general proxy library: it knows no UDP, TLS or HTTP.
package conn
