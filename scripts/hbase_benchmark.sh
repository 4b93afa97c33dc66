#!/usr/bin/env bash
# hbase_benchmark.sh BUILD_DIRECTORY DIRECTORY [FLAG ...]: starts a cluster of HBase in DIRECTORY, measures the rows of server_benchmark
# over a cluster with it, and removes it. FLAGs go to server_benchmark, as in --rows='cluster/SET' --repetitions=5.
#
# The processes of the cluster run on the lower half of the cores, what is compared on the upper half (--hbase_cores). Exits with 77,
# and says why, where a cluster can't be had.
set -euo pipefail
build=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)

export VARVE_CLUSTER_DIR=$directory/cluster VARVE_CLUSTER_PORTS=${VARVE_CLUSTER_PORTS:-24100}
cluster=$root/scripts/hbase_cluster.sh
code=0
jars=$("$cluster" jars) || code=$?
if [ $code -eq 77 ]; then echo "SKIPPED: there is no cluster: see above"; fi
[ $code -eq 0 ] || exit $code
[ -x "$build/server_benchmark" ] || { echo "there is no $build/server_benchmark: build it first (make build)" >&2; exit 1; }
"$cluster" wipe
trap '"$cluster" wipe' EXIT
quorum=$("$cluster" up | tail -n 1)

# Other programs take no more of the processor from the cluster than from what is compared, where this user may have it so.
cores=$(nproc)
processes=
for name in namenode zookeeper datanode{1,2,3} master regionserver{1,2,3}; do
  pid=$("$cluster" pid "$name")
  processes+=$pid,
  renice -n 0 -p "$pid" >/dev/null 2>&1 || true
  for thread in /proc/"$pid"/task/*; do renice -n 0 -p "${thread##*/}" >/dev/null 2>&1 || true; done
  if [ "$cores" -gt 1 ]; then taskset -a -c -p "0-$((cores / 2 - 1))" "$pid" >/dev/null; fi
done
"$build/server_benchmark" --rows='^cluster/' --hbase_quorum="${quorum#--hbase-quorum=}" --hbase_jars="$jars" \
  --hbase_processes="$processes" --dir="$directory" "$@"
