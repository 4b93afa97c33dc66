#!/usr/bin/env bash
# install_packages.sh [LIST ...]: installs the Debian packages of the lists (packages.txt) that are missing. Takes milliseconds when
# none is; needs root or sudo when one is. No installed package starts a service: only its programs are used. In a list a line is a
# package, or COMMAND:PACKAGE for one that is only needed where there is no such command.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: this is no Debian system; install what packages.txt lists by your own means" >&2
  exit 0
fi

[ $# -gt 0 ] || set -- packages.txt
wanted=()
while read -r package; do
  if [[ $package == *:* ]]; then
    if command -v "${package%%:*}" >/dev/null; then continue; fi
    package=${package#*:}
  fi
  wanted+=("$package")
done < <(sed 's/#.*//' "$@" | tr -s ' \t' '\n' | sed '/^$/d')
if [ ${#wanted[@]} -eq 0 ]; then exit 0; fi
installed=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
  awk '$2 == "installed" {print $1}' || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: run this as root, or install sudo; missing: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Debian asks this file whether a package may start its service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi

echo "install_packages: installing ${missing[*]}"
"${as_root[@]}" apt-get -o Acquire::Retries=3 -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -o Acquire::Retries=3 -qq install -y --no-install-recommends "${missing[@]}"
