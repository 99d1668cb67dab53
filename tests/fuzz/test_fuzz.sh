#!/usr/bin/env bash
# Fuzzes the readers of what others wrote, briefly: each target from its corpus, and first each with its planted fault, which
# it must find. Prints executions and coverage. Closes with `N passed, N failed`.
#
#   tests/fuzz/test_fuzz.sh [SECONDS [TARGET...]]   SECONDS a target (10; 300 with ULPSCOPE_NIGHTLY=1), two targets at a time
#                                                   (FUZZ_JOBS); what is found new goes to build/fuzz/found/TARGET
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
seconds=10
if [[ -n "${ULPSCOPE_NIGHTLY:-}" ]]; then seconds=300; fi
seconds="${1:-$seconds}"
shift || true
targets=("$@")
((${#targets[@]} > 0)) || targets=(casefile journal protocol safetensors)
build="$root/build/fuzz"
plant_seconds=240 # found within seconds; a loaded machine may take longer, and a found one ends the search
mkdir -p "$build"
began="$SECONDS"
if ! { (cd "$root" && cmake --preset fuzz) && ninja -C "$build" fuzzers; } >"$build/fuzz.log" 2>&1; then
  grep -A 10 -m 3 -E 'error:' "$build/fuzz.log" >&2 || tail -n 30 "$build/fuzz.log" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
echo "built in $((SECONDS - began)) s"

# check NAME STATUS: says which of a target's checks passed, one line each, for the count at the end.
check() {
  if (($2 == 0)); then echo "passed: $1"; else echo "FAILED: $1"; fi
}

# fuzz TARGET SECONDS LOG [OPTION...]: one libFuzzer run; an input that breaks something is kept in build/fuzz/broken/TARGET.
fuzz() {
  local target="$1" most="$2" log="$3" status=0
  shift 3
  rm -rf "$build/found/$target" "$build/broken/$target"
  mkdir -p "$build/found/$target" "$build/broken/$target"
  "$build/bin/fuzz_$target" -max_total_time="$most" -timeout=30 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 "$@" \
    -artifact_prefix="$build/broken/$target/" "$build/found/$target" "$root/tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || status=$?
  return "$status"
}

# one TARGET: all that is asked of it.
one() {
  local target="$1" log="$build/$1.log" status=0 inputs executions cover memory
  ULPSCOPE_FUZZ_PLANT=1 "$build/bin/fuzz_$target" -runs=0 "$root/tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || status=1
  check "$target: no file of the corpus reaches the planted fault" "$status"
  status=0
  ULPSCOPE_FUZZ_PLANT=1 fuzz "$target" "$plant_seconds" "$log" && status=1
  grep -q 'heap-buffer-overflow' "$log" && grep -q 'Plant(bool)' "$log" || status=1
  inputs="$(grep -oE '^#[0-9]+' "$log" | tail -n 1)"
  check "$target: the planted fault is found within $plant_seconds s (after ${inputs:-#0} inputs or a few more)" "$status"
  status=0
  fuzz "$target" "$seconds" "$log" -use_value_profile=1 || status=1
  ((status == 0)) || tail -n 60 "$log"
  check "$target: no input breaks it (else it lies in build/fuzz/broken/$target)" "$status"
  executions="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  cover="$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1)" || true
  memory="$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")"
  check "$target: ${executions:-0} executions in $seconds s, ${cover:-no coverage}, peak ${memory:-?} MiB" \
    "$((${executions:-0} > 0 && ${#cover} > 0 ? 0 : 1))"
}

# FUZZ_JOBS at a time; what each says stands together.
for ((at = 0; at < ${#targets[@]}; at += ${FUZZ_JOBS:-2})); do
  for target in "${targets[@]:at:${FUZZ_JOBS:-2}}"; do one "$target" >"$build/$target.said" 2>&1 & done
  wait
  for target in "${targets[@]:at:${FUZZ_JOBS:-2}}"; do cat "$build/$target.said"; done
done
said=("${targets[@]/#/$build/}")
passed="$(cat "${said[@]/%/.said}" | grep -c '^passed: ')" || true
failed="$((4 * ${#targets[@]} - passed))"
echo "$passed passed, $failed failed"
((failed == 0))
