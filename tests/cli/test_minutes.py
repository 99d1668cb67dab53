#!/usr/bin/env python3
"""A limit of time: what is judged by then is the answer, and all of the rest is listed."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, ulpscope  # noqa: E402

HANGS = "faulty:fault=hang,case=b"
MINUTES = 0.25


def product(name):
    return (f"  - name: {name}\n    tensors:\n      a: {{dtype: float32, shape: [2, 8], fill: normal}}\n"
            "      b: {dtype: float32, shape: [8, 2], fill: normal}\n    program:\n"
            "      - {op: matmul, of: [a, b], as: y}\n    observe: [y]\n")


class Minutes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cases, self.out = self.folder / "cases.yaml", self.folder / "run"
        self.cases.write_text("about: Cases of a test.\ncases:\n" + "".join(map(product, "abc")))

    def report(self, folder=None):
        return json.loads(((folder or self.out) / "report.json").read_text())

    def check_left_out(self, report):
        self.assertEqual(report["run"]["limit"], {"minutes": MINUTES, "left_out": ["2 of 3 results not run"]})
        self.assertFalse(report["run"]["complete"])
        self.assertEqual([(each["id"].rsplit("/", 1)[1], each["status"]) for each in report["results"]],
                         [("a", "PASS"), ("b", "NOT_RUN"), ("c", "NOT_RUN")])
        self.assertEqual(report["results"][2]["reason"], f"the limit of {MINUTES} minutes came before it was reached")

    def test_what_hangs_is_ended_and_what_came_before_it_is_judged(self):
        began = time.monotonic()
        done = ulpscope("run", self.cases, "-b", HANGS, "-o", self.out, "--minutes", MINUTES, "--markdown", self.folder / "page.md")
        self.assertLess(time.monotonic() - began, 60 * MINUTES + 60, "the timeout of one case is two minutes")
        self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
        self.check_left_out(self.report())
        self.assertIn(f"the limit of {MINUTES} minutes left out: 2 of 3 results not run", done.stdout)
        self.assertIn(f"the limit of {MINUTES} minutes came: 2 of 3 results not run; --resume -o", done.stderr)
        self.assertIn("2 of 3 results not run", (self.folder / "page.md").read_text())
        self.assertIn("running 0/3, at most 15 s", done.stderr.splitlines()[0], "an estimate before anything has run")

    def test_a_limit_that_leaves_nothing_out_changes_nothing(self):
        done = ulpscope("run", self.cases, "-b", "emulated", "-o", self.out, "--minutes", "30")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("limit", self.report()["run"])
        self.assertNotIn("limit", done.stdout)

    def test_a_judgement_has_one_too(self):
        run = ulpscope("run", "seeds/wgrad_accumulate/unfused_8", "-b", "openblas", "-o", self.out)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        cut = ulpscope("judge", self.out, "--minutes", "0.0005")
        self.assertEqual(cut.returncode, 6, cut.stdout + cut.stderr)
        report = self.report()
        self.assertEqual(report["run"]["limit"]["left_out"], ["1 of 1 result run and not judged"])
        self.assertIn("recorded, and not judged when the limit of 0.0005 minutes came", report["results"][0]["reason"])
        self.assertEqual(ulpscope("judge", self.out).returncode, 0, "the record is whole")

    def test_it_is_a_number_of_minutes(self):
        for wrong in ("0", "-1", "x", "1e9"):
            done = ulpscope("run", self.cases, "-b", "emulated", "--minutes", wrong)
            self.assertEqual(done.returncode, 4, wrong)
            self.assertIn("minutes", done.stderr)

    def test_the_package_says_what_was_left_out(self):
        sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python")]
        os.environ["ULPSCOPE_BIN"] = str(ULPSCOPE)
        try:
            import ulpscope as package
            import torch  # noqa: F401
        except ImportError as missing:
            self.skipTest(str(missing))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            report = package.check(self.cases, backends=[HANGS], minutes=MINUTES, out=self.out)
        self.check_left_out(self.report())
        self.assertEqual(report.exit_code, 6)
        self.assertFalse(report.ok)
        self.assertEqual(report.notes, [f"the limit of {MINUTES} minutes left out: 2 of 3 results not run"])
        self.assertIn(report.notes[0], " ".join(str(report).split()))
        self.assertIn("running 0/3, at most 15 s", said.getvalue())
        with self.assertRaisesRegex(ValueError, "above 0"):
            package.check(self.cases, backends=[HANGS], minutes=0)


if __name__ == "__main__":
    unittest.main()
