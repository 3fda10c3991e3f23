#!/bin/sh
# Fetches Debian's cloud kernel with apt and keeps in FOLDER what the test machine
# needs of it: vmlinuz, and the modules for networks. Does nothing when it is there.
set -eu

[ $# = 1 ] || { echo "usage: kernel.sh FOLDER" >&2; exit 2; }
[ ! -e "$1/vmlinuz" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
	echo "make test-vm takes its kernel from Debian's package linux-image-cloud-amd64: run it on Debian, amd64." >&2
	exit 1
fi

new=$1.new
rm -rf "$new"
mkdir -p "$new"
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

# download gets the package that linux-image-cloud-amd64 stands for.
download() {
	package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-\)/\1/p')
	[ -n "$package" ] && (cd "$new" && apt-get download -qq -o APT::Sandbox::User=root "$package")
}
echo "Fetching the test machine's kernel"
download 2>/dev/null || { apt-get update -qq && download; } || {
	echo "apt has no linux-image-cloud-amd64: see /etc/apt, and whether apt-get update works." >&2
	exit 1
}
dpkg -x "$new"/*.deb "$new"

# The modules are in /lib up to Debian 12, in /usr/lib since; compressed since 13.
[ -d "$new/lib/modules" ] || mv "$new/usr/lib" "$new/lib"
(
	cd "$new"/lib/modules/*/kernel
	find . -name '*.ko*' ! -path './net/*' ! -path './drivers/net/*' ! -path './lib/*' ! -path '*/crypto/*' -delete
	rm -rf drivers/net/ethernet
	find . -name '*.ko.xz' -exec xz -d {} +
	find . -type d -empty -delete
)
version=$(basename "$new"/lib/modules/*)
PATH=$PATH:/usr/sbin:/sbin depmod -b "$new" "$version"
rm -rf "$1"
mkdir "$1"
mv "$new/lib" "$new/boot/vmlinuz-$version" "$1"
mv "$1/vmlinuz-$version" "$1/vmlinuz"
