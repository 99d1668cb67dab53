#!/usr/bin/env python3
"""A run of many cases holds few of them in memory: what a case costs there does not grow with what its values exclude."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE  # noqa: E402

FEW, MANY = 200, 800
MOST_BYTES_A_CASE = 32 << 10  # the exclusions of one product alone take more


def write_cases(folder, count):
    """Products of one row and one column: each excludes about a thousand models, and keeps the record of 64."""
    folder.mkdir()
    lines = ["about: Many tiny cases.", "cases:"]
    for i in range(count):
        lines += [f"  - name: n{i}", "    tensors:", "      a: {dtype: float32, shape: [2, 24], fill: normal}",
                  "      b: {dtype: float32, shape: [24, 2], fill: normal}", "    program:",
                  "      - {op: matmul, of: [a, b], as: y}", "    observe: [y]"]
    (folder / "many.yaml").write_text("\n".join(lines) + "\n")


def peak(*arguments):
    """The exit code, and the largest resident memory of the program or of a process that it waited for, in bytes."""
    process = subprocess.Popen([ULPSCOPE, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


class Scale(unittest.TestCase):
    def test_memory_stays_flat(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            peaks = {}
            for count in (FEW, MANY):
                cases, run = folder / f"cases{count}", folder / f"run{count}"
                write_cases(cases, count)
                code, peaks["run", count] = peak("run", cases, "-b", "emulated", "-q", "-o", run)
                self.assertEqual(code, 0)
                code, peaks["report", count] = peak("report", run)
                self.assertEqual(code, 0)
                self.assertGreater((run / "classified.jsonl").stat().st_size, count * 20000, "few exclusions are recorded")
        for command in ("run", "report"):
            each = (peaks[command, MANY] - peaks[command, FEW]) / (MANY - FEW)
            print(f"{command}: {peaks[command, FEW] >> 20} MiB with {FEW} cases, {peaks[command, MANY] >> 20} MiB with {MANY}, "
                  f"{each / 1024:.1f} KiB a case")
            self.assertLess(each, MOST_BYTES_A_CASE, command)


if __name__ == "__main__":
    unittest.main()
