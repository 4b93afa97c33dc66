#!/usr/bin/env bash
# run.sh SERVER_MAIN DIRECTORY [all] [--store=hbase ...]: Redis 7.0's own tests of strings, run by Redis' test program against
# server_main as a server that it did not start. They come from Debian's source package of Redis, fetched once into DIRECTORY from the
# mirror that apt is set up with, and are never copied into this tree. What is left out, and why, stands in skips.txt; with `all` these
# tests run, too, and those that pass are named. Exits with 77 (skipped) where tclsh is missing or the package can't be had; everything
# else that fails is a failure.
#
# Arguments that begin with -- are server_main's, and say that its store is on other machines. There the tests of data run, in namespaces
# whose keys are one group each (groups.tcl), without what skips_hbase.txt names.
set -euo pipefail
server=$1 directory=$2
shift 2
all='' store=()
for argument in "$@"; do
  if [[ $argument == --* ]]; then store+=("$argument"); else all=$argument; fi
done
scripts=$(cd "$(dirname "$0")" && pwd)
units=(type/string type/incr keyspace scan quit protocol expire multi other bitops bitfield pubsub dump info-command acl acl-v2 tracking
  pause)
if [ ${#store[@]} -gt 0 ]; then units=(type/string type/incr keyspace scan expire multi bitops bitfield); fi
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

if [ ${#store[@]} -gt 0 ]; then flags=("${store[@]}"); else flags=(--sync=everysec); fi
rm -rf data server.log
"$server" --dir=data --port=0 --http-port=0 --logfile=server.log "${flags[@]}" &
process=$!
trap 'kill $process 2>/dev/null; wait $process 2>/dev/null || true' EXIT
for _ in $(seq 1200); do  # a disk may stand still for a while
  port=$(sed -n 's/.* on 127\.0\.0\.1:\([0-9]*\),.*/\1/p' server.log 2>/dev/null || true)
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || { cat server.log; echo "the server did not start"; exit 1; }

skips=$scripts/skips.txt
if [ ${#store[@]} -gt 0 ]; then
  # Databases that these tests select.
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  for database in 0 1 5 9 10; do
    printf 'NAMESPACE CREATE db%s TOGETHER yes\r\n' "$database" >&3
    IFS= read -r -t 60 reply <&3 || reply='no reply'
    [[ $reply == +OK* || $reply == *'exists already'* ]] || { echo "db$database was not created: $reply"; exit 1; }
  done
  exec 3>&-
  grep -q VARVE_REDIS_GROUPS suite/tests/support/redis.tcl ||
    echo 'if {[info exists ::env(VARVE_REDIS_GROUPS)]} {source $::env(VARVE_REDIS_GROUPS)}' >>suite/tests/support/redis.tcl
  export VARVE_REDIS_GROUPS=$scripts/groups.tcl
  skips=$PWD/skips.txt
  cat "$scripts/skips.txt" "$scripts/skips_hbase.txt" >"$skips"
fi

# A line of skips.txt is a name of a test, `## why` above a group of them, `--option` of the test program, or a comment (#).
options=(--host 127.0.0.1 --port "$port" --timeout 60 --durable)
for unit in "${units[@]}"; do options+=(--single "unit/$unit"); done
mapfile -t -O ${#options[@]} options < <(grep '^--' "$skips" | tr ' ' '\n')
[ "$all" = all ] || options+=(--skipfile "$skips")
code=0
(cd suite && timeout 300 ./runtest "${options[@]}") 2>&1 | sed 's/\x1b\[[0-9;]*m//g' >results.log || code=$?
kill -0 $process || { tail -20 server.log; echo "the server ended"; exit 1; }
# Where some of the files run, only their own list has to name tests of them.
some=''
if [ ${#store[@]} -gt 0 ]; then some=$scripts/skips_hbase.txt; fi
awk -v some="$some" -f "$scripts/report.awk" "$skips" results.log || code=1
exit $code
