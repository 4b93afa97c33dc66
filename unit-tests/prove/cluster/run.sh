#!/usr/bin/env bash
# run.sh short|long BUILD_DIRECTORY DIRECTORY: starts a cluster of HBase in DIRECTORY, runs what is tested over one, and removes it:
# the client of HBase's calls, the conformance of the store, servers while regions split and nodes die (this folder), whether histories of
# clients of two servers are linearizable, random commands beside redis-server, and, in the long form, Redis' own tests. The parts that
# measure no times run beside each other, and processes are killed behind them, on a machine that is free. Exits with 77 (skipped) where a
# cluster can't be had; everything else that fails is a failure. A part that this machine or this build lacks the means for is named in
# the short form, and fails the long one, as does a cluster that takes longer or more memory than docs/scale_cluster.md says.
# CLUSTER_TESTS_FILTER chooses tests of cluster_tests alone.
set -euo pipefail
form=$1 build=$(realpath "$2")
scripts=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$scripts/../../.." && pwd)
mkdir -p "$3"
directory=$(realpath "$3")

skip() { echo "SKIPPED: $*" && exit 77; }
command -v javac >/dev/null || skip "javac is not installed (packages-test.txt names what these tests need)"

is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# The first of 40 ports that nobody listens on.
free_ports() {
  local base port
  for base in $(seq 21800 40 24000); do
    for port in $(seq "$base" $((base + 39))); do is_free "$port" || continue 2; done
    echo "$base" && return
  done
  return 1
}

export VARVE_CLUSTER_DIR=$directory/cluster VARVE_CLUSTER_CLASSES=$directory/classes
VARVE_CLUSTER_PORTS=${VARVE_CLUSTER_PORTS:-$(free_ports)}
export VARVE_CLUSTER_PORTS
# Processes that live for some minutes, on few cores, lose more by optimizing their code than they gain by it.
export VARVE_CLUSTER_JAVA=-XX:TieredStopAtLevel=1
cluster=$root/scripts/hbase_cluster.sh

code=0
jars=$("$cluster" jars) || code=$?
if [ $code -eq 77 ]; then skip "there is no cluster: see above"; fi
[ $code -eq 0 ] || exit $code
[ -x "$build/cluster_tests" ] || skip "this build lacks the store over HBase (make test-cluster builds it)"
"$cluster" wipe
running=()  # the parts that run, each with its process group
# Parts that went on would start the cluster again.
end() {
  local part
  for part in "${running[@]}"; do kill -KILL -- "-$part" 2>/dev/null || true; done
  "$cluster" wipe
}
trap end EXIT
trap 'exit 1' INT TERM
begun=$SECONDS
VARVE_CLUSTER_QUORUM=$("$cluster" up | tail -n 1)
export VARVE_CLUSTER_QUORUM
# The port of its master, as `hbase_cluster.sh status` tells it.
export HBASE_TEST_MASTERS=127.0.0.1:$((VARVE_CLUSTER_PORTS + 3))
up_seconds=$((SECONDS - begun))
echo "the cluster is up after $up_seconds s: $VARVE_CLUSTER_QUORUM"
rm -rf "$VARVE_CLUSTER_CLASSES"
javac -cp "$jars/*" -d "$VARVE_CLUSTER_CLASSES" "$scripts/ClusterAdmin.java"
if [ "$form" = long ]; then export VARVE_CLUSTER_LONG=1; fi

failed=0 most_memory=0
readonly up_goal=120 memory_goal=4096  # seconds, MiB
# Keeps the most memory that the processes of the cluster have had together, in MiB.
note_memory() {
  local memory
  memory=$("$cluster" status | awk '$5 == "MiB" {sum += $4} END {print sum + 0}') || true  # 3: one of them does not run
  if [ "$memory" -gt "$most_memory" ]; then most_memory=$memory; fi
}

# Says that a part is left out; the long form leaves none out.
leave_out() {
  echo "---- $*"
  if [ "$form" = long ]; then failed=1; fi
}

# Fails the long form where a figure is above its goal.
hold() {
  local what=$1 figure=$2 goal=$3 unit=$4
  echo "---- $what: $figure $unit, the goal is $goal"
  if [ "$form" = long ] && [ "$figure" -gt "$goal" ]; then failed=1; fi
}

# Runs a step, and goes on where it fails.
step() {
  local start=$SECONDS code=0
  "$@" || code=$?
  echo "---- $*: exit code $code, $((SECONDS - start)) s"
  if [ $code -ne 0 ]; then failed=1; fi
}

# The same for a step that says by 77 that this machine lacks what it takes.
step_or_skip() {
  local start=$SECONDS code=0
  "$@" || code=$?
  echo "---- $*: exit code $code, $((SECONDS - start)) s"
  case $code in
    0) ;;
    77) leave_out "$(basename "$(dirname "$1")") was skipped: see above" ;;
    *) failed=1 ;;
  esac
}

# Runs a program that not every build has.
step_if_built() {
  if [ -x "$1" ]; then step env "${@:2:1}" "$1" "${@:3}"; else leave_out "$(basename "$1") is not in this build"; fi
}

cluster_tests() {
  if [ "$("$build/cluster_tests" --gtest_list_tests --gtest_filter="$1" | grep -c '^  ')" -eq 0 ]; then
    echo "---- no test of cluster_tests is named $1"
    failed=1
  fi
  step "$build/cluster_tests" --gtest_filter="$1"
}

conformance() {
  step_if_built "$build/hbase_rpc_cluster_tests" VARVE_TEST_HBASE_QUORUM="$address"
  step_if_built "$build/store_tests" VARVE_TEST_HBASE_QUORUM="$address" --gtest_filter='Hbase/*/Cluster'
}

linearizability() {
  local seeds=1
  if [ "$form" = long ]; then seeds=3; fi
  step_or_skip "$root/unit-tests/prove/linearizability/run.sh" "$build/cluster_history_main" "$build/server_main" \
    "$directory/linearizability" 1 $seeds
}

# Both sides answer alike what a store can that is atomic within groups: unit-tests/differential names what is left out.
differential() {
  local commands=400
  if [ "$form" = long ]; then commands=4000; fi
  if command -v redis-server >/dev/null; then
    step "$build/differential_main" --commands=$commands --max_differences=1 --grouped -- --store=hbase "$VARVE_CLUSTER_QUORUM" \
      --hbase-table=varve-differential
  else
    leave_out "differential_main: redis-server is not installed (packages.txt)"
  fi
}

redis_suite() {
  local suite=$directory/redis_suite/suite
  # Another test of this build may have fetched them.
  if [ ! -d "$suite" ] && [ -d "$build/redis_suite/suite" ]; then
    mkdir -p "${suite%/*}"
    cp -r "$build/redis_suite/suite" "$suite"
  fi
  step_or_skip "$root/unit-tests/redis_suite/run.sh" "$build/server_main" "$directory/redis_suite" --store=hbase \
    "$VARVE_CLUSTER_QUORUM" --hbase-table=varve-redis-suite --hbase-max-value=4MiB
}

# What measures no times: each of these runs beside the others.
stores() { conformance && cluster_tests '-ClusterGroups*:ClusterMove*:ClusterDeadNodes*'; }
histories() {
  linearizability && differential
  if [ "$form" = long ]; then redis_suite; fi
}
groups() { cluster_tests 'ClusterGroups*'; }
moves() { if [ "$form" = long ]; then cluster_tests 'ClusterMove*'; fi; }

# What has the machine for itself.
deaths() { if [ "$form" = long ]; then cluster_tests 'ClusterDeadNodes*'; else cluster_tests '*.AKilledRegionServer*'; fi; }
chosen_tests() { cluster_tests "$CLUSTER_TESTS_FILTER"; }

# Runs the functions beside each other, and shows what they printed one after the other.
together() {
  local part start=$SECONDS
  set -m  # each has a process group, which ends with this script
  for part in "$@"; do
    (failed=0 && "$part" && exit $failed) >"$directory/$part.log" 2>&1 </dev/null &
    running+=($!)
  done
  set +m
  while [ -n "$(jobs -rp)" ]; do
    note_memory
    sleep 3
  done
  for part in "$@"; do
    wait "${running[0]}" || failed=1
    running=("${running[@]:1}")
    cat "$directory/$part.log"
  done
  echo "---- $*: $((SECONDS - start)) s"
}

address=${VARVE_CLUSTER_QUORUM#--hbase-quorum=}
note_memory
if [ -n "${CLUSTER_TESTS_FILTER:-}" ]; then
  together chosen_tests
else
  together stores histories groups moves
  together deaths
fi
echo "---- all: $((SECONDS - begun)) s"
hold "time until the cluster was up" "$up_seconds" $up_goal s
hold "most memory of the cluster" "$most_memory" $memory_goal MiB
exit $failed
