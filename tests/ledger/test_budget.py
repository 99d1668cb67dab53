#!/usr/bin/env python3
"""Budgets of random programs: each share, and what one step in float32 does, is the one of plain PyTorch in float64; a rounding that is planted
in one step ranks first.

usage: test_budget.py [--count N] [--seed S]
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
import torch  # noqa: E402
from programs import class_folder, load_accounts, ulpscope  # noqa: E402

COUNT, SEED = 12, 23
BACKENDS = ("honest", "narrow_use", "narrow_sum", "inner")
TENSORS = """    tensors:
      x: {dtype: float32, shape: [16, 32], fill: normal}
      w: {dtype: float32, shape: [24, 32], fill: normal}
      b: {dtype: float32, shape: [24], fill: normal}
"""
PLANTED = """about: Which step was rounded?
cases:
  - name: planted
""" + TENSORS + """    program:
      - {op: linear, of: [x, w], as: v0}
      - {op: mul, of: [v0, 0.3], as: v1}
      - {op: gelu, of: [v1], as: v2}
      - {op: layer_norm, of: [v2], normalized_shape: [24], eps: 1.0e-5, as: v3}
      - {op: softmax, of: [v3], dim: 1, as: v4}
      - {op: add, of: [v4, b], as: v5}
    observe: [v5]
"""
FUSED = """about: A cast that a compiler fuses with the step that reads it.
cases:
  - name: fused
""" + TENSORS + """    program:
      - {op: linear, of: [x, w], as: v0}
      - {op: cast, of: [v0], dtype: bfloat16, as: v1}
      - {op: add, of: [v1, b], as: v2}
      - {op: exp, of: [v2], as: v3}
    observe: [v3]
"""
STEPS = tuple(f"v{i}" for i in range(6))


def wide(step, values):
    """The step in float64; a cast between floating dtypes rounds nothing."""
    attrs = {key: torch.float64 if key == "dtype" else value for key, value in step.attrs.items()}
    return again.TORCH[step.op](*(values[each] if isinstance(each, str) else each for each in step.of), **attrs)


def run(program, inputs, given, rounded=(), observed=None):
    """The observed value with `given` in the place of steps, in float64; results of `rounded` (step -> dtype) are rounded to that."""
    values = {name: each.double() for name, each in inputs.items()}
    for step in program.steps:
        if step.name in given and step.op not in again.VIEWS:
            values[step.name] = given[step.name].double()
            continue
        values[step.name] = wide(step, values)
        if step.name in rounded and step.op not in again.VIEWS:
            values[step.name] = values[step.name].to(rounded[step.name]).double()
    return values[observed].flatten()


class Run:
    """A run folder: its report, and what each backend stored of a program."""

    def __init__(self, folder):
        self.folder, self.accounts = folder, load_accounts()
        self.report = json.loads((folder / "report.json").read_text())
        self.records = self.accounts.stored(folder)

    def stored(self, case, backend):
        record = self.records[case, backend]
        return {name: again.tensor(each) for name, each in self.accounts.tensors_of(self.folder / record["tensors"]["file"]).items()}


class Budgets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        cls.programs = {each.name: each for each in (generate.program(SEED, index) for index in range(COUNT))}
        (cls.folder / "programs.yaml").write_text(generate.yaml(cls.programs.values()))
        (cls.folder / "keep").mkdir()
        done = ulpscope("run", cls.folder / "programs.yaml", "--adapter", ROOT / "tests/programs/adapter.py", "--no-trace", "-q", "-b",
                        ",".join(["torch-eager"] + [f"{name}:keep={cls.folder / 'keep'}" for name in BACKENDS]), "--seed", SEED, "-o",
                        cls.folder / "run", beside={"ULPSCOPE_PYTHON": sys.executable}, timeout=1200)
        assert (cls.folder / "run/report.json").exists(), done.stdout + done.stderr
        cls.found = Run(cls.folder / "run")

    def inputs(self, program):
        kept = self.found.accounts.tensors_of(self.folder / "keep" / f"{program.name}.safetensors")
        return {name: again.tensor(kept[name]) for name in program.tensors}

    def each(self):
        """(budget, program, inputs, stored values of its steps, result) of each that is booked."""
        for budget in self.found.report["budgets"]:
            if budget["left_out"]:
                continue
            program, backend = self.programs[budget["case"].rpartition("/")[2]], budget["backends"][0]
            stored = self.found.stored(budget["case"] + "~opened", backend)
            own = self.found.stored(budget["case"], backend)[budget["value"]].double().flatten()
            self.assertEqual(budget["elements"], own.numel(), "all of so few")
            yield budget, program, self.inputs(program), stored, own

    def test_shares_are_those_of_the_exact_rest_in_float64(self):
        compared = silent = 0
        for budget, program, inputs, stored, own in self.each():
            value, where = budget["value"], (budget["case"], budget["backends"][0], budget["value"])
            entries = {entry["step"]: entry for entry in budget["entries"]}
            turns = {each: entry["step"] for entry in budget["entries"] for each in entry.get("with", [])}
            given, before = {}, run(program, inputs, {}, observed=value)
            error = own - before
            self.assertAlmostEqual(budget["rms"] / error.pow(2).mean().sqrt().item(), 1, delta=1e-4, msg=where)
            for step in program.steps:
                if step.op in again.VIEWS:
                    continue
                if step.name in turns:
                    continue
                given.update((each, stored[each]) for each in (step.name, *(each for each, turn in turns.items() if turn == step.name)))
                after = run(program, inputs, given, observed=value)
                change = after - before
                share = (change @ error / (error @ error)).item()
                if step.name in entries:
                    self.assertAlmostEqual(entries[step.name]["share"], share, delta=0.01 * max(abs(share), 1e-3), msg=(where, step.name))
                    self.assertAlmostEqual(entries[step.name]["rms"] / change.pow(2).mean().sqrt().item(), 1, delta=0.01)
                    compared += 1
                else:
                    self.assertLess(change.abs().max().item(), 1e-4 * budget["rms"], (where, step.name, "has no entry"))
                    silent += 1
                before = after
            self.assertLessEqual(set(entries), set(stored), "nothing is left that no step accounts for")
        self.assertGreater(compared, 3 * COUNT)
        self.assertGreater(silent, COUNT)
        print(f"{compared} entries are those of plain PyTorch, {silent} steps have none", file=sys.stderr)

    def test_entries_add_up(self):
        for budget, *_ in self.each():
            self.assertAlmostEqual(sum(entry["share"] for entry in budget["entries"]), 1, delta=1e-12, msg=str(budget))
            self.assertLess(budget["precision"], 1e-18 * max(1.0, budget["rms"]), "exact to more than any entry is small")

    def test_a_step_in_float32_does_what_is_said(self):
        tried = lowered = 0
        for budget, program, inputs, stored, own in self.each():
            found, narrow = budget.get("in_float32"), {name for name, each in stored.items() if each.dtype.itemsize == 2}
            candidates = [entry for entry in budget["entries"] if entry["step"] in narrow]
            if not candidates:
                self.assertIsNone(found)
                continue
            self.assertEqual(found["step"], max(candidates, key=lambda entry: abs(entry["share"]))["step"])
            names = [step.name for step in program.steps]
            turns = {each: entry["step"] for entry in budget["entries"] for each in entry.get("with", [])}
            upto = [name for name in names[:names.index(found["step"])] if names.index(turns.get(name, name)) < names.index(found["step"])]
            exact = run(program, inputs, {}, observed=budget["value"])
            rounded = {name: each.dtype for name, each in stored.items()}
            before = run(program, inputs, {name: stored[name] for name in (*upto, found["step"])}, rounded, budget["value"])
            after = run(program, inputs, {name: stored[name] for name in upto}, {**rounded, found["step"]: torch.float32}, budget["value"])
            for key, result in (("before", before), ("after", after)):
                self.assertAlmostEqual(found[key], (result - exact).pow(2).mean().sqrt().item(), delta=0.01 * found[key], msg=(budget, key))
            tried += 1
            lowered += found["lowers"]
            if found["lowers"]:
                self.assertLess(found["after"], found["before"])
        self.assertGreater(tried, COUNT)
        self.assertGreater(lowered, 0)

    def test_a_recorded_run_gives_the_same_budgets(self):
        done = ulpscope("judge", self.folder / "run", "--json", self.folder / "again.json", timeout=600)
        self.assertTrue((self.folder / "again.json").exists(), done.stdout + done.stderr)
        self.assertEqual(json.loads((self.folder / "again.json").read_text())["budgets"], self.found.report["budgets"])


class Planted(unittest.TestCase):
    def test_what_is_planted_ranks_first(self):
        folder = class_folder(type(self))
        (folder / "planted.yaml").write_text(PLANTED)
        done = ulpscope("run", folder / "planted.yaml", "--adapter", ROOT / "tests/ledger/planted.py", "--no-trace", "-b",
                        ",".join(["torch-eager"] + [f"planted:at={step}" for step in STEPS]), "--seed", SEED, "-o", folder / "run",
                        beside={"ULPSCOPE_PYTHON": sys.executable}, timeout=600)
        report = Run(folder / "run").report
        booked = {backend: budget for budget in report["budgets"] for backend in budget["backends"]}
        for step in STEPS:
            entries = sorted(booked[f"planted:at={step}"]["entries"], key=lambda entry: -abs(entry["share"]))
            self.assertEqual(entries[0]["step"], step)
            self.assertGreater(entries[0]["share"], 0.99, "a rounding to bfloat16 is 65,536 times as large as one to float32")
            self.assertIn(f"from {step}", done.stdout)
        self.assertTrue(all(entry["share"] < 0.99 for entry in booked["torch-eager"]["entries"]))

    def test_a_step_that_reads_another_unrounded_shares_its_entry(self):
        """By themselves they have entries of some hundred times the error, of which one cancels the other."""
        folder = class_folder(type(self)) / "of_fused"
        folder.mkdir()
        (folder / "fused.yaml").write_text(FUSED)
        done = ulpscope("run", folder / "fused.yaml", "--adapter", ROOT / "tests/ledger/planted.py", "--no-trace", "-b",
                        "planted,planted:fused=v1", "--seed", SEED, "-o", folder / "run", beside={"ULPSCOPE_PYTHON": sys.executable}, timeout=600)
        report = Run(folder / "run").report
        booked = {backend: budget["entries"] for budget in report["budgets"] for backend in budget["backends"]}
        fused, plain = ({entry["step"]: entry for entry in booked[name]} for name in ("planted:fused=v1", "planted"))
        self.assertEqual(list(fused), ["v0", "v2", "v3"])
        self.assertEqual(fused["v2"]["with"], ["v1"], "it reads v1 before its rounding")
        self.assertTrue(all(abs(entry["share"]) < 2 for entry in fused.values()), fused)
        self.assertAlmostEqual(sum(entry["share"] for entry in fused.values()), 1, delta=1e-12)
        self.assertIn("from v1 and v2", done.stdout)
        self.assertGreater(plain["v1"]["share"], 0.99, "as the program has it, the cast is what errs")
        self.assertNotIn("with", plain["v1"])


if __name__ == "__main__":
    take_numbers(globals(), count="COUNT", seed="SEED")
    unittest.main()
