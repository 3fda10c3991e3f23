#!/bin/sh
# The first process of the emulated machine: runs the tests, then turns it off.
export PATH=/bin:/sbin HOME=/tmp TMPDIR=/tmp SHAPERD_VM=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t bpf bpf /sys/fs/bpf
hostname vm
ip link set lo up
# The kernel asks for most modules by itself; devices are made by name.
modprobe -a ifb numifbs=0 2>/dev/null
for module in veth dummy 8021q sch_htb sch_tbf sch_fq_codel sch_cake sch_netem sch_ingress cls_u32 cls_bpf cls_flower act_mirred; do
	modprobe $module
done
chmod 755 / /tests
echo "### kernel $(uname -r)"
for binary in $(find /tests -name run.test | sort); do
	folder=$(dirname "$binary")
	cd "$folder"
	timeout 300 ./run.test -test.v -test.timeout 290s 2>&1
	echo "### ended $? ${folder#/tests/}"
done
poweroff -f
