#!/usr/bin/env python3
"""Runs of 2,000 and, if ULPSCOPE_ALL is set (ci/test --all), 10,000 tiny cases: memory and seconds a case stay below the limits in
harness/docs/scale.md, and neither grows with their number."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE  # noqa: E402

A_FILE = 2000  # a file of cases has at most 1 MiB
COUNTS = (500, 2000) + ((10000,) if os.environ.get("ULPSCOPE_ALL") else ())


def measured(folder, count):
    """(KiB at most, seconds) of a run of `count` cases."""
    files = []
    for first in range(0, count, A_FILE):
        cases = "".join(f"\n  - {{name: c{i}, tags: [ci], tensors: {{x: {{dtype: float32, shape: [8], fill: normal}}, "
                        f"y: {{dtype: float32, shape: [8], fill: normal}}}}, program: [{{op: add, of: [x, y], as: r}}], observe: [r]}}"
                        for i in range(first, min(first + A_FILE, count)))
        files.append(f"n{count}_{first}.yaml")
        (folder / files[-1]).write_text(f"about: Many tiny cases.\ncases:{cases}\n")
    began = time.monotonic()
    process = subprocess.Popen([ULPSCOPE, "run", *files, "-b", "emulated", "-q", "-j", "1", "-o", f"run{count}"], cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    assert process.returncode == 0, said
    return usage.ru_maxrss, time.monotonic() - began


class Scale(unittest.TestCase):
    def test_memory_and_seconds_a_case(self):
        told = (ROOT / "harness/docs/scale.md").read_text()
        most_kib = int(re.search(r"at most (\d+) KiB a case", told)[1])
        most_ms = float(re.search(r"at most (\d+) ms a case", told)[1])
        with tempfile.TemporaryDirectory() as name:
            found = {count: measured(pathlib.Path(name), count) for count in COUNTS}
        for count, (kib, seconds) in found.items():
            print(f"{count:6} cases: {kib / 1024:.0f} MiB, {seconds:.1f} s")
        for few, many in zip(COUNTS, COUNTS[1:]):
            kib = (found[many][0] - found[few][0]) / (many - few)
            ms = 1000 * (found[many][1] - found[few][1]) / (many - few)
            print(f"from {few} to {many}: {kib:.1f} KiB and {ms:.2f} ms a case")
            self.assertLess(kib, most_kib)
            self.assertLess(ms, most_ms)


if __name__ == "__main__":
    unittest.main()
