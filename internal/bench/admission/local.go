package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const policy = `
classes: [{name: api, unit: requests, rate: 1000000000/s, burst: 1000000000}, {name: rest, default: true, rate: 1mbit}]
admission: {rate: 1mbit}
`

// crowds are connections at a time: few enough that none waits long, up to so many that both sides are busy.
var crowds = []int{4, 8, 16}

// local measures decisions over the control socket of a daemon.
func local(ctx context.Context, o options, dir string) error {
	program, file, socket := filepath.Join(dir, "shaperd"), filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "socket")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/shaperd")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return err
	}
	stop, err := start(ctx, socket, program, "run", "--config", file, "--socket", socket)
	if err != nil {
		return err
	}
	defer stop()
	rates, late := map[int][]float64{}, map[int][]float64{}
	for range o.rounds {
		for _, n := range crowds {
			rate, p99, err := load(ctx, socket, n, o.turn())
			if err != nil {
				return err
			}
			rates[n], late[n] = append(rates[n], rate), append(late[n], p99.Seconds()*1e3)
		}
	}
	for _, n := range crowds {
		fmt.Printf("control socket, %d connections: %.0f decisions/s (%s), p99 %.2f ms (%s)\n",
			n, median(rates[n]), spread(rates[n]), median(late[n]), spread(late[n]))
	}
	return nil
}

const body = `{"cost":1}`

// load asks on so many connections for a time, one request after another on each. It is
// one thread with nothing made for a request: what is measured is the daemon.
func load(ctx context.Context, socket string, connections int, length time.Duration) (perSecond float64, p99 time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(poll)
	request := fmt.Appendf(nil, "POST /v1/classes/api/take HTTP/1.1\r\nHost: shaperd\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	all := make([]asker, connections)
	began := time.Now()
	for i := range all {
		if err := all[i].dial(poll, socket, i); err != nil {
			return 0, 0, err
		}
		defer unix.Close(all[i].fd)
		if err := all[i].ask(request, began); err != nil {
			return 0, 0, err
		}
	}
	took := make([]time.Duration, 0, 100_000*int(length/time.Second+1))
	events := make([]unix.EpollEvent, connections)
	for now := began; now.Before(began.Add(length)) && ctx.Err() == nil; {
		n, err := unix.EpollWait(poll, events, 1000)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, 0, err
		}
		for i := range max(n, 0) {
			c := &all[events[i].Fd]
			done, err := c.answered()
			if err != nil {
				return 0, 0, err
			}
			if !done {
				continue
			}
			now = time.Now()
			took = append(took, now.Sub(c.asked))
			if err := c.ask(request, now); err != nil {
				return 0, 0, err
			}
		}
	}
	if len(took) == 0 {
		return 0, 0, errors.New("nothing is answered")
	}
	elapsed := time.Since(began)
	slices.Sort(took)
	return float64(len(took)) / elapsed.Seconds(), took[len(took)*99/100], nil
}

// An asker is a connection that waits for an answer.
type asker struct {
	fd     int
	asked  time.Time
	answer [4 << 10]byte
	n      int
}

func (c *asker) dial(poll int, socket string, i int) (err error) {
	if c.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err = unix.Connect(c.fd, &unix.SockaddrUnix{Name: socket}); err == nil {
		err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})
	}
	if err != nil {
		unix.Close(c.fd)
	}
	return err
}

func (c *asker) ask(request []byte, now time.Time) error {
	c.asked, c.n = now, 0
	_, err := unix.Write(c.fd, request)
	return err
}

// answered takes what is there, and reports whether it is all of the answer.
func (c *asker) answered() (bool, error) {
	n, err := unix.Read(c.fd, c.answer[c.n:])
	if err != nil || n == 0 {
		return false, fmt.Errorf("the daemon has closed: %w", err)
	}
	c.n += n
	switch {
	case !bytes.HasSuffix(c.answer[:c.n], []byte("}\n")):
		return false, nil
	case !bytes.HasPrefix(c.answer[:c.n], []byte("HTTP/1.1 200")):
		return false, fmt.Errorf("answered: %s", c.answer[:c.n])
	}
	return true, nil
}
