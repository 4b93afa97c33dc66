#!/usr/bin/env bash
# build_site.sh [DIR]: builds the site of docs/ into DIR (build/site) and checks it. Takes no network. Exits with 77, and says so, where
# a program is missing (packages-docs.txt).
set -euo pipefail
cd "$(dirname "$0")/../.."

site=${1:-build/site}
for program in mkdocs dot python3; do
  command -v "$program" >/dev/null || {
    echo "build_site: there is no $program; install packages-docs.txt"
    exit 77
  }
done
mkdocs build --strict --quiet --site-dir "$(realpath -m "$site")"
scripts/docs/check_site.py "$site"
