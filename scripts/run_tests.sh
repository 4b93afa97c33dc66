#!/usr/bin/env bash
# run_tests.sh BUILD_DIRECTORY [ARGUMENT ...]: runs ctest there with the arguments, the longest entries first, and says afterwards
# which tests were skipped and why, so that a run that lacks something is not taken for a whole one, and which tests failed, with
# what they said first: the end of a long output is what a reader sees.
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
if [ "$code" -ne 0 ] && [ -e "$log" ]; then
  printf 'What failed:\n'
  grep -E '^\[  FAILED  \] .*\(' "$log" | sort -u | head -20
  grep -hE -A 6 ': Failure$|WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|runtime error:|VARVE_ASSERT\(|\*\*\*(Timeout|Exception)' "$log" |
    cut -c 1-240 | head -80
fi
exit $code
