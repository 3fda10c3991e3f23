package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A contender is a relay that can be started between relayAddr and upstreamAddr.
type contender struct {
	name   string
	binary string                   // looked up on PATH; empty for this program
	config func(rate string) string // rate is empty for no limit
	args   func(file string) []string
}

var (
	shaperd = contender{"shaperd", "shaperd", func(rate string) string {
		links, classes := "", ""
		if rate != "" {
			links = ", upload: " + rate + ", download: " + rate
			classes = "classes: [{name: only, rate: 100%, default: true}]\n"
		}
		return fmt.Sprintf("%srelays:\n  - {name: bench, kind: forward, listen: %q, upstream: %q%s}\nmetrics: {listen: off}\n",
			classes, relayAddr, upstreamAddr, links)
	}, func(file string) []string { return []string{"run", "--config", file} }}

	haproxy = contender{"HAProxy", "haproxy", func(string) string {
		return `global
  nbthread 1
  maxconn 6000
defaults
  mode tcp
  option splice-auto
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen bench
  bind ` + relayAddr + `
  server upstream ` + upstreamAddr + "\n"
	}, func(file string) []string { return []string{"-db", "-f", file} }}

	nginx = contender{"nginx", "nginx", func(string) string {
		return `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
worker_processes 1;
daemon off;
master_process off;
error_log stderr crit;
worker_rlimit_nofile 20000;
events { worker_connections 16384; }
stream {
  access_log off;
  server { listen ` + relayAddr + ` backlog=4096; tcp_nodelay on; proxy_pass ` + upstreamAddr + `; proxy_timeout 1h; }
}
`
	}, func(file string) []string { return []string{"-c", file} }}

	ioCopy = contender{"io.Copy", "", func(string) string { return "" }, func(string) []string { return nil }}

	peers = []contender{haproxy, nginx, ioCopy}
)

// A process is a contender, or another role of this program, that runs.
type process struct{ cmd *exec.Cmd }

// start runs the contender until it accepts connections.
func (b *bench) start(c contender, rate string) (*process, error) {
	file := filepath.Join(b.dir, strings.ToLower(c.name)+".conf")
	if err := os.WriteFile(file, []byte(c.config(rate)), 0o644); err != nil {
		return nil, err
	}
	if c.binary == "" {
		return b.self(roleIOCopy, relayAddr)
	}
	path, err := b.look(c.binary)
	if err != nil {
		return nil, err
	}
	return b.spawn(exec.CommandContext(b.ctx, path, c.args(file)...), relayAddr)
}

// look finds a contender's program: shaperd is the one built for this run.
func (b *bench) look(binary string) (string, error) {
	if binary == shaperd.binary {
		return filepath.Join(b.dir, binary), nil
	}
	for _, dir := range []string{"", "/usr/sbin/"} {
		if path, err := exec.LookPath(dir + binary); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: apt-get install haproxy nginx-light libnginx-mod-stream", binary)
}

// self runs another role of this program that listens on addr.
func (b *bench) self(role, addr string) (*process, error) {
	cmd := exec.CommandContext(b.ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return b.spawn(cmd, addr)
}

func (b *bench) spawn(cmd *exec.Cmd, addr string) (*process, error) {
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd}
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return p, nil
		}
		if time.Now().After(deadline) {
			p.stop()
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s does not listen on %s: %w\n%s", cmd.Path, addr, err, text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// cpu is the time that the process's threads have run, from the scheduler's own account.
func (p *process) cpu() (total time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, task := range tasks {
		var ran int64
		if text, err := os.ReadFile(task); err == nil {
			_, _ = fmt.Sscan(string(text), &ran)
		}
		total += time.Duration(ran)
	}
	return total
}

// memory is the process's own memory in bytes: anonymous and private.
func (p *process) memory() (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var kb int64
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
			_, _ = fmt.Sscan(rest, &kb)
			bytes = kb << 10
		}
	}
	return bytes
}
