#!/usr/bin/env bash
# hbase_cluster.sh COMMAND: runs Apache HBase on HDFS on this machine, for tests and measurements of the store over HBase: a name node,
# ZooKeeper, three data nodes, a master and three region servers. All listen on 127.0.0.1 only.
#
#   up               installs what is missing, starts what does not run, waits until the cluster answers, and prints as its last line
#                    the setting of server_main that names the cluster: --hbase-quorum=127.0.0.1:PORT
#   down             stops what runs; data stays
#   wipe             ends what runs, and removes the data
#   status           lists the processes; exits with 3 where one does not run
#   kill NAME        ends a process by SIGKILL: zookeeper, namenode, master, datanode1, regionserver1 and so on; a number N stands for
#                    region server N and data node N together
#   start NAME       starts it again, and waits until it serves
#   restart NAME     kill and start; `restart-master` is `restart master`
#   pid NAME         prints the number of its process
#   jars             installs the jars only, and prints their folder
#   java ARGUMENT... runs java with the cluster's jars and settings, and the classes of the folder VARVE_CLUSTER_CLASSES
#
# VARVE_CLUSTER_DIR is the folder of data and logs (build/hbase), VARVE_CLUSTER_PORTS the first of 40 ports (21800), below 32768, where
# connections of other programs never are. Clusters that differ in both do not meet. VARVE_CLUSTER_JARS is the folder of the jars
# (build/hbase-jars). VARVE_CLUSTER_SESSION_MS is how long a server that is not heard of counts as alive (20000). VARVE_CLUSTER_JAVA has
# more options of Java, separated by spaces.
#
# It exits with 77 where Java or Maven is missing, or Maven can't fetch the jars.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

dir=$(realpath -m "${VARVE_CLUSTER_DIR:-$root/build/hbase}")
first_port=${VARVE_CLUSTER_PORTS:-21800}
jars=$(realpath -m "${VARVE_CLUSTER_JARS:-$root/build/hbase-jars}")
session_millis=${VARVE_CLUSTER_SESSION_MS:-20000}
conf=$root/scripts/hbase/conf
all=(namenode zookeeper datanode1 datanode2 datanode3 master regionserver1 regionserver2 regionserver3)

say() { echo "hbase_cluster: $*" >&2; }
fail() { say "$*" && exit 1; }
skip() { say "$*" && exit 77; }

# Ports of a process, the one by which it is reached first.
ports_of() {
  local number=${1##*[a-z]}
  case $1 in
    zookeeper) echo "$first_port" ;;
    namenode) echo $((first_port + 1)) $((first_port + 2)) ;;
    master) echo $((first_port + 3)) ;;
    datanode?) echo $((first_port + 10 * number)) $((first_port + 10 * number + 1)) $((first_port + 10 * number + 2)) ;;
    regionserver?) echo $((first_port + 10 * number + 3)) ;;
  esac
}

check_settings() {
  [[ $first_port =~ ^[0-9]+$ ]] || fail "VARVE_CLUSTER_PORTS has to be a number, not '$first_port'"
  if [ "$first_port" -lt 1024 ] || [ "$first_port" -gt 32728 ]; then
    fail "VARVE_CLUSTER_PORTS has to be from 1024 to 32728, as 40 ports from there on are used; it is $first_port"
  fi
  [[ $session_millis =~ ^[0-9]+$ ]] || fail "VARVE_CLUSTER_SESSION_MS has to be a number, not '$session_millis'"
}

find_java() {
  java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  command -v "$java" >/dev/null || skip "there is no Java ('$java'); packages-cluster.txt names the packages that a cluster takes"
  local version
  version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
  if [ "${version:-0}" -lt 17 ]; then skip "Java 17 or later is needed, and '$java' is ${version:-of an unknown version}"; fi
}

# "installed" remembers what the jars were fetched for.
install_jars() {
  local wanted
  wanted=$(cksum <"$root/scripts/hbase/pom.xml")
  if [ "$(cat "$jars/installed" 2>/dev/null)" = "$wanted" ]; then return; fi
  command -v mvn >/dev/null || skip "there is no Maven (mvn); packages-cluster.txt names the packages that a cluster takes"
  mkdir -p "$jars"
  exec 8>"$jars/lock"
  flock 8
  if [ "$(cat "$jars/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -f "$jars"/*.jar
    if ! timeout 300 mvn -B -q -f "$root/scripts/hbase/pom.xml" -Dmaven.wagon.http.connectionTimeout=20000 \
      dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$jars" >"$jars/maven.log" 2>&1 8>&-; then
      tail -n 5 "$jars/maven.log" >&2
      skip "Maven could not fetch HBase's jars (see $jars/maven.log): can its repository be reached?"
    fi
    echo "$wanted" >"$jars/installed"
  fi
  exec 8>&-
}

# What every process of the cluster is started with; $1 names the process.
java_options() {
  local number=${1##*[a-z]} package retries=10 more
  local server=${number:-1}
  case $1 in datanode*) retries=1 ;; esac
  printf '%s\n' -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto -Djava.net.preferIPv4Stack=true -Dlog4j.configuration=file:"$conf/log4j.properties" \
    -Dvarve.cluster="$dir" -Dvarve.process="$1" -Dvarve.dir="$dir" -Dvarve.log="$dir/logs/$1.log" -Dvarve.number="$server" \
    -Dvarve.session.millis="$session_millis" -Dvarve.connect.retries=$retries -Dvarve.port.zookeeper="$first_port" \
    -Dvarve.port.namenode=$((first_port + 1)) -Dvarve.port.namenode.http=$((first_port + 2)) -Dvarve.port.master=$((first_port + 3)) \
    -Dvarve.port.datanode=$((first_port + 10 * server)) -Dvarve.port.datanode.http=$((first_port + 10 * server + 1)) \
    -Dvarve.port.datanode.ipc=$((first_port + 10 * server + 2)) -Dvarve.port.regionserver=$((first_port + 10 * server + 3)) \
    -Dzookeeper.admin.enableServer=false
  for package in lang lang.reflect io nio net util util.concurrent; do printf '%s\n' "--add-opens=java.base/java.$package=ALL-UNNAMED"; done
  for package in sun.nio.ch sun.security.ssl jdk.internal.ref; do printf '%s\n' "--add-opens=java.base/$package=ALL-UNNAMED"; done
  read -ra more <<<"${VARVE_CLUSTER_JAVA:-}"
  if [ ${#more[@]} -gt 0 ]; then printf '%s\n' "${more[@]}"; fi
  printf '%s\n' -cp "$conf:$dir/stubs:$jars/*:${VARVE_CLUSTER_CLASSES:-$dir/stubs}"
}

# The heap of a process, its class, and its arguments, in a line each.
main_of() {
  case $1 in
    zookeeper) printf '%s\n' -Xmx192m org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" ;;
    namenode) printf '%s\n' -Xmx384m org.apache.hadoop.hdfs.server.namenode.NameNode ;;
    datanode[1-3]) printf '%s\n' -Xmx256m org.apache.hadoop.hdfs.server.datanode.DataNode ;;
    master) printf '%s\n' -Xmx384m org.apache.hadoop.hbase.master.HMaster start ;;
    regionserver[1-3]) printf '%s\n' -Xmx512m org.apache.hadoop.hbase.regionserver.HRegionServer start ;;
    *) return 1 ;;
  esac
}

# Prints the number of the process where it runs. A number that the system gave to another program since is none of it.
pid_of() {
  local pid
  pid=$(cat "$dir/run/$1" 2>/dev/null) || return 1
  grep -qszxF -e "-Dvarve.process=$1" "/proc/$pid/cmdline" && grep -qszxF -e "-Dvarve.cluster=$dir" "/proc/$pid/cmdline" || return 1
  echo "$pid"
}

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

check_ports() {
  local port
  for port in $(ports_of "$1"); do
    if is_taken "$port"; then
      fail "port $port, which $1 needs, is taken by another program: choose other ports by VARVE_CLUSTER_PORTS"
    fi
  done
}

prepare() {
  mkdir -p "$dir"/{run,logs,tmp,zookeeper,stubs/webapps/hdfs,stubs/webapps/datanode}
  : >"$dir/.varve-cluster"
  printf '%s\n' tickTime=1000 "dataDir=$dir/zookeeper" clientPortAddress=127.0.0.1 "clientPort=$first_port" maxClientCnxns=0 \
    maxSessionTimeout=90000 admin.enableServer=false '4lw.commands.whitelist=ruok,srvr' autopurge.purgeInterval=1 >"$dir/zoo.cfg"
}

format_namenode() {
  if [ -e "$dir/namenode/current/VERSION" ]; then return; fi
  local options
  mapfile -t options < <(java_options namenode)
  "$java" -Xmx192m -XX:TieredStopAtLevel=1 "${options[@]}" org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive \
    >"$dir/logs/format.out" 2>&1 9>&- || fail "the name node could not be formatted: see $dir/logs/format.out"
}

# Starts a process, which need not serve when this returns.
launch() {
  local name=$1 options main
  if pid_of "$name" >/dev/null; then return; fi
  check_ports "$name"
  mapfile -t options < <(java_options "$name")
  mapfile -t main < <(main_of "$name")
  if [ -e "$dir/logs/$name.log" ]; then mv "$dir/logs/$name.log" "$dir/logs/$name.log.before"; fi
  MALLOC_ARENA_MAX=2 setsid nice -n 19 "$java" "${options[@]}" "${main[@]}" >"$dir/logs/$name.out" 2>&1 </dev/null 9>&- &
  echo $! >"$dir/run/$name"
  # Until it executes Java the process is a copy of this shell, which pid_of does not know.
  while cmp -s "/proc/$!/cmdline" "/proc/$$/cmdline"; do sleep 0.01; done
}

# The name node says on its own page whether it is in safe mode.
takes_changes() {
  {
    printf 'GET /jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo HTTP/1.0\r\n\r\n' >&3
    timeout 10 cat <&3
  } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$((first_port + 2))" | grep -q '"Safemode" : ""'
}

# By which line of its messages, or port, a process shows that it serves; `files` stands for all of HDFS, which takes no changes until
# the name node has heard of its blocks. A table that HBase makes before that has no descriptor, and never opens.
serves() {
  local log=$dir/logs/$1.log
  case $1 in
    zookeeper) is_taken "$first_port" ;;
    namenode) is_taken $((first_port + 1)) ;;
    files) takes_changes ;;
    datanode?) grep -q 'successfully registered with NN' "$log" 2>/dev/null ;;
    master) grep -q 'Master has completed initialization' "$log" 2>/dev/null ;;
    regionserver?) grep -q 'Serving as ' "$log" 2>/dev/null ;;
  esac
}

# Waits until a process serves, for at most the seconds of $2.
wait_for() {
  local name=$1 end=$((SECONDS + $2))
  until serves "$name"; do
    if [ "$name" != files ] && ! pid_of "$name" >/dev/null; then
      tail -n 5 "$dir/logs/$name.out" "$dir/logs/$name.log" >&2 || true
      fail "$name has ended: see $dir/logs/$name.log and $name.out"
    fi
    if [ $SECONDS -ge $end ]; then fail "$name does not serve after $2 s: see $dir/logs/$name.log"; fi
    sleep 0.2
  done
}

# Sets `named` to the processes that a name given by the user stands for.
expand() {
  named=("$1")
  if [[ $1 =~ ^[1-3]$ ]]; then named=("datanode$1" "regionserver$1"); fi
  main_of "${named[0]}" >/dev/null || fail "there is no process '$1': name one of 1, 2, 3, ${all[*]}"
}

# A process that is gone for others may still be giving back its ports.
kill_processes() {
  local name pid port killed=()
  for name in "$@"; do
    if pid=$(pid_of "$name"); then kill -KILL "$pid" 2>/dev/null && killed+=("$name"); fi
  done
  for name in "${killed[@]}"; do
    while pid_of "$name" >/dev/null; do sleep 0.02; done
    rm -f "$dir/run/$name"
    for port in $(ports_of "$name"); do
      while is_taken "$port"; do sleep 0.02; done
    done
  done
}

# Asks processes to end, and ends those by force that have not after the seconds of $1.
stop_processes() {
  local end=$((SECONDS + $1)) name pid
  shift
  for name in "$@"; do
    if pid=$(pid_of "$name"); then kill "$pid" 2>/dev/null || true; fi
  done
  for name in "$@"; do
    while pid_of "$name" >/dev/null && [ $SECONDS -lt $end ]; do sleep 0.1; done
  done
  kill_processes "$@"
  for name in "$@"; do rm -f "$dir/run/$name"; done
}

# Processes that the folder holds must be of these ports, so that one folder is one cluster.
check_cluster() {
  if [ -e "$dir/ports" ] && [ "$(cat "$dir/ports")" != "$first_port" ]; then
    fail "the cluster of $dir uses the ports from $(cat "$dir/ports") on, not from $first_port: set VARVE_CLUSTER_PORTS, or wipe it"
  fi
}

up() {
  local name
  find_java
  install_jars
  check_cluster
  prepare
  for name in "${all[@]}"; do
    if ! pid_of "$name" >/dev/null; then check_ports "$name"; fi
  done
  echo "$first_port" >"$dir/ports"
  format_namenode
  launch namenode
  launch zookeeper
  for name in datanode1 datanode2 datanode3; do launch "$name"; done
  for name in namenode zookeeper datanode1 datanode2 datanode3 files; do wait_for "$name" 300; done
  for name in master regionserver1 regionserver2 regionserver3; do launch "$name"; done
  for name in regionserver1 regionserver2 regionserver3 master; do wait_for "$name" 300; done
  echo "--hbase-quorum=127.0.0.1:$first_port"
}

down() {
  stop_processes 30 regionserver1 regionserver2 regionserver3
  stop_processes 10 master
  stop_processes 10 datanode1 datanode2 datanode3 namenode
  stop_processes 5 zookeeper
}

wipe() {
  if [ -z "$(ls -A "$dir" 2>/dev/null)" ]; then return; fi
  if [ ! -e "$dir/.varve-cluster" ]; then fail "$dir holds no cluster, and is left alone"; fi
  kill_processes "${all[@]}"
  rm -rf "$dir"
}

status() {
  local name pid memory missing=0
  for name in "${all[@]}"; do
    if pid=$(pid_of "$name"); then
      memory=$(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$pid/status")
      printf '%-14s process %-8s %4s MiB  port %s\n' "$name" "$pid" "$memory" "$(ports_of "$name" | cut -d' ' -f1)"
    else
      printf '%-14s does not run\n' "$name"
      missing=3
    fi
  done
  return $missing
}

start() {
  local name
  find_java
  install_jars
  check_cluster
  prepare
  for name in "$@"; do launch "$name"; done
  for name in "$@"; do wait_for "$name" 300; done
}

run_java() {
  local options
  find_java
  install_jars
  prepare
  mapfile -t options < <(java_options java)
  exec nice -n 19 "$java" -Xmx256m "${options[@]}" "$@"
}

# One command at a time changes a cluster.
lock() {
  mkdir -p "$dir"
  exec 9>"$dir.lock"
  flock -w 300 9 || fail "another command has been at work on $dir for 5 minutes"
}

usage() { sed -n '2,/^set -euo/p' "$0" | sed '/^set -euo/d; s/^# \{0,1\}//' >&2; exit 2; }

main() {
  local command=${1:-}
  check_settings
  case $command in
    up | down | wipe | status | jars | restart-master) [ $# -eq 1 ] || usage ;;
    kill | start | restart | pid)
      [ $# -eq 2 ] || usage
      expand "$2"
      ;;
  esac
  case $command in
    up | down | wipe | kill | start | restart | restart-master) lock ;;
  esac
  case $command in
    up | down | wipe | status) "$command" ;;
    kill) kill_processes "${named[@]}" ;;
    start) start "${named[@]}" ;;
    restart) kill_processes "${named[@]}" && start "${named[@]}" ;;
    restart-master) kill_processes master && start master ;;
    pid) pid_of "${named[-1]}" || fail "$2 does not run" ;;
    jars) install_jars && echo "$jars" ;;
    java) shift && run_java "$@" ;;
    *) usage ;;
  esac
}

main "$@"
