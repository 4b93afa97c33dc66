#!/bin/sh
# Looks at the server's web page in a headless Chromium.
#   usage: run.sh SERVER_MAIN DIRECTORY [--pictures]
# Ends with 77 where what it takes is not installed.
set -eu
for program in python3 chromium chromedriver; do
  if ! command -v "$program" > /dev/null; then
    echo "skipped: $program is not installed (packages-test.txt)"
    exit 77
  fi
done
exec python3 "$(dirname "$0")/page_test.py" "$@"
