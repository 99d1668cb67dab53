#!/usr/bin/env python3
"""Whole models of transformers and diffusers, eager against inductor: the statements of their ledgers, recomputed from the models
themselves.

A table of all architectures: tests/models/test_models.py --all (or ULPSCOPE_MODELS=NAME,NAME...). Without it one, and three with
ULPSCOPE_NIGHTLY=1.
"""
import copy
import os
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/models", "tests/ledger", "tests/support", "harness/python", "backends/python")]
import architectures  # noqa: E402

if not architectures.available():
    print("left out: transformers is not installed (ci/setup --with models)")
    raise SystemExit(0 if "ULPSCOPE_IN_CI_TEST" not in os.environ else 1)

import torch  # noqa: E402
import ulpscope  # noqa: E402
from again import compiled, tensor  # noqa: E402
from programs import class_folder, load_accounts  # noqa: E402

FEW = ("distilbert", "clip-text", "gemma2") if os.environ.get("ULPSCOPE_NIGHTLY") else ("distilbert", )


def chosen():
    if "--all" in sys.argv:
        sys.argv.remove("--all")
        return architectures.NAMES
    named = os.environ.get("ULPSCOPE_MODELS", "")
    return tuple(named.split(",")) if named else FEW


MODELS = chosen()


class Given(torch.fx.Interpreter):
    """The exported program op by op; the values of some nodes are given."""

    def __init__(self, program, args, given):
        super().__init__(program.graph_module)
        self.given, self.seen = given, {}
        state, constants = program.state_dict, program.constants
        user = iter(torch.utils._pytree.tree_leaves(args))
        kinds = torch.export.graph_signature.InputKind
        self.inputs = [next(user) if spec.kind == kinds.USER_INPUT else state[spec.target] if spec.target in state
                       else constants[spec.target] for spec in program.graph_signature.input_specs]

    def run_node(self, node):
        value = super().run_node(node)
        if node.name in self.given and isinstance(value, torch.Tensor):
            value = self.given[node.name].to(value.dtype).reshape(value.shape)
        self.seen[node.name] = value
        return value

    def result(self):
        with torch.no_grad():
            return super().run(*self.inputs)[0]


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        cls.rows = []

    @classmethod
    def tearDownClass(cls):
        print(f"{'model':<12} steps  judged  entries  differ          explained  causes   seconds", file=sys.stderr)
        for row in cls.rows:
            print(row, file=sys.stderr)
        whole = sum("100.0 %" in row for row in cls.rows)
        print(f"{len(cls.rows)} models, {whole} explained entirely", file=sys.stderr)
        assert cls.rows, "no model was checked"

    def one(self, name):
        module, args = architectures.build(name)
        began = time.monotonic()
        report = ulpscope.check(module, args, name=name, backends=["torch-eager", "torch-inductor"], out=self.folder / name,
                                progress=False, timeout=1500)
        took = time.monotonic() - began
        self.assertEqual({each["status"] for each in report.results}, {"PASS"}, str(report))
        self.assertFalse(any(report.own["torch-eager"].values()), "captured bit by bit")
        with torch.no_grad():
            eager = module(*args)
        steps = [step for step in report.case.all_steps() if step.name]
        opaque = sum(step.op.startswith("aten::") for step in steps)
        judged = 1 - opaque / len(steps)
        if not report.ledger:
            self.assertTrue(torch.equal(eager, compiled(module, args)))
            self.row(f"{name:<12} {len(steps):>5}  {judged:>6.2f}  {0:>7}  none            {'':>9}  {'':>6}  {took:>7.0f}")
            return
        ledger, = report.ledger
        explained = 1 - sum(abs(entry["share"]) for entry in ledger.entries if not entry["explained"])
        self.row(f"{name:<12} {len(steps):>5}  {judged:>6.2f}  {len(ledger.entries):>7}  {ledger.elements:>6} of {ledger.of:<6}"
                         f"  {100 * explained:>7.1f} %  {len(ledger.causes):>6}  {took:>7.0f}")
        self.recompute(name, module, args, report, ledger, eager)

    def row(self, text):
        self.rows.append(text)
        print(text, file=sys.stderr, flush=True)  # a long table that is stopped shows what it has

    def recompute(self, name, module, args, report, ledger, eager):
        """Each figure of the ledger once more, from the model itself (whose parameters require no gradient)."""
        inductor = compiled(module, args)
        self.assertEqual(ledger.elements, int((eager != inductor).sum()))
        difference = (inductor.double() - eager.double()).flatten()
        self.assertEqual(ledger.atol, difference.abs().max().item())
        self.assertAlmostEqual(sum(entry["share"] for entry in ledger.entries), 1, delta=1e-9)
        self.shares(report, ledger, args, eager, difference)
        for tried in ledger.remedies:
            knob, _, value = tried["setting"].partition("=")
            if knob == "emulate_precision_casts":
                again = compiled(module, args, emulate_precision_casts=value == "true")
                self.assertEqual(tried["elements"], int((eager != again).sum()), tried)
        self.nearer(module, args, ledger, {"torch-eager": eager, "torch-inductor": inductor})

    def shares(self, report, ledger, args, eager, difference):
        """The hybrids: the exported program, interpreted by torch.fx with the recorded values in the place of nodes."""
        accounts = load_accounts()
        folder = report.run_dir / "ledger"
        booked, wrong = accounts.ledger_check.faults(report.run_dir, report.data, accounts.stored, accounts.tensors_of)
        self.assertEqual((booked, wrong), (len(ledger.entries), []), "it balances")
        record = accounts.stored(folder)[ledger.case, "torch-inductor"]
        tensors = accounts.tensors_of(folder / record["tensors"]["file"])
        stored = {key.partition("/")[2]: tensor(each) for key, each in tensors.items() if key.startswith("stored/")}
        if not stored:
            return  # every step could be observed: tests/ledger recomputes such hybrids
        nodes = {}
        for step in report.case.all_steps():
            if step.node is not None and step.name:
                nodes[step.node.name] = step.name  # of several steps of one node, the last
        place = {step: node for node, step in nodes.items()}
        shares, before, given = {}, eager, {}
        order = [step.name for step in report.case.all_steps() if step.name in stored]
        entries = {entry["step"]: entry for entry in ledger.entries}
        for number, step in enumerate(order):
            if step not in place:
                self.fail(f"{step}: no node of the exported program gives it")
            given[place[step]] = stored[step]
            last = number + 1 == len(order)
            if step not in entries and not last:
                continue
            after = Given(report.case.program, args, given).result()
            change = (after.double() - before.double()).flatten()
            if step in entries:
                shares[step] = float(change @ difference / (difference @ difference))
            else:
                self.assertFalse(change.any(), f"{step} has no entry, and changes the result")
            before = after
        for step, share in shares.items():
            self.assertAlmostEqual(share, entries[step]["share"], delta=0.01 * max(abs(share), 1e-3), msg=step)

    def nearer(self, module, args, ledger, results):
        """Errors against the model in float64, which rounds nothing but what it casts itself."""
        exact = copy.deepcopy(module).double()
        wide = [each.double() if each.is_floating_point() else each for each in args]
        with torch.no_grad():
            true = exact(*wide).double()
        rms = {backend: (each.double() - true).pow(2).mean().sqrt().item() for backend, each in results.items()}
        for each in ledger.nearness["errors"]:
            self.assertAlmostEqual(each["rms"] / rms[each["backend"]], 1, delta=0.02, msg=str(rms))
        if ledger.nearness["nearer"]:
            self.assertEqual(ledger.nearness["nearer"], min(rms, key=rms.get))


def _case(name):
    def test(self):
        self.one(name)
    return test


for each in MODELS:
    setattr(Models, f"test_{each.replace('-', '_')}", _case(each))

if __name__ == "__main__":
    unittest.main()
