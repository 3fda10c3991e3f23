#!/bin/sh
# Installs the programs that make test, bench-relay or bpf need (deps.sh test,
# and so on), or says which are missing and how to get them. Does
# nothing, quickly, when all are there.
set -eu

# command or file, Debian packages, what for
case ${1:-} in
test) needs='
gcc              gcc,libc6-dev        race detector
promtool         prometheus           check of metrics and alerts
prometheus       prometheus           queries of the dashboard
systemd-analyze  systemd              check of the unit
chromium         chromium             browser that tests the web page
ip               iproute2             interfaces and qdiscs
tmux             tmux                 terminal of shaperd top
redis-server     redis-server         real server of shared classes
redis-sentinel   redis-sentinel       real failover of shared classes
nginx            nginx-light          peer that asks for admission
' ;;
test-valkey) needs='
dpkg-deb         dpkg                 what is in a package
' ;;
test-vm) needs='
qemu-system-x86_64 qemu-system-x86   emulated machine
busybox          busybox-static       shell in the machine
depmod           kmod                 modules of its kernel
ip               iproute2             tests of the kernel
iperf3           iperf3               tests of the kernel
' ;;
bench-relay) needs='
ip               iproute2             network namespace
haproxy          haproxy              contender
nginx            nginx-light          contender
/usr/lib/nginx/modules/ngx_stream_module.so libnginx-mod-stream contender
' ;;
bench-admission) needs='
redis-server     redis-server         where hosts share
' ;;
bench-kernel) needs='
ip               iproute2             tc, which is measured beside
' ;;
test-systemd) needs='
mmdebstrap       mmdebstrap           Debian in a folder
systemd-nspawn   systemd-container    systemd of it as a machine
dpkg-deb         dpkg                 what is in a package
rpm              rpm                  what is in a package
' ;;
demo-kernel) needs='
ip               iproute2             tc, which deletes a qdisc
' ;;
demo-shared) needs='
redis-server     redis-server         what hosts share a rate by
' ;;
bpf) needs='
clang-14         clang-14             compiler
llvm-strip-14    llvm-14              without debugging information
/usr/include/bpf/bpf_helpers.h libbpf-dev helpers
' ;;
*)
	echo "usage: deps.sh test|test-valkey|test-vm|test-systemd|demo-kernel|demo-shared|bench-relay|bench-admission|bench-kernel|bpf" >&2
	exit 2
	;;
esac
PATH=$PATH:/usr/sbin:/sbin

missing=$(echo "$needs" | while read -r what packages why; do
	[ -z "$what" ] || [ -e "$what" ] || command -v "$what" >/dev/null || echo "$what $packages $why"
done)
[ -n "$missing" ] || exit 0
packages=$(echo "$missing" | awk '{print $2}' | tr , '\n' | sort -u | xargs)

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	{
		echo "make $1 needs programs that are not installed:"
		echo "$missing" | while read -r what _ why; do printf '  %-18s %s\n' "$what" "$why"; done
		echo "On Debian or Ubuntu: sudo apt-get install --no-install-recommends $packages"
		echo "Elsewhere install the packages that have them. Then run it again."
	} >&2
	exit 1
fi

# No package may start its service: 101 is "not allowed" for invoke-rc.d.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod +x $policy
fi

echo "Installing for make $1: $packages"
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -qq -y --no-install-recommends $packages"
log=$(mktemp)
# shellcheck disable=SC2086 # the words of the command
$install >"$log" 2>&1 || { apt-get update -qq && $install; } >"$log" 2>&1 || {
	cat "$log" >&2
	exit 1
}
rm -f "$log"
