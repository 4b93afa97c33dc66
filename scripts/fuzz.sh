#!/usr/bin/env bash
# Fuzzes: scripts/fuzz.sh BUILD_DIRECTORY SECONDS [TARGET ...], SECONDS for each target, FUZZ_JOBS (2) targets at a time.
# An input that breaks a promise is left in BUILD_DIRECTORY/fuzz/TARGET, and the exit code is 1. What was found to reach new code
# stays in BUILD_DIRECTORY/fuzz/TARGET/found and is built upon by the next run.
# FUZZ_SEED makes the choice of inputs the same in every run; without it each run chooses others.
# With FUZZ_KEEP=N the N smallest files of the merged corpus that reach everything are written to unit-tests/fuzz/corpus/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1 seconds=$2
shift 2
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in unit-tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
fi

fuzz() {
  local build=$1 seconds=$2 target=$3
  local program=$build/${target}_fuzz work=$build/fuzz/$target dictionary=unit-tests/fuzz/dictionaries/$target.dict
  local options=(-max_total_time="$seconds" -artifact_prefix="$work/" -print_final_stats=1 -timeout=20 -rss_limit_mb=1536
    -malloc_limit_mb=256 -use_value_profile=1 -verbosity=0 -seed="${FUZZ_SEED:-0}")
  if [ -f "$dictionary" ]; then options+=(-dict="$dictionary"); fi
  mkdir -p "$work/found" "unit-tests/fuzz/corpus/$target"
  "$program" --write-seeds="$work/seeds"
  local code=0
  "$program" "${options[@]}" "$work/found" "$work/seeds" "unit-tests/fuzz/corpus/$target" >"$work/log" 2>&1 || code=$?
  printf '%-14s %12s executions, %s\n' "$target" \
    "$(awk '/number_of_executed_units/ {print $2}' "$work/log")" "$([ $code -eq 0 ] && echo "no promise broken" || echo FAILED)"
  if [ $code -ne 0 ]; then
    tail -n 60 "$work/log"
    return 1
  fi
  if [ -n "${FUZZ_KEEP:-}" ]; then
    rm -rf "$work/merged" && mkdir -p "$work/merged"
    "$program" -merge=1 -verbosity=0 "$work/merged" "unit-tests/fuzz/corpus/$target" "$work/seeds" "$work/found" >"$work/merge-log" 2>&1
    find "$work/merged" -type f -size -3k -printf '%s %p\n' | sort -n | head -n "$FUZZ_KEEP" | cut -d' ' -f2- |
      xargs -r cp -t "unit-tests/fuzz/corpus/$target"
  fi
}
export -f fuzz

printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-2}" -I{} bash -c "fuzz '$build' '$seconds' {}" || exit 1
