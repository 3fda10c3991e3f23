#!/bin/sh
# Runs the tests of packages (./netlink/... if none are given) on a fuller kernel
# than the machine may have: Debian's, in an emulated machine that boots from
# memory. It needs no privileges of its own but those of apt-get. What it builds
# is kept in bin/vm. It fails on a failed, skipped or missing test.
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
cache=bin/vm
limit=600 # seconds, for all of it

# The kernel, with the modules that networks need.
if [ ! -e $cache/vmlinuz ]; then
	rm -rf $cache && mkdir -p $cache/kernel $cache/root/lib/modules
	image=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
	[ -n "$image" ] || { echo "test-vm: apt knows no linux-image-cloud-amd64: run apt-get update, on Debian" >&2; exit 1; }
	(cd $cache && apt-get download -q "$image" >/dev/null)
	dpkg -x $cache/linux-image-*.deb $cache/kernel
	release=$(basename $cache/kernel/lib/modules/*)
	mkdir -p "$cache/root/lib/modules/$release/kernel/drivers"
	for part in net lib crypto drivers/net; do
		cp -a "$cache/kernel/lib/modules/$release/kernel/$part" "$cache/root/lib/modules/$release/kernel/$part"
	done
	cp $cache/kernel/lib/modules/"$release"/modules.builtin* $cache/kernel/lib/modules/"$release"/modules.order "$cache/root/lib/modules/$release"
	depmod -b $cache/root "$release"
	cp $cache/kernel/boot/vmlinuz-* $cache/vmlinuz
	rm -rf $cache/kernel $cache/*.deb
fi

# The machine's files: busybox, some programs with their libraries, the tests.
root=$cache/initramfs
rm -rf $root && mkdir -p $root/bin $root/sbin $root/usr/sbin $root/proc $root/sys $root/dev $root/run $root/tmp $root/etc $root/tests
cp -a $cache/root/lib $root/
cp /bin/busybox $root/bin/
for applet in $(/bin/busybox --list); do
	[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
ln -s /bin/busybox $root/sbin/modprobe
for program in ip tc dash; do # busybox's shell prefers its own ip
	found=$(command -v $program)
	rm -f $root/bin/$program
	cp -L "$found" $root/bin/
	ldd "$found" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
done
ln -sf dash $root/bin/sh
cp tools/vm/init.sh $root/init
chmod +x $root/init
echo 'root:x:0:0::/:/bin/sh' >$root/etc/passwd

wanted=0
for package in $(go list -f '{{if .TestGoFiles}}{{.ImportPath}}{{end}}{{if .XTestGoFiles}}{{.ImportPath}}{{end}}' "${@:-./netlink/...}" | sort -u); do
	folder=$(go list -f '{{.Dir}}' "$package")
	name=${package#shaperd/}
	mkdir -p "$root/tests/$name"
	CGO_ENABLED=0 go test -c -tags vm -o "$root/tests/$name/run.test" "$package"
	# What the tests read beside testdata: sources and sums.
	find "$folder" -maxdepth 1 -type f ! -name '*.go' -exec cp {} "$root/tests/$name/" \;
	[ ! -d "$folder/testdata" ] || cp -r "$folder/testdata" "$root/tests/$name/"
	wanted=$((wanted + 1))
done
(cd $root && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >$cache/initramfs.gz

console=$cache/console
timeout --foreground $limit qemu-system-x86_64 -M q35 -cpu max -accel tcg,thread=multi -smp 2 -m 1536 -nographic -no-reboot \
	-kernel $cache/vmlinuz -initrd $cache/initramfs.gz -append 'console=ttyS0 quiet panic=-1' </dev/null 2>&1 | tr -d '\r' >$console || true

ended=$(grep -c '^### ended 0 ' $console) || true
passed=$(grep -c '^ *--- PASS' $console) || true
failed=$(grep -c '^ *--- FAIL' $console) || true
skipped=$(grep -c '^ *--- SKIP' $console) || true
sed -n 's/^.*### kernel /on Linux /p; s/^### ended \([0-9]*\) \(.*\)/\2: exit code \1/p' $console
if [ "$failed" != 0 ] || [ "$skipped" != 0 ] || [ "$ended" != "$wanted" ] || [ "$passed" = 0 ]; then
	echo "test-vm: $ended of $wanted packages ended well; the console:" >&2
	tail -150 $console >&2
	printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	exit 1
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
