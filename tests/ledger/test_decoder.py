#!/usr/bin/env python3
"""The ledger of a compiled decoder block, whose steps cannot all be observed: each figure is one of plain PyTorch."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/ledger", "tests/support", "harness/python", "backends/python")]
import ulpscope  # noqa: E402
from again import compiled  # noqa: E402
from decoder import arguments, block, exact  # noqa: E402
from programs import class_folder, load_accounts  # noqa: E402


class Decoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls) / "run"
        cls.args = arguments()
        cls.report = ulpscope.check(block, cls.args, backends=["torch-eager", "torch-inductor"], out=cls.folder, progress=False)
        cls.ledger, = cls.report.ledger
        cls.eager, cls.inductor = block(*cls.args), compiled(block, arguments())

    def test_the_difference_is_that_of_the_program_as_it_was_asked(self):
        self.assertEqual(self.ledger.elements, int((self.eager != self.inductor).sum()))
        self.assertGreater(self.ledger.elements, 100)
        difference = self.inductor.double() - self.eager.double()
        self.assertAlmostEqual(self.ledger.rms, difference.pow(2).mean().sqrt().item(), delta=1e-9)
        self.assertEqual(self.ledger.atol, difference.abs().max().item())

    def test_it_is_booked_at_stored_values_and_nothing_is_left(self):
        accounts = load_accounts()
        record = accounts.stored(self.folder / "ledger")[self.ledger.case, "torch-inductor"]
        tensors = accounts.tensors_of(self.folder / "ledger" / record["tensors"]["file"])
        stored = {name.partition("/")[2] for name in tensors if name.startswith("stored/")}
        self.assertGreater(len(stored), 5, "inductor's kernels store their results")
        self.assertGreater(len(self.ledger.entries), 1)
        self.assertLessEqual({entry["step"] for entry in self.ledger.entries}, stored)
        self.assertAlmostEqual(sum(entry["share"] for entry in self.ledger.entries), 1, delta=1e-12)
        booked, wrong = accounts.ledger_check.faults(self.folder, self.report.data, accounts.stored, accounts.tensors_of)
        self.assertEqual((booked, wrong), (len(self.ledger.entries), []))

    def test_every_kernel_is_explained(self):
        self.assertEqual([entry["step"] for entry in self.ledger.entries if not entry["explained"]], [])
        self.assertAlmostEqual(self.ledger.explained, 1, delta=1e-12)

    def test_the_nearer_side_is_the_one_nearer_to_float64(self):
        true = exact(*self.args)
        rms = {name: (tensor.double() - true).pow(2).mean().sqrt().item()
               for name, tensor in (("torch-eager", self.eager), ("torch-inductor", self.inductor))}
        for each in self.ledger.nearness["errors"]:
            self.assertAlmostEqual(each["rms"] / rms[each["backend"]], 1, delta=1e-3)
        self.assertEqual(self.ledger.nearness["nearer"], min(rms, key=rms.get))

    def test_the_remedy_does_what_is_said(self):
        tried = {each["setting"]: each for each in self.ledger.remedies}
        again = compiled(block, arguments(), emulate_precision_casts=True)
        self.assertEqual(tried["emulate_precision_casts=true"]["elements"], int((self.eager != again).sum()))
        self.assertLess(tried["emulate_precision_casts=true"]["elements"], self.ledger.elements)

    def test_the_table_says_all_of_it(self):
        text = str(self.ledger)
        for cause in self.ledger.causes:
            self.assertIn(f"{100 * cause['share']:.1f} %", text)
        self.assertEqual(sum(cause["steps"] for cause in self.ledger.causes), len(self.ledger.entries))
        self.assertAlmostEqual(sum(cause["share"] for cause in self.ledger.causes), 1, delta=1e-12)
        self.assertIn("nearer to exact", text)
        json.dumps(self.report.data["ledgers"])


if __name__ == "__main__":
    unittest.main()
