#!/usr/bin/env bash
# run_client.sh LIBRARY SERVER_MAIN DIRECTORY: starts a server on a free port, installs the library from its registry into DIRECTORY
# (once) and has it do a round of what it wraps, in plain text and then over TLS. Exits with 77 (skipped) where the runtime is missing or the registry can't be
# reached; everything else that fails is a failure.
set -euo pipefail
library=$1 server=$2 directory=$3/$1
scripts=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory"
cd "$directory"

skip() { echo "SKIPPED: $*" && exit 77; }
need() { command -v "$1" >/dev/null || skip "$1 is not installed (packages-test.txt names what these tests need)"; }
# Runs an installation; "installed" remembers which version was.
install() {
  local version=$1
  shift
  if [ "$(cat installed 2>/dev/null)" = "$version" ]; then return; fi
  if ! "$@" >install.log 2>&1; then
    tail -5 install.log
    skip "$version could not be installed: can its registry be reached?"
  fi
  echo "$version" >installed
}

install_python() { python3 -m venv venv && timeout 60 venv/bin/pip install --quiet "$1"; }
install_node() { timeout 60 npm install --no-audit --no-fund --no-save --prefix . "$1"; }
install_go() { cp "$scripts"/go.mod "$scripts"/go.sum "$scripts"/go_redis.go . && timeout 100 go build -o round .; }

install_java() {
  cp "$scripts"/pom.xml . && rm -rf jars classes &&
    timeout 100 mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=jars &&
    javac -d classes -cp 'jars/*' "$scripts/jedis.java"
}

case $library in
  redis-py)
    need python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3-venv is not installed"
    install redis==5.2.1 install_python redis==5.2.1
    round=(venv/bin/python "$scripts/redis_py.py")
    ;;
  node-redis)
    need npm
    install redis@4.7.0 install_node redis@4.7.0
    round=(env NODE_PATH="$PWD/node_modules" node "$scripts/node_redis.js")
    ;;
  ioredis)
    need npm
    install ioredis@5.4.1 install_node ioredis@5.4.1
    round=(env NODE_PATH="$PWD/node_modules" node "$scripts/ioredis.js")
    ;;
  go-redis)
    need go
    install "go-redis $(cksum <"$scripts/go_redis.go")" install_go
    round=(./round)
    ;;
  jedis)
    need javac
    need mvn
    install "jedis $(cat "$scripts/jedis.java" "$scripts/pom.xml" | cksum)" install_java
    round=(java -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStore=authority.p12 -Djavax.net.ssl.trustStorePassword=changeit
      -cp 'classes:jars/*' Round)
    ;;
  redis-tools)
    need redis-cli
    need python3
    round=(python3 "$scripts/redis_tools.py")
    ;;
  *) echo "unknown library $library" && exit 1 ;;
esac

rm -rf data server.log authority.p12
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout authority.key -out authority.crt -days 2 \
  -subj /CN=authority 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=server 2>/dev/null
openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -out server.crt -days 2 \
  -extfile <(echo subjectAltName=IP:127.0.0.1,DNS:localhost) 2>/dev/null
if [ "$library" = jedis ]; then
  keytool -importcert -noprompt -alias authority -file authority.crt -keystore authority.p12 -storetype PKCS12 \
    -storepass changeit 2>/dev/null
fi
"$server" --dir=data --port=0 --http-port=0 --logfile=server.log --change-retention-bytes=64MiB --tls=optional --tls-cert-file=server.crt --tls-key-file=server.key \
  --tls-auth-clients=no &
process=$!
trap 'kill $process 2>/dev/null; wait $process 2>/dev/null || true' EXIT
for _ in $(seq 1200); do  # a disk may stand still for a while
  port=$(sed -n 's/.* on 127\.0\.0\.1:\([0-9]*\),.*/\1/p' server.log 2>/dev/null || true)
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || { cat server.log; echo "the server did not start"; exit 1; }
timeout 100 "${round[@]}" "$port"
VARVE_TLS_CA=$PWD/authority.crt timeout 100 "${round[@]}" "$port"
if [ "$library" = redis-py ]; then
  # The program of the README prints what the README says.
  block() { awk -v begin="<!-- example: $1 -->" '$0 == begin { seen = 1 } seen && /^```/ { if (inside) exit; inside = 1; next } inside' "$scripts/../../README.md"; }
  block "feed in Python" | sed "s/7777/$port/" >readme_feed.py
  block "feed in Python output" >expected
  timeout 60 venv/bin/python readme_feed.py >printed
  cmp expected printed
fi
echo "$library: done"
