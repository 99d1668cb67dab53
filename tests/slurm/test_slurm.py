#!/usr/bin/env python3
"""ci/recipes/slurm.sh on real daemons: an array of four tasks of which one is killed, requeued by itself and resumed; merged, the
parts are the run of a single machine. Needs slurmctld, slurmd and root.
"""
import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call, ulpscope  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BACKENDS = "emulated,emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne"
CASE = """
  - name: case_{n}
    tensors:
      x: {{dtype: bfloat16, shape: [3, {k}], fill: normal}}
      y: {{dtype: bfloat16, shape: [{k}, 2], fill: normal}}
    program:
      - {{op: matmul, of: [x, y], as: product}}
      - {{op: neg, of: [product], as: result}}
    observe: [product, result]
"""
# Stands in the place of the program: the third task's first attempt loses it, to SIGKILL, once it has recorded a result.
KILLER = """#!/bin/bash
if [[ $SLURM_ARRAY_TASK_ID == 2 && ${{SLURM_RESTART_COUNT:-0}} == 0 ]]; then
  {ulpscope} "$@" & pid=$!
  until grep -qs '"type":"result"' "$ULPSCOPE_RUNS/part-2.0/journal.jsonl"; do :; done
  kill -KILL $pid
  wait $pid
else
  exec {ulpscope} "$@"
fi
"""


def stable(folder):
    report = json.loads((folder / "report.json").read_bytes(), parse_float=str, parse_int=str)
    del report["volatile"]
    return json.dumps(report)


class Slurm(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")  # paths of sockets are short
        self.addCleanup(held.cleanup)
        self.root = pathlib.Path(held.name)
        up = call(HERE / "onenode.sh", "up", self.root / "d", timeout=60)
        self.addCleanup(call, HERE / "onenode.sh", "down", self.root / "d", timeout=60)
        self.assertEqual(up.returncode, 0, up.stderr)
        cases = [CASE.format(n=n, k=4 + n) for n in range(12)]
        (self.root / "mine.yaml").write_text("cases:\n" + "".join(cases), encoding="utf-8")
        killer = self.root / "killer"
        killer.write_text(KILLER.format(ulpscope=ULPSCOPE), encoding="utf-8")
        killer.chmod(0o755)
        self.environment = {"SLURM_CONF": str(self.root / "d/slurm.conf"), "ULPSCOPE_RUNS": str(self.root), "ULPSCOPE": str(killer)}

    def wait_for(self, job):
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            left = call("squeue", "-h", "-r", "-t", "PD,R,CG,CF,RQ", "-j", job, beside=self.environment)
            if left.returncode != 0 or not left.stdout.strip():
                return
            time.sleep(0.25)
        self.fail(f"the array does not end: {left.stdout}")

    def test_a_task_that_is_killed_is_requeued_and_the_whole_is_the_single_run(self):
        single = ulpscope("run", "mine.yaml", "-q", "-b", BACKENDS, "-o", "single", cwd=self.root)
        self.assertEqual(single.returncode, 0, single.stderr)
        began = time.monotonic()
        submitted = call("sbatch", "--parsable", "--array=0-3", "--chdir", self.root, "--output", self.root / "task-%a.log",
                         ROOT / "ci/recipes/slurm.sh", "mine.yaml", "-b", BACKENDS, cwd=self.root, beside=self.environment)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.wait_for(submitted.stdout.strip())
        took = time.monotonic() - began
        logs = {index: (self.root / f"task-{index}.log").read_text(encoding="utf-8") for index in range(4)}
        for index in (0, 1, 3):
            self.assertIn(f"part {index}, attempt 0: exit 0", logs[index])
        self.assertIn("part 2, attempt 0: exit 137", logs[2])
        self.assertIn("part 2, attempt 1: exit 0", logs[2])
        parts = sorted(path.name for path in self.root.glob("part-*"))
        self.assertEqual(parts, ["part-0.0", "part-1.0", "part-2.0", "part-2.1", "part-3.0"])
        killed = (self.root / "part-2.0/journal.jsonl").read_text(encoding="utf-8")
        self.assertNotIn('"type":"end"', killed, "it was killed in the middle")
        again = (self.root / "part-2.1/journal.jsonl").read_text(encoding="utf-8")
        first = [line for line in killed.splitlines() if '"type":"result"' in line][0]
        self.assertIn(first, again, "what was recorded is not computed again")
        self.assertEqual(again.count('"type":"run"'), 2)
        merged = ulpscope("merge", *parts, "-q", "-o", "whole", cwd=self.root)
        self.assertEqual((merged.returncode, merged.stdout), (0, single.stdout), merged.stderr)
        self.assertEqual(stable(self.root / "whole"), stable(self.root / "single"))
        without = ulpscope("merge", "part-0.0", "part-1.0", "part-2.0", "part-3.0", "-q", "-o", "gap", cwd=self.root)
        self.assertEqual(without.returncode, 6, "the killed attempt alone is a gap")
        print(f"an array of 4, one killed and requeued: {took:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
