#!/usr/bin/env bash
# test_deb.sh DIRECTORY: holds the packages in DIRECTORY (make deb) against what they promise. lintian has nothing to say. What was built
# is packed a second time under another time zone, language and mask of permissions, and gives the same packages, byte by byte. Then
# they are installed, upgraded and purged in a chroot: the running system's root below an overlay that is thrown away, so that nothing
# is fetched and the machine stays as it is. Exits with 77 where root, lintian or overlays are missing.
set -euo pipefail
packages=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

skip() { echo "SKIPPED: $*" && exit 77; }
fail() { echo "FAILED: $*" >&2 && exit 1; }
[ "$(id -u)" -eq 0 ] || skip "installing packages in a chroot takes root"
command -v lintian >/dev/null || skip "lintian is not installed (packages-deb.txt)"
[ "$(find "$packages" -name '*.deb' | wc -l)" -ge 4 ] || fail "there are no packages in $packages: make deb"

lintian --allow-root --fail-on error,warning "$packages"/*.changes
echo "lintian: nothing to say"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/first"
cp -p "$packages"/*.deb "$work/first"
(umask 077 && TZ=Pacific/Kiritimati LC_ALL=C "$here/make_deb.sh" "$packages") >"$work/packing" 2>&1 ||
  fail "the packages could not be packed again: $(tail -20 "$work/packing")"
for package in "$work"/first/*.deb; do
  again=$packages/$(basename "$package")
  cmp -s "$package" "$again" && continue
  diff <(dpkg-deb -c "$package") <(dpkg-deb -c "$again") || true
  fail "$(basename "$package") is another one when it is packed again"
done
echo "The packages are the same when they are packed again"

# The new versions that are upgraded to are the same packages under another number.
for version in 0.1.1~test 0.1.2~test; do
  dpkg-deb -R "$packages"/varve-server_*.deb "$work/tree"
  sed -i "s/^Version: .*/Version: $version/" "$work/tree/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$work/tree" "$work/varve-server_$version.deb" >/dev/null
  rm -rf "$work/tree"
done
cp "$packages"/*.deb "$work"
cp "$here/test_deb_inside.sh" "$work"

# A mount namespace of its own: its mounts go with its last process, and a PID namespace ends them all.
WORK=$work unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  mkdir "$WORK/overlay"
  mount -t tmpfs tmpfs "$WORK/overlay"
  mkdir "$WORK/overlay/upper" "$WORK/overlay/work" "$WORK/overlay/root"
  root=$WORK/overlay/root
  mount -t overlay overlay -o "lowerdir=/,upperdir=$WORK/overlay/upper,workdir=$WORK/overlay/work" "$root" || exit 77
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mkdir "$root/run/packages"
  cp "$WORK"/*.deb "$WORK/test_deb_inside.sh" "$root/run/packages"
  rm -f "$root/usr/sbin/policy-rc.d"
  chroot "$root" bash -euo pipefail /run/packages/test_deb_inside.sh' || {
  code=$?
  [ $code -ne 77 ] || skip "this machine mounts no overlay over its root"
  exit $code
}
echo "The packages were installed, upgraded and purged"
