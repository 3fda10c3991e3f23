package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/internal/store/storetest"
)

func TestPaceOutlastsAnOutage(t *testing.T) {
	redis := storetest.Start(t)
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", closed(redis.URL())))
	p.await("msg=ready")
	redis.Kill()
	want := strings.Repeat("0123456789abcde\n", 1000)
	pace := start(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(want) }, "pace", "backup", "--socket", p.socket)
	if line := pace.await("waiting"); !strings.HasPrefix(line, `shaperd: waiting: class "backup": nobody can say, and on_outage is closed: `) {
		t.Errorf("pace prints %q", line)
	}
	redis.Restart()
	if code, said := pace.exit(); code != 0 || pace.stdout.String() != want {
		t.Errorf("exit code %d and %d of %d bytes once Redis is back; %s", code, pace.stdout.Len(), len(want), said)
	}
}

// A copying is a pace in this process.
type copying struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	said bytes.Buffer // once code is there
	code chan int
}

func startPace(t *testing.T, p *process) *copying {
	t.Helper()
	c := &copying{t: t, code: make(chan int, 1)}
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	c.in, c.out = in, out
	go func() {
		code := report(run(t.Context(), []string{"pace", "backup", "--socket", p.socket}, stdin, stdout, &c.said), &c.said)
		stdin.Close()
		stdout.Close()
		c.code <- code
	}()
	return c
}

// part is what pace reads at once.
const part = 16 << 10

// writes returns when pace has read a part, and asks for it.
func (c *copying) writes() {
	c.t.Helper()
	if _, err := c.in.Write(make([]byte, part)); err != nil {
		c.t.Fatal(err)
	}
}

// reads returns when a part has passed.
func (c *copying) reads() {
	c.t.Helper()
	if _, err := io.ReadFull(c.out, make([]byte, part)); err != nil {
		c.t.Fatal(err)
	}
}

// again starts another daemon in the place of one that has ended.
func again(t *testing.T, ended *process, policy string) *process {
	t.Helper()
	p := start(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SHAPERD_SOCKET="+ended.socket) }, "run", "--config", policy)
	p.await("msg=ready")
	return p
}

// A restart of the daemon, even of one that was killed, ends no copy.
func TestPaceOutlastsARestart(t *testing.T) {
	policy := file(t, "shaperd.yaml", admitting)
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	c := startPace(t, p)
	c.writes()
	c.reads()
	p.signal(unix.SIGKILL)
	p.exit()
	c.writes()
	again(t, p, policy)
	c.reads()
	c.in.Close()
	if code := <-c.code; code != 0 {
		t.Errorf("exit code %d once the daemon is back; %s", code, &c.said)
	}
}

// A daemon that does not come back ends it, after what was read before.
func TestPaceGivesUpOnADaemonThatIsGone(t *testing.T) {
	defer func(d time.Duration) { absence = d }(absence)
	absence = 1
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", admitting))
	p.await("msg=ready")
	c := startPace(t, p)
	c.writes()
	c.reads()
	p.signal(unix.SIGTERM)
	p.exit()
	c.writes()
	c.reads()
	if code := <-c.code; code != 1 || !strings.HasPrefix(c.said.String(), "shaperd: control socket "+p.socket+": no daemon runs here") {
		t.Errorf("exit code %d; %s", code, &c.said)
	}
}
