#!/usr/bin/env python3
"""Remedies of several cases in one run: each is tried on each case, and torch.compile itself gives what is reported of it."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/ledger", "tests/support", "harness/python", "backends/python")]
from programs import class_folder, ulpscope  # noqa: E402

CASES = ("blocks/layers/mlp", "blocks/layers/rms_norm", "live/fused_chain/polynomial")


class Remedies(unittest.TestCase):
    def test_each_case_has_its_remedy(self):
        folder = class_folder(type(self))
        done = ulpscope("run", *CASES, "-b", "torch-eager,torch-inductor", "--remedies", "--no-trace", "-q", "-o", folder / "run", timeout=600)
        self.assertTrue((folder / "run/report.json").exists(), done.stdout + done.stderr)
        ledgers = json.loads((folder / "run/report.json").read_text())["ledgers"]
        self.assertEqual([each["case"] for each in ledgers], list(CASES))
        setting = "emulate_precision_casts=true"
        again = ulpscope("run", *CASES, "-b", f"torch-eager,torch-inductor:{setting}", "--no-steps", "--no-trace", "-q", "-o", folder / "with",
                         timeout=600)
        self.assertTrue((folder / "with/report.json").exists(), again.stdout + again.stderr)
        differing = {each["case"]: each["elements"] for each in json.loads((folder / "with/report.json").read_text())["ledgers"]}
        for ledger in ledgers:
            tried = {each["setting"]: each["elements"] for each in ledger["remedies"]}
            self.assertEqual(tried, {setting: differing.get(ledger["case"], 0)}, ledger["case"])
        print(f"{len(ledgers)} cases, each with its remedy", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
