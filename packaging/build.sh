#!/bin/sh
# Packs bin/shaperd: "make deb" and "make rpm" call it when all that it needs is
# built. The same commit makes the same bytes. VERSION may name another version.
#
#	build.sh deb|rpm FOLDER
set -eu
umask 022

[ $# = 2 ] || { echo "usage: build.sh deb|rpm FOLDER" >&2; exit 2; }
format=$1 folder=$2
epoch=$(git log -1 --format=%ct)

# version is that of the last tag, v1.2.3, with +N.gCOMMIT if N commits came
# since; before the first tag one that is older than any; and +dirty if files
# differ from the commit's. Both formats sort it so, and allow no hyphen in it.
version() {
	if tag=$(git describe --tags --match 'v[0-9]*' 2>/dev/null); then
		printf %s "$tag" | sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)$/+\1.g\2/; s/-/~/g'
	else
		printf %s "0.0.0~git$(date -u -d "@$epoch" +%Y%m%d).$(git rev-parse --short=8 HEAD)"
	fi
	git diff --quiet HEAD || printf %s +dirty
}
PACKAGE_VERSION=${VERSION:-$(version)}
PACKAGE_ARCH=$(go env GOARCH)
[ "$PACKAGE_ARCH" != arm ] || PACKAGE_ARCH=arm$(go env GOARM | cut -c1)
export PACKAGE_VERSION PACKAGE_ARCH SOURCE_DATE_EPOCH="$epoch"

stage=bin/package
rm -rf "$stage"
make -s install DESTDIR="$stage" PREFIX=/usr
doc=$stage/usr/share/doc/shaperd
install -Dm644 packaging/shaperd.sysusers "$stage/usr/lib/sysusers.d/shaperd.conf"
install -Dm644 LICENSE "$doc/copyright"
install -m644 CHANGELOG.md "$doc/changelog"
gzip -9n "$doc/changelog" "$stage"/usr/share/man/man1/*
find "$stage" -exec touch -h -d "@$epoch" {} +

case $format-$PACKAGE_ARCH in
deb-386) file=shaperd_${PACKAGE_VERSION}_i386.deb ;;
deb-arm[67]) file=shaperd_${PACKAGE_VERSION}_armhf.deb ;;
deb-*) file=shaperd_${PACKAGE_VERSION}_$PACKAGE_ARCH.deb ;;
rpm-amd64) file=shaperd-$PACKAGE_VERSION.x86_64.rpm ;;
rpm-arm64) file=shaperd-$PACKAGE_VERSION.aarch64.rpm ;;
rpm-386) file=shaperd-$PACKAGE_VERSION.i386.rpm ;;
rpm-*) file=shaperd-$PACKAGE_VERSION.$PACKAGE_ARCH.rpm ;;
*) echo "build.sh: no format $format" >&2; exit 2 ;;
esac
bin/nfpm package --config packaging/nfpm.yaml --packager "$format" --target "$folder/$file" >/dev/null
echo "$folder/$file"
