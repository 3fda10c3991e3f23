#!/bin/sh
# Installs the programs that the tests run, or says which are missing and how
# to get them. Does nothing, quickly, when all are there.
set -eu

# command, Debian packages, what for
needs='
gcc              gcc,libc6-dev  the race detector
promtool         prometheus     checks the names and units of the metrics
systemd-analyze  systemd        checks the unit
'
PATH=$PATH:/usr/sbin:/sbin

missing=$(echo "$needs" | while read -r command package why; do
	[ -z "$command" ] || command -v "$command" >/dev/null || echo "$command $package $why"
done)
[ -n "$missing" ] || exit 0
packages=$(echo "$missing" | awk '{print $2}' | tr , '\n' | sort -u | xargs)

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	{
		echo "The tests need programs that are not installed:"
		echo "$missing" | while read -r command _ why; do printf '  %-16s %s\n' "$command" "$why"; done
		echo "On Debian or Ubuntu: sudo apt-get install --no-install-recommends $packages"
		echo "Elsewhere install the packages that have these programs, then run make test again."
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

echo "Installing for the tests: $packages"
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -qq -y --no-install-recommends $packages"
log=$(mktemp)
# shellcheck disable=SC2086 # the words of the command
$install >"$log" 2>&1 || { apt-get update -qq && $install; } >"$log" 2>&1 || {
	cat "$log" >&2
	exit 1
}
rm -f "$log"
