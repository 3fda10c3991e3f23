#!/bin/sh
# Prints where apt has Debian's main archive from.
set -eu

mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' "Codename: $(. /etc/os-release && echo "$VERSION_CODENAME")" 2>/dev/null | sort -u | head -n 1
}
from=$(mirror)
[ -n "$from" ] || { apt-get update -qq && from=$(mirror); }
[ -n "$from" ] || { echo "this needs a Debian whose apt has an archive: see /etc/apt/sources.list" >&2; exit 1; }
echo "$from"
