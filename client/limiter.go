package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Options say how a Limiter asks. The zero value will do for a class that counts bytes.
type Options struct {
	// Key has a bucket of its own in the class; "" is the class's.
	Key string
	// Helping is how much is taken at a time, in bytes or requests: with less it
	// asks more often, with more others wait longer. 0 is a tenth of the burst.
	Helping int64
	// Requests says that the class counts requests, not bytes.
	Requests bool
}

// A Limiter keeps to a class, with a bucket of its own that it fills from the
// daemon's. Make it with Client.Limiter.
type Limiter struct {
	client *Client
	class  string
	o      Options

	turn  chan struct{} // has room for the one whose turn it is: only that one asks
	have  int64         // taken and not used
	burst int64         // the class's, as far as known
}

// Limiter returns a limiter of a class. It asks nothing yet.
func (c *Client) Limiter(class string, o Options) *Limiter {
	return &Limiter{client: c, class: class, o: o, turn: make(chan struct{}, 1)}
}

// maxWait is how long the daemon is asked to wait before it answers.
const maxWait = 5 * time.Second

// Wait blocks until n are granted, bytes or requests, or returns the cause of ctx
// when that is done before; then nothing was used. n may be above the class's
// burst: it is taken in parts. For 0 nothing is asked.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("class %q: wait for %d: give 0 or more", l.class, n)
	case n == 0:
		return nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	for need := int64(n); ; {
		if l.have >= need {
			l.have -= need
			return nil
		}
		if err := l.fill(ctx, need-l.have); err != nil {
			return err
		}
	}
}

// fill takes a helping, at least n if the burst has room for that.
func (l *Limiter) fill(ctx context.Context, n int64) error {
	helping := l.o.Helping
	if helping == 0 {
		helping = l.burst / 10
	}
	if n = max(n, helping); l.burst > 0 {
		n = min(n, l.burst)
	}
	r := Request{Key: l.o.Key, Wait: maxWait}
	if l.o.Requests {
		r.Cost = n
	} else {
		r.Bytes = n
	}
	d, err := l.client.Wait(ctx, l.class, r)
	if wrong, ok := errors.AsType[*RequestError](err); ok && wrong.Limit > 0 && wrong.Limit < n {
		l.burst = wrong.Limit // it is smaller than we knew: less at a time
		return nil
	}
	if err != nil {
		return l.unit(err)
	}
	l.have, l.burst = l.have+n, d.Limit
	return nil
}

// unit adds to an error of Wait which options a class of the other unit needs. The
// daemon says it in words alone.
func (l *Limiter) unit(err error) error {
	wrong, ok := errors.AsType[*RequestError](err)
	switch {
	case !ok:
		return err
	case strings.HasSuffix(wrong.Reason, "counts requests, not bytes"):
		return fmt.Errorf("%w: make its limiter with Options{Requests: true}", err)
	case strings.HasSuffix(wrong.Reason, "counts bytes, not requests"):
		return fmt.Errorf("%w: make its limiter with Options{Requests: false}", err)
	}
	return err
}

// Reader returns a reader of r that reads at the class's pace. ctx ends a read
// that waits, with its cause.
func (l *Limiter) Reader(ctx context.Context, r io.Reader) io.Reader { return &paced{ctx, l, r, nil} }

// Writer returns a writer to w that writes at the class's pace. ctx ends a write
// that waits, with its cause.
func (l *Limiter) Writer(ctx context.Context, w io.Writer) io.Writer { return &paced{ctx, l, nil, w} }

// paced moves at most a chunk at a time, so that what is written comes evenly.
type paced struct {
	ctx     context.Context
	limiter *Limiter
	r       io.Reader
	w       io.Writer
}

const chunk = 16 << 10

// Read implements io.Reader. What was read has been waited for.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), chunk)])
	if n > 0 {
		if waiting := p.limiter.Wait(p.ctx, n); waiting != nil {
			return n, waiting // they are read, and must not be lost
		}
	}
	return n, err
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), chunk)]
		if err := p.limiter.Wait(p.ctx, len(part)); err != nil {
			return written, err
		}
		n, err := p.w.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}
