#!/usr/bin/env bash
# run_tests.sh BUILD_DIRECTORY [ARGUMENT ...]: runs ctest there with the arguments, the longest entries first, and says afterwards
# which tests were skipped and why, so that a run that lacks something is not taken for a whole one.
set -uo pipefail

build=$1
shift
ctest --test-dir "$build" --output-on-failure "$@"
code=$?
log=$build/Testing/Temporary/LastTest.log
if [ -e "$log" ]; then
  skipped=$(awk '/: Skipped$/ { source = $1; sub(/:$/, "", source); getline reason; print "  " source ": " reason }' "$log" | sort | uniq -c)
  if [ -n "$skipped" ]; then printf 'Skipped, with how often:\n%s\n' "$skipped"; fi
fi
exit $code
