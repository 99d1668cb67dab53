#!/usr/bin/env bash
# One part of a run as one task of a Slurm job array; a task whose process is killed is put back into the queue and goes on where
# its journal ends. Submit four parts, then merge them:
#
#   export ULPSCOPE_RUNS=$PWD/nightly
#   array=$(sbatch --parsable --array=0-3 ci/recipes/slurm.sh -m nightly -b torch-eager,torch-inductor)
#   sbatch --dependency=afterany:$array --wrap "$ULPSCOPE merge $ULPSCOPE_RUNS/part-* -o $ULPSCOPE_RUNS/whole"
#
# ULPSCOPE_RUNS  a folder that every node sees; each attempt of each task gets a folder of its own in it
# ULPSCOPE       the program (default: ulpscope)
#
# What the results are is merge's to say (exit 1, 6): a task fails only where its part could not be recorded. Use afterany, not
# afterok: of a task that never ended, merge says what is missing.
#SBATCH --job-name=ulpscope
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=1
set -euo pipefail

runs="${ULPSCOPE_RUNS:?a folder for the parts}"
attempt="${SLURM_RESTART_COUNT:-0}"
part="$runs/part-$SLURM_ARRAY_TASK_ID.$attempt"
before="$runs/part-$SLURM_ARRAY_TASK_ID.$((attempt - 1))"

# A node that Slurm has lost may still be writing: an attempt goes on from a copy of the one before it, never in its folder.
# The journal first: whatever it names is there already.
if [[ ! -e "$part" && -f "$before/journal.jsonl" ]]; then
  rm -rf "$part.copy"
  mkdir -p "$part.copy"
  cp "$before/journal.jsonl" "$part.copy/journal.jsonl"
  cp -r --no-clobber "$before/." "$part.copy"
  mv "$part.copy" "$part"
fi

code=0
"${ULPSCOPE:-ulpscope}" run "$@" --shard auto --resume -o "$part" -q || code=$?
echo "part $SLURM_ARRAY_TASK_ID, attempt $attempt: exit $code"

# A signal took it (memory, a tired node): once more, three times at most. Any user may requeue a job of their own.
if ((code > 128 && attempt < 3)); then
  scontrol requeue "$SLURM_JOB_ID"
  sleep 60  # until Slurm ends this attempt
  exit "$code"
fi
case "$code" in
  0 | 1 | 5 | 6) exit 0 ;;
  *) exit "$code" ;;
esac
