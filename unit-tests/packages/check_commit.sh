#!/usr/bin/env bash
# check_commit.sh CMAKE DIRECTORY: a build knows the commit that it is made from, and compiles nothing anew while that stays the same
# (cmake/commit.cmake). Exits with 77 (skipped) where git is missing.
set -euo pipefail
cmake=$1 directory=$2
script=$(cd "$(dirname "$0")/../../cmake" && pwd)/commit.cmake
command -v git >/dev/null || { echo "SKIPPED: git is not installed" && exit 77; }

fail() { echo "FAILED: $*" >&2 && exit 1; }
in_tree() { git -C "$directory/tree" -c user.name=nobody -c user.email=nobody@localhost "$@"; }
# made SOURCE COMMIT WANTED: the source that is made of the tree says the commit.
made() {
  "$cmake" -D SOURCE="$1" -D OUTPUT="$directory/commit.cc" -D COMMIT="$2" -P "$script"
  grep -qF "kVarveCommit = \"$3\";" "$directory/commit.cc" || fail "$1 ($2): not $3: $(cat "$directory/commit.cc")"
}

rm -rf "$directory"
mkdir -p "$directory/tree/inside"
in_tree init -q
made "$directory/tree" "" unknown # no commit yet
in_tree commit -q --allow-empty -m first
first=$(in_tree rev-parse HEAD)
made "$directory/tree" "" "${first:0:12}"

touch -d @0 "$directory/commit.cc"
made "$directory/tree" "" "${first:0:12}"
[ "$(stat -c %Y "$directory/commit.cc")" -eq 0 ] || fail "the source was written anew though the commit is the same"
in_tree commit -q --allow-empty -m second
made "$directory/tree" "" "$(in_tree rev-parse HEAD | cut -c -12)"
[ "$(stat -c %Y "$directory/commit.cc")" -ne 0 ] || fail "the source was not written though there is another commit"

made "$directory/tree" 0.1.0-2~test 0.1.0-2~test
made "$directory/tree/inside" "" unknown # what is exported into a repository of something else
PATH=/nowhere "$cmake" -D SOURCE="$directory/tree" -D OUTPUT="$directory/commit.cc" -P "$script" || fail "it takes git"
grep -qF 'kVarveCommit = "unknown";' "$directory/commit.cc" || fail "without git: $(cat "$directory/commit.cc")"
if "$cmake" -D SOURCE="$directory/tree" -D OUTPUT="$directory/commit.cc" -D COMMIT='a"b' -P "$script" 2>"$directory/errors"; then
  fail "a quote was taken for part of a commit"
fi
grep -qF 'VARVE_COMMIT=a"b: takes letters' "$directory/errors" || fail "$(cat "$directory/errors")"
