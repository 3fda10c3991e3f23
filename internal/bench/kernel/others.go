package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A usage is how the processors' time has been spent so far, all of them together.
type usage struct {
	at    time.Time
	all   time.Duration // for processes of any kind, and what the host took away
	ours  time.Duration // for the bench and what it has started
	cores int
}

// tick is the unit of /proc/stat.
const tick = time.Second / 100

func usageNow() usage {
	u := usage{at: time.Now(), cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		u.all = busy(string(text))
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			u.ours += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return u
}

// busy returns the time that /proc/stat has for user, nice, system and steal:
// not that of interrupts, which the bench's own packets take.
func busy(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	var user, nice, system, idle, wait, irq, soft, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); err != nil {
		return 0
	}
	return time.Duration(user+nice+system+steal) * tick
}

// others is the part of the processors, 0 to 1, that others have had since; the kernel's threads count as others.
func (u usage) others(now usage) float64 {
	spent := float64((now.all - u.all) - (now.ours - u.ours))
	return min(max(spent/float64(now.at.Sub(u.at))/float64(now.cores), 0), 1)
}
