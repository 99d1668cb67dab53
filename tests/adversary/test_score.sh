#!/usr/bin/env bash
# The adversary in its short form, plain and with proofs asked for: no verdict is wrong; and the score falls when verdicts are falsified.
# With ULPSCOPE_NIGHTLY=1 besides: cells of every set that no earlier night had, since the day is their salt; it is printed, and repeats them.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
good=0
bad=0
errors="$(mktemp)"
trap 'rm -f "$errors"' EXIT
score() {
  local report
  report="$("$root/.venv/bin/python" "$here/score.py" "$@" 2>"$errors")" || true
  # What ended without a score says why.
  grep -q ' passed, ' <<<"$report" || tail -n 5 "$errors" >&2
  printf '%s\n' "$report" | grep -v ' passed, ' >&2 || true
  read -r good_here bad_here < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' <<<"$report" | tail -n 1) || true
}
forms=("--cells 150" "--cells 90 --prove")
if [[ -n "${ULPSCOPE_NIGHTLY:-}" ]]; then
  salt="$(date +%F)"
  echo "fresh cells: --only . --salt $salt"
  forms+=("--only . --cells 1200 --salt $salt" "--only . --cells 400 --prove --salt $salt")
fi
for form in "${forms[@]}"; do
  good_here=0
  bad_here=1
  # shellcheck disable=SC2086  # several words
  score $form
  good=$((good + good_here))
  bad=$((bad + bad_here))
done
bad_here=0
score --cells 30 --plant
if ((bad_here > 0)); then
  good=$((good + 1))
else
  echo "the gates held although verdicts were falsified"
  bad=$((bad + 1))
fi
echo "$good passed, $bad failed"
((bad == 0))
