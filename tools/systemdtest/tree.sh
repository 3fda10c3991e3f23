#!/bin/sh
# Builds a minimal Debian of SUITE with systemd in FOLDER, from the mirror that
# apt uses here. Does nothing when it is there.
set -eu

[ $# = 2 ] || { echo "usage: tree.sh SUITE FOLDER" >&2; exit 2; }
[ ! -e "$2" ] || exit 0

from=$(sh "$(dirname "$0")/../mirror.sh")

new=$2.$$
rm -rf "$new"
mkdir -p "$(dirname "$2")"
trap 'rm -rf "$new" "$new.log"' EXIT
trap 'exit 1' HUP INT TERM

# Nobody reads what is in the tree, and nothing in it must survive a crash.
echo "Fetching Debian $1"
unshare --mount --propagation private mmdebstrap --variant=essential --include=systemd,systemd-sysv,dbus,iproute2,passwd \
	--dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' "$1" "$new" "$from" >"$new.log" 2>&1 || { cat "$new.log" >&2; exit 1; }
touch "$new/etc/.updated" "$new/var/.updated" # or each boot would bring caches up to date
mv "$new" "$2"
