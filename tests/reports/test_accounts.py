#!/usr/bin/env python3
"""reports/accounts: every difference of stored bits is spoken of; a planted drop, a changed count and an empty folder are caught."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from programs import class_folder, ulpscope  # noqa: E402

CASE = """about: Two formats of one sum.
cases:
  - name: sum
    tensors: {a: {dtype: bfloat16, shape: [16, 64], fill: normal}, b: {dtype: bfloat16, shape: [64, 16], fill: normal}}
    program: [{op: matmul, of: [a, b], as: product}]
    observe: [product]
"""


class Accounts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        (cls.folder / "sum.yaml").write_text(CASE)
        done = ulpscope("run", "sum.yaml", "-b", "emulated,emulated:model=acc=bfloat16", "-q", "-o", "run", cwd=cls.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def asked(self, change=lambda report: None):
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        shutil.copytree(self.folder / "run", self.folder / "copy")
        path = self.folder / "copy/report.json"
        report = json.loads(path.read_text())
        change(report)
        path.write_text(json.dumps(report))
        return subprocess.run([sys.executable, ROOT / "reports/accounts", "copy"], cwd=self.folder, capture_output=True, text=True, check=False)

    def test_a_report_that_speaks_of_every_difference(self):
        done = self.asked()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 values of 1 run folder read; 1 pairs of groups differ in bits; 0 uncovered", done.stdout)

    def test_a_dropped_divergence(self):
        done = self.asked(lambda report: report.update(divergences=[]))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("UNCOVERED", done.stdout)

    def test_a_divergence_with_both_on_one_side(self):
        def change(report):
            for each in report["divergences"]:
                each["backends"] = [sum(each["backends"], []), ["another"]]
        self.assertEqual(self.asked(change).returncode, 1)

    def test_a_count_that_is_not_that_of_the_bits(self):
        def change(report):
            report["account"][0]["size"]["elements"] += 1
        done = self.asked(change)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("ACCOUNT", done.stdout)

    def test_nothing_read_is_an_error(self):
        self.assertEqual(self.asked(lambda report: report.update(results=[], account=[])).returncode, 2)


if __name__ == "__main__":
    unittest.main()
