#!/usr/bin/env bash
# run.sh HISTORY_MAIN SERVER_MAIN DIRECTORY [FIRST_SEED LAST_SEED]: records histories of concurrent clients across kills of the server, one
# a seed, and has Porcupine judge them; and sees to it that the judge refuses histories that are wrong. Exits with 77 (skipped)
# where Go is missing or its proxy can't be reached; everything else that fails is a failure. HISTORY_ARGUMENTS are further arguments of
# HISTORY_MAIN, which failover_main takes, too.
set -euo pipefail
history_main=$1 server=$2 directory=$3 first=${4:-1} last=${5:-3}
scripts=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory"
cd "$directory"

skip() { echo "SKIPPED: $*" && exit 77; }
command -v go >/dev/null || skip "go is not installed (packages-test.txt names what these tests need)"
if [ "$(cat built 2>/dev/null)" != "$(cksum <"$scripts/check.go")" ]; then
  cp "$scripts"/go.mod "$scripts"/go.sum "$scripts"/check.go .
  timeout 100 go mod download >build.log 2>&1 || { tail -5 build.log; skip "Porcupine could not be had: can its registry be reached?"; }
  timeout 200 go build -o check . || { echo "the checker does not compile"; exit 1; }
  cksum <"$scripts/check.go" >built
fi

refuses() {
  local code=0
  ./check "$@" || code=$?
  [ $code = 1 ] || { echo "the checker should have refused: check $*"; exit 1; }
}
./check "$scripts"/histories/fine.history
for wrong in "$scripts"/histories/wrong_*.history; do refuses "$wrong"; done

for seed in $(seq "$first" "$last"); do
  rm -rf data && mkdir data
  # shellcheck disable=SC2086
  "$history_main" "$server" data "$seed" ${HISTORY_ARGUMENTS:-} >"$seed.history"
  ./check "$seed.history"
  refuses -spoil "$seed" "$seed.history"
done
echo "seeds $first to $last: all linearizable"
