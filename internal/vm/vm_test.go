//go:build vm

package vm

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each in turn, on two ends of a veth pair.
var commands = []string{
	"ip link add veth0 type veth peer name veth1",
	"ip link set veth0 up",
	"ip link set veth1 up",

	// Queues.
	"tc qdisc replace dev veth0 root fq",
	"tc qdisc replace dev veth0 root cake bandwidth 10mbit",
	"tc qdisc replace dev veth0 root netem delay 10ms loss 1%",
	"tc qdisc replace dev veth0 root handle 1: htb default 10",
	"tc class add dev veth0 parent 1: classid 1:10 htb rate 10mbit",
	"tc qdisc add dev veth0 parent 1:10 fq_codel",
	"tc qdisc replace dev veth1 root tbf rate 1mbit burst 10kb latency 50ms",
	"tc qdisc add dev veth0 clsact",

	// Filters and actions.
	"tc filter add dev veth0 parent 1: protocol ip u32 match ip dport 80 0xffff classid 1:10",
	"tc filter add dev veth0 egress pref 1 protocol ip flower ip_proto tcp dst_port 80 action skbedit priority 1:10",
	"tc filter add dev veth0 egress pref 2 matchall action police rate 1mbit burst 10k",
	"tc filter add dev veth0 egress pref 3 bpf bytecode 1,6~0~0~0 action ok",
	"ip link add ifb9 type ifb",
	"tc filter add dev veth0 ingress matchall action mirred egress redirect dev ifb9",

	// Devices.
	"ip link add dummy9 type dummy",
	"ip link add link veth0 name veth0.5 type vlan id 5",
	"ip link add link veth0 name veth0.6 type vlan protocol 802.1ad id 6",
	"ip netns add other",
	"ip link set veth1 netns other",
}

func TestKernelHasWhatTestsNeed(t *testing.T) {
	if os.Getenv("SHAPERD_VM") != "1" {
		t.Fatal("SHAPERD_VM is not 1: run this by make test-vm")
	}
	for _, command := range commands {
		words := strings.Fields(command)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "~", " ")
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// return 0, as instructions.
var program = [2]uint64{0xb7, 0x95}

func TestKernelLoadsEBPF(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Error(err)
	}
	license := []byte("GPL\x00")
	attributes := struct {
		kind, count           uint32
		instructions, license unsafe.Pointer
	}{unix.BPF_PROG_TYPE_SCHED_CLS, uint32(len(program)), unsafe.Pointer(&program), unsafe.Pointer(&license[0])}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	if errno != 0 {
		t.Fatalf("load a program: %v", errno)
	}
	unix.Close(int(fd))
}
