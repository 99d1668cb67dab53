#!/usr/bin/env bash
# The short form of ci/selfcheck holds its gates, and gates fall when the truth is wrong.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
report="$("$root/ci/selfcheck" --short)" || true
printf '%s\n' "$report" | grep -v ' passed, '
read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' <<<"$report" | tail -n 1)
if "$root/build/release/bin/ulpscope-selfcheck" --share 0.001 --plant >/dev/null; then
  echo "the gates held although every tenth kernel was declared to be what it is not"
  bad=$((bad + 1))
else
  good=$((good + 1))
fi
echo "$good passed, $bad failed"
((bad == 0))
