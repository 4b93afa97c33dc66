#!/usr/bin/env bash
# make_deb.sh DIRECTORY: builds the Debian packages of this tree and leaves them in DIRECTORY. The tree is copied there first (what git
# tracks or would track, as it is now), because a Debian source package has its debian/ at the top. No test is built or run, and nothing
# is fetched: the packages of packages-deb.txt have to be installed.
#
# The packages depend on the tree, the commit and the versions of what they are built with, and on nothing else of the machine. Their
# files have the time of SOURCE_DATE_EPOCH, which is that of debian/changelog where it is not set; VARVE_COMMIT names the commit where
# git can't.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
tree=$out/varve-$version
rm -f "$out"/*.deb "$out"/*.ddeb "$out"/*.buildinfo "$out"/*.changes
mkdir -p "$tree"
# What is no longer tracked goes; the build of the last time stays, so that a second run compiles only what has changed.
find "$tree" -mindepth 1 -maxdepth 1 ! -name 'obj-*' -exec rm -rf {} +
rm -rf "$tree"/obj-*/man # manual pages say the date of SOURCE_DATE_EPOCH
if git rev-parse --git-dir >/dev/null 2>&1; then
  VARVE_COMMIT=${VARVE_COMMIT:-$(git rev-parse --verify --quiet --short=12 HEAD || true)}
  git ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - | tar -x -C "$tree"
else
  tar -c --exclude=./build --exclude=./data . | tar -x -C "$tree"
fi
cp -R "$tree/packaging/debian" "$tree/debian"

export VARVE_COMMIT=${VARVE_COMMIT:-unknown}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)}

# debhelper gives the build a home of its own; ccache, where there is one, keeps its files where they are.
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}
cd "$tree"
dpkg-buildpackage --build=binary --no-pre-clean --no-sign --jobs="${JOBS:-2}"
