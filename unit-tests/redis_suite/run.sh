#!/usr/bin/env bash
# run.sh SERVER_MAIN DIRECTORY [all]: Redis 7.0's own tests of strings, run by Redis' test program against server_main as a server that it
# did not start. They come from Debian's source package of Redis, fetched once into DIRECTORY from the mirror that apt is set up with,
# and are never copied into this tree. What is left out, and why, stands in skips.txt; with `all` these tests run, too, and those that
# pass are named. Exits with 77 (skipped) where tclsh is missing or the package can't be had; everything else that fails is a failure.
set -euo pipefail
server=$1 directory=$2 all=${3:-}
scripts=$(cd "$(dirname "$0")" && pwd)
units=(type/string type/incr keyspace scan quit protocol expire multi other bitops bitfield pubsub dump info-command acl acl-v2 tracking
  pause)
mkdir -p "$directory"
cd "$directory"

skip() { echo "SKIPPED: $*" && exit 77; }
need() { command -v "$1" >/dev/null || skip "$1 is not installed (packages-test.txt names what these tests need)"; }
need tclsh
need apt-get

# Source packages are looked for where this machine has its Debian packages from, in lists of our own: apt's are left alone.
fetch() {
  rm -rf apt suite && mkdir -p apt/sources apt/lists/partial apt/cache/archives/partial
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    [ -f "$file" ] || continue
    sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' "$file" >"apt/sources/${file##*/}"
  done
  local options=(-q -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$PWD/apt/sources" -o "Dir::State::Lists=$PWD/apt/lists"
    -o "Dir::Cache=$PWD/apt/cache" -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=2
    -o Acquire::http::Timeout=20)
  timeout 100 apt-get "${options[@]}" update && cd apt && timeout 100 apt-get "${options[@]}" source --download-only redis && cd .. &&
    mkdir suite.new && tar -xf apt/redis_7.0.*.orig.tar.gz -C suite.new --strip-components=1 && rm -rf apt && mv suite.new suite
}
if [ ! -d suite ]; then
  rm -rf suite.new
  (fetch) >fetch.log 2>&1 || { tail -5 fetch.log; skip "Debian's source package of Redis 7.0 could not be had: can the mirror be reached?"; }
fi

# The tests of users keep off servers that they did not start, lest a user is left behind. This one is theirs alone.
sed -i '1s/ external:skip//' suite/tests/unit/acl.tcl suite/tests/unit/acl-v2.tcl

rm -rf data server.log
"$server" --dir=data --port=0 --http-port=0 --sync=everysec --logfile=server.log &
process=$!
trap 'kill $process 2>/dev/null; wait $process 2>/dev/null || true' EXIT
for _ in $(seq 1200); do  # a disk may stand still for a while
  port=$(sed -n 's/.* on 127\.0\.0\.1:\([0-9]*\),.*/\1/p' server.log 2>/dev/null || true)
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || { cat server.log; echo "the server did not start"; exit 1; }

# A line of skips.txt is a name of a test, `## why` above a group of them, `--option` of the test program, or a comment (#).
options=(--host 127.0.0.1 --port "$port" --timeout 60 --durable)
for unit in "${units[@]}"; do options+=(--single "unit/$unit"); done
mapfile -t -O ${#options[@]} options < <(grep '^--' "$scripts/skips.txt" | tr ' ' '\n')
[ "$all" = all ] || options+=(--skipfile "$scripts/skips.txt")
code=0
(cd suite && timeout 300 ./runtest "${options[@]}") 2>&1 | sed 's/\x1b\[[0-9;]*m//g' >results.log || code=$?
kill -0 $process || { tail -20 server.log; echo "the server ended"; exit 1; }
awk -f "$scripts/report.awk" "$scripts/skips.txt" results.log || code=1
exit $code
