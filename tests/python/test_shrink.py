#!/usr/bin/env python3
"""Divergences planted in blocks of twelve steps shrink to the steps that show them, with the same kind and edge, and their scripts too.

SHRINK_ALL=1 shrinks every row of PLANTED and REAL (a quarter of an hour), without it those of QUICK alone.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support")]

import torch  # noqa: E402
import ulpscope  # noqa: E402
from programs import ulpscope as command  # noqa: E402
from ulpscope import places  # noqa: E402

MODEL = "emulated:model=in=as_is;prod=exact;acc={acc};mid={mid};out=float32_rne"

BLOCK = """
about: Which step of a block of twelve is it?
cases:
  - name: block
    tensors:
      x: {{dtype: {dtype}, shape: [16, 32], fill: normal}}
      gain: {{dtype: {dtype}, shape: [32], fill: normal}}
      up: {{dtype: {dtype}, shape: [48, 32], fill: normal}}
      gate: {{dtype: {dtype}, shape: [48, 32], fill: normal}}
      down: {{dtype: {dtype}, shape: [32, 48], fill: normal}}
    program:
      - {{op: mul, of: [x, 0.5], as: scaled}}
      - {{op: add, of: [scaled, x], as: shifted}}
      - {{op: mul, of: [shifted, gain], as: normed}}
      - {{op: linear, of: [normed, gate], as: g}}
      - {{op: linear, of: [normed, up], as: u}}
      - {{op: silu, of: [g], as: s}}
      - {{op: mul, of: [s, u], as: h}}
      - {{op: linear, of: [h, down], as: d}}
      - {{op: add, of: [d, x], as: r}}
      - {{op: relu, of: [r], as: r2}}
      - {{op: gt, of: [r, 1.0], as: big}}
      - {{op: where, of: [big, r2, r], as: y}}
    observe: [y]
"""

# name: (dtype, the faulty backend, kind, value, edge, most steps); the other one is emulated, or torch-eager for `planted`.
PLANTED = {
    "accumulates": ("bfloat16", MODEL.format(acc="bfloat16", mid="none"), "precision", "g", "acc", 1),
    "rounds_first": ("bfloat16", MODEL.format(acc="float32", mid="float16"), "precision", "g", "mid", 1),
    "rounds": ("bfloat16", "planted:fault=rounds,at=d", "precision", "d", None, 1),
    "unrounded": ("bfloat16", "planted:fault=unrounded,at=h", "precision", "h", "in.s", 2),
    "inside": ("bfloat16", "planted:fault=inside,at=s", "precision", "s", None, 1),
    "dtype": ("bfloat16", "planted:fault=dtype,at=r", "dtype", "r", "", 1),
    "raises": ("bfloat16", "planted:fault=raises,at=r2", "outcome", "", "", 1),
    "zero": ("bfloat16", "planted:fault=zero,at=r2", "special", "r2", "", 1),
    "value": ("bfloat16", "planted:fault=value,at=big", "value", "big", "", 1),
    "order": ("float32", "planted:fault=order,at=d", "order", "d", "", 1),
}
REAL = {"jax": ("bfloat16", "jax", "precision", "s", None, 1), "inductor": ("bfloat16", "torch-inductor", "precision", None, None, 3)}
QUICK = ("accumulates", "raises", "unrounded")


def chosen(rows):
    return list(rows) if os.environ.get("SHRINK_ALL") else [name for name in rows if name in QUICK]


class Shrink(unittest.TestCase):
    def shrunk(self, folder, name, backends, dtype, *more):
        path = pathlib.Path(folder, f"{name}.yaml")
        path.write_text(BLOCK.format(dtype=dtype))
        return command("shrink", path, "-b", ",".join(backends), "--adapter", ROOT / "tests/python/planted.py", "-o",
                       pathlib.Path(folder, name), "-q", *more, beside=places.environment(), timeout=1200)

    def one(self, name, row):
        dtype, faulty, kind, value, edge, most = row
        other = "emulated" if faulty.startswith("emulated") else "torch-eager"
        with tempfile.TemporaryDirectory() as folder:
            done = self.shrunk(folder, name, [other, faulty], dtype)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("stopped early", done.stderr)
            out = pathlib.Path(folder, name)
            facts = json.loads((out / "shrunk.json").read_text())
            print(f"{name}: {facts['kind']} at {facts['value']} ({facts['op']}) {facts['edge']}: {facts['steps']} of 12 steps, "
                  f"{facts['elements']} of {facts['elements_before']} elements, {facts['trials']} trials")
            self.assertEqual(facts["kind"], kind)
            self.assertEqual(facts["value"], facts["value"] if value is None else value)
            self.assertEqual(facts["edge"], facts["edge"] if edge is None else edge)
            self.assertLessEqual(facts["steps"], most)
            self.assertLess(facts["elements"], facts["elements_before"] / 20)
            # The case that was printed differs in the same kind and at the same value if it is run anew.
            again = command("run", out / "case.yaml", "-b", f"{other},{faulty}", "--adapter", ROOT / "tests/python/planted.py", "-q",
                            "-o", pathlib.Path(folder, "again"), beside=places.environment())
            report = json.loads(pathlib.Path(folder, "again/report.json").read_text())
            self.assertIn((kind, value if value is not None else facts["value"]),
                          [(each["kind"], each["value"]) for each in report["divergences"]], again.stdout)
            if other == "emulated":
                self.assertFalse((out / "repro.py").exists())
                self.assertIn("no script", done.stderr)
            else:
                self.assert_reproduces(out)

    def assert_reproduces(self, out):
        """The script shows it in a folder of its own, with nothing of this tree in its path; and not for other inputs."""
        script = (out / "repro.py").read_text()
        self.assertNotIn("ulpscope", script.replace("ulpscope-", ""))
        with tempfile.TemporaryDirectory() as alone:
            pathlib.Path(alone, "repro.py").write_text(script)
            variables = {key: value for key, value in os.environ.items() if not key.startswith(("ULPSCOPE", "PYTHONPATH"))}
            ran = subprocess.run([sys.executable, "repro.py"], cwd=alone, env=variables, capture_output=True, text=True, timeout=300,
                                 check=False)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_the_same_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                done = self.shrunk(folder, name, ["emulated", PLANTED["accumulates"][1]], "bfloat16")
                self.assertEqual(done.returncode, 0, done.stderr)
            one, two = (pathlib.Path(folder, name, "case.yaml").read_text().replace(f"/{name}", "") for name in ("one", "two"))
            self.assertEqual(one.partition("\n")[2], two.partition("\n")[2])

    def test_time_is_up(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.shrunk(folder, "late", ["emulated", PLANTED["accumulates"][1]], "bfloat16", "--minutes", "0.0001")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("stopped early", done.stderr)

    def test_backends_that_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.shrunk(folder, "same", ["emulated", "emulated:order=sequential"], "bfloat16")
            self.assertEqual(done.returncode, 1)
            self.assertIn("the two do not part", done.stderr)
            done = self.shrunk(folder, "three", ["emulated", "torch-eager", "jax"], "bfloat16")
            self.assertEqual(done.returncode, 4)
            self.assertIn("two backends", done.stderr)


def _test(name, row):
    return lambda self: self.one(name, row)


for _name in chosen(PLANTED) + chosen(REAL):
    setattr(Shrink, f"test_{_name}", _test(_name, {**PLANTED, **REAL}[_name]))


class InPython(unittest.TestCase):
    def test_a_function_with_a_kernel_of_ones_own(self):
        def block(x, w):
            for _ in range(5):
                x = torch.relu(x) * 0.5
            return (x @ w).abs()

        def narrow(x, w):
            total = torch.zeros(x.shape[0], w.shape[1], dtype=torch.bfloat16)
            for k in range(x.shape[1]):
                total = total + x[:, k:k + 1] * w[k:k + 1]
            return total

        made = torch.Generator().manual_seed(3)
        x, w = torch.randn(16, 16, generator=made).bfloat16(), torch.randn(16, 16, generator=made).bfloat16()
        own = ulpscope.backend("own", {"matmul": narrow, "relu": torch.relu, "mul": torch.mul, "abs": torch.abs})
        with tempfile.TemporaryDirectory() as folder:
            shrunk = ulpscope.shrink(block, (x, w), backends=["torch-eager", own], out=folder)
            self.assertEqual((shrunk.kind, shrunk.op, shrunk.steps, shrunk.steps_before), ("precision", "matmul", 1, 12))
            self.assertIn("op: matmul", shrunk.yaml)
            self.assertIn("torch.matmul", shrunk.script)
            with self.assertRaises(ulpscope.NothingToShrink):
                ulpscope.shrink(block, (x, w), backends=["torch-eager", "torch-eager:mkldnn=on"], out=folder)


if __name__ == "__main__":
    unittest.main()
