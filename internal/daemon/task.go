package daemon

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// A task is a part of the daemon that runs until its context is done.
type task interface {
	// Run returns nil after ctx is done, when the task's work is wound up.
	Run(ctx context.Context) error
	// Ready is closed once the task does its work.
	Ready() <-chan struct{}
	// String names the task in errors. It is called before Run.
	String() string
}

// readiness is the part of a task that says when it is ready.
type readiness chan struct{}

func (r readiness) Ready() <-chan struct{} { return r }

// tasks are those that run. When one fails, ctx is done, and with it all of
// them. Only one goroutine may use it.
type tasks struct {
	group *errgroup.Group
	ctx   context.Context
}

func newTasks(ctx context.Context) tasks {
	group, ctx := errgroup.WithContext(ctx)
	return tasks{group, ctx}
}

// running is a task that was started.
type running struct {
	task
	stop  context.CancelFunc // have Run wind up
	ended <-chan struct{}    // Run has returned
}

var errEnded = errors.New("ended unasked")

func (ts tasks) start(t task) *running {
	ctx, stop := context.WithCancel(ts.ctx)
	ended := make(chan struct{})
	name := t.String()
	ts.group.Go(func() error {
		defer close(ended)
		defer stop()
		err := t.Run(ctx)
		if err == nil && ctx.Err() == nil {
			err = errEnded
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return &running{t, stop, ended}
}

// awaitReady waits until t is ready or all tasks have been told to end.
func (ts tasks) awaitReady(t task) {
	select {
	case <-t.Ready():
	case <-ts.ctx.Done():
	}
}
