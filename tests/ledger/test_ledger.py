#!/usr/bin/env python3
"""Ledgers of random programs with planted roundings: each hybrid is the one that plain PyTorch computes, a step that does as PyTorch does has
no entry, and the books balance.

usage: test_ledger.py [--count N] [--seed S]
"""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/ledger", "tests/programs", "tests/support", "backends/python")]
import again  # noqa: E402
import generate  # noqa: E402
from options import take_numbers  # noqa: E402
from programs import class_folder, load_accounts, ulpscope  # noqa: E402

COUNT, SEED = 12, 11
# Sums in other orders, values that are read unrounded, roundings at a use and inside ops, narrow sums, and a program that observing its steps
# changes.
BACKENDS = ("honest", "reversed", "unrounded", "narrow_use", "narrow_sum", "contract", "inner", "opened_changes")


class Ledgers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        cls.programs = [generate.program(SEED, index) for index in range(COUNT)]
        (cls.folder / "programs.yaml").write_text(generate.yaml(cls.programs))
        (cls.folder / "keep").mkdir()
        known = BACKENDS
        done = ulpscope("run", cls.folder / "programs.yaml", "--adapter", ROOT / "tests/programs/adapter.py", "--no-trace", "-q", "-b",
                        ",".join(["torch-eager"] + [f"{name}:keep={cls.folder / 'keep'}" for name in known]), "--seed", SEED, "-o", cls.folder / "run",
                        beside={"ULPSCOPE_PYTHON": sys.executable}, timeout=1200)
        assert (cls.folder / "run/report.json").exists(), done.stdout + done.stderr
        cls.accounts = load_accounts()
        cls.report = json.loads((cls.folder / "run/report.json").read_text())
        cls.own = cls.accounts.stored(cls.folder / "run")
        cls.hybrids = cls.accounts.stored(cls.folder / "run/ledger")

    def tensors(self, folder, record):
        return {name: each for name, each in self.accounts.tensors_of(folder / record["tensors"]["file"]).items()} if "tensors" in record else {}

    def inputs(self, program):
        kept = self.accounts.tensors_of(self.folder / "keep" / f"{program.name}.safetensors")
        return {name: again.tensor(kept[name]) for name in program.tensors}

    def test_each_hybrid_is_the_one_of_plain_pytorch(self):
        run = self.folder / "run"
        compared = moved = 0
        for program in self.programs:
            case = next((case for case, _ in self.own if case.rpartition("/")[2] == program.name), None)
            for (booked, backend), record in self.hybrids.items():
                if booked != case:
                    continue
                observations = record["observation"]["observations"]
                self.assertEqual(observations.get("carrier"), "torch-eager", (case, backend, observations))
                stored = {name: again.tensor(each) for name, each in self.tensors(run, self.own[case + "~opened", backend]).items()}
                here = self.tensors(run / "ledger", record)
                for value in {key.partition("/")[2] for key in here if key.startswith("0/")}:
                    walk = again.walk(program.steps, self.inputs(program), value, stored)
                    steps = {observations[f"step/{key.partition('/')[0]}"]: again.tensor(each) for key, each in here.items()
                             if key.partition("/")[2] == value and not key.startswith(("0/", "again/"))}
                    self.assertEqual(list(walk), sorted(steps, key=list(step.name for step in program.steps).index), (case, backend, value))
                    for step, tensor in steps.items():
                        self.assertTrue(again.same(tensor, walk[step]), (case, backend, value, step))
                        compared += 1
                    moved += bool(walk)
        self.assertGreater(compared, 3 * COUNT)
        self.assertGreater(moved, COUNT)
        print(f"{compared} hybrids of {COUNT} programs are those of plain PyTorch", file=sys.stderr)

    def test_the_books_balance(self):
        booked, wrong = self.accounts.ledger_check.faults(self.folder / "run", self.report, self.accounts.stored, self.accounts.tensors_of)
        self.assertEqual(wrong, [])
        self.assertGreater(booked, 2 * COUNT)
        print(f"{booked} entries of {len(self.report['ledgers'])} ledgers balance", file=sys.stderr)

    def test_a_share_that_is_not_that_of_the_tensors_is_found(self):
        changed = json.loads(json.dumps(self.report))
        ledger = next(each for each in changed["ledgers"] if len(each["entries"]) > 1)
        ledger["entries"][0]["share"] += 1e-6
        ledger["entries"][1]["share"] -= 1e-6
        _, wrong = self.accounts.ledger_check.faults(self.folder / "run", changed, self.accounts.stored, self.accounts.tensors_of)
        self.assertEqual(len(wrong), 2, wrong)

    def test_an_entry_that_is_left_out_is_found(self):
        changed = json.loads(json.dumps(self.report))
        ledger = next(each for each in changed["ledgers"] if each["carrier"] and each["entries"])
        ledger["entries"].pop()
        _, wrong = self.accounts.ledger_check.faults(self.folder / "run", changed, self.accounts.stored, self.accounts.tensors_of)
        self.assertTrue(wrong)


if __name__ == "__main__":
    take_numbers(globals(), count="COUNT", seed="SEED")
    unittest.main()
