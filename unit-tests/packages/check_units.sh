#!/usr/bin/env bash
# check_units.sh SERVER_MAIN DIRECTORY: systemd takes the units without a word, and finds the server well confined: a score of at most
# 2.0 (`systemd-analyze security`). Exits with 77 (skipped) where systemd is missing.
set -euo pipefail
server=$1 directory=$2
packaging=$(cd "$(dirname "$0")/../../packaging" && pwd)
command -v systemd-analyze >/dev/null || { echo "SKIPPED: systemd-analyze is not installed (Debian's systemd has it)" && exit 77; }

rm -rf "$directory"
mkdir -p "$directory"
# The program is where it was built.
sed "s|/usr/bin/varve-server|$server|" "$packaging/varve-server.service" >"$directory/varve-server.service"
"$packaging/instance_unit.sh" <"$directory/varve-server.service" >"$directory/varve-server@.service"
cp "$directory/varve-server@.service" "$directory/varve-server@one.service"
cp "$packaging/varve-server.socket" "$directory"

for unit in varve-server.service varve-server@one.service varve-server.socket; do
  if ! words=$(systemd-analyze verify --man=no "$directory/$unit" 2>&1) || [ -n "$words" ]; then
    echo "systemd-analyze verify $unit: $words"
    exit 1
  fi
done
for unit in varve-server.service varve-server@one.service; do
  systemd-analyze security --offline=true --threshold=20 --no-pager "$directory/$unit" | tail -1
done

# What an instance calls its own.
for own in /etc/varve/%i.toml /var/lib/varve/%i StateDirectory=varve/%i RuntimeDirectory=varve/%i LogsDirectory=varve/%i; do
  grep -qF "$own" "$directory/varve-server@.service" || { echo "varve-server@.service lacks $own" && exit 1; }
done
