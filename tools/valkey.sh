#!/bin/sh
# Puts Valkey into FOLDER, under the names that Redis's programs have, and installs
# nothing. It is that of Debian's backports. Does nothing when it is there.
set -eu

[ $# = 1 ] || { echo "usage: valkey.sh FOLDER" >&2; exit 2; }
[ ! -e "$1" ] || exit 0
from=$(sh "$(dirname "$0")/mirror.sh")

new=$(pwd)/$1.$$
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new/lists/partial" "$new/cache/archives/partial" "$new/tree"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")-backports
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $suite main" >"$new/sources.list"
apt() {
	apt-get -qq -o Dir::Etc::sourcelist="$new/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$new/lists" \
		-o Dir::Cache="$new/cache" -o APT::Sandbox::User=root "$@"
}

echo "Fetching Valkey of $suite"
apt update
(cd "$new" && apt download valkey-server valkey-tools)
for package in "$new"/*.deb; do
	dpkg-deb -x "$package" "$new/tree"
done
rm -rf "$1.part"
mkdir -p "$1.part"
cp -L "$new/tree/usr/bin/valkey-server" "$1.part/redis-server"
ln -s redis-server "$1.part/redis-sentinel" # it is one program, which goes by its name
"$1.part/redis-server" --version
mv "$1.part" "$1"
