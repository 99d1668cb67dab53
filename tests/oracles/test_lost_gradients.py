#!/usr/bin/env python3
"""What has no reference takes it from nothing but what is made from it: a gradient from no value and from no other gradient, a step that
cannot be expanded from none of its neighbours; and gather's gradient is PyTorch's in float64."""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "tests/support")]

from programs import ulpscope as command  # noqa: E402
from ulpscope import places  # noqa: E402

CASES = """
about: What has a reference where some of it has none?
cases:
  - name: gradient
    tensors:
      x: {dtype: float32, shape: [8, 16], fill: normal, requires_grad: true}
      z: {dtype: float32, shape: [8, 16], fill: normal, requires_grad: true}
    program:
      - {op: prod, of: [x], dim: 1, keepdim: true, as: p}
      - {op: mul, of: [p, z], as: y}
      - {op: sum, of: [y], as: s}
      - {op: backward, of: [s]}
    observe: [p, y, s, x.grad, z.grad]
  - name: cross_entropy
    tensors:
      x: {dtype: float32, shape: [8, 6], fill: normal, requires_grad: true}
      w: {dtype: float32, shape: [5, 6], fill: normal}
      target: {dtype: int64, shape: [8], fill: {integers: {low: 0, high: 4}}}
    program:
      - {op: linear, of: [x, w], as: logits}
      - {op: cross_entropy, of: [logits, target], as: loss}
      - {op: backward, of: [loss]}
    observe: [logits, loss, x.grad]
  - name: step
    tensors:
      x: {dtype: float32, shape: [4, 6], fill: normal}
    program:
      - {op: einsum, of: [x, x, x], equation: "ij,ij,ij->i", as: cubes}
      - {op: relu, of: [x], as: y}
      - {op: neg, of: [cubes], as: n}
    observe: [cubes, n, y]
  - name: gather
    tensors:
      x: {dtype: float64, shape: [4, 7, 2], fill: normal, requires_grad: true}
      g: {dtype: float64, shape: [4, 9, 2], fill: normal}
      i: {dtype: int64, shape: [4, 9, 2], fill: {integers: {low: 0, high: 6}}}
    program:
      - {op: gather, of: [x, i], dim: 1, as: y}
      - {op: backward, of: [y], grad: g}
    observe: [y, x.grad]
"""
WITHOUT = {"gradient": {"x.grad"}, "cross_entropy": {"x.grad"}, "step": {"cubes"}, "gather": set()}


class Lost(unittest.TestCase):
    def test_only_what_is_made_from_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "lost.yaml")
            path.write_text(CASES)
            done = command("run", path, "-b", "torch-eager", "-q", "--no-trace", "-o", pathlib.Path(folder, "run"),
                           beside=places.environment())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            results = json.loads(pathlib.Path(folder, "run/report.json").read_text())["results"]
        found = {result["id"].rpartition("/")[2]: result["values"] for result in results}
        self.assertEqual(set(found), set(WITHOUT))
        for name, values in found.items():
            with self.subTest(name):
                self.assertEqual({each for each, value in values.items() if value["classification"] == "no_reference"}, WITHOUT[name])
        gradient = found["gather"]["x.grad"]
        self.assertEqual(gradient["checked"], 4 * 7 * 2)
        self.assertLess(gradient["max_abs"], 1e-14)  # PyTorch's sums in float64, against the exact ones


if __name__ == "__main__":
    unittest.main()
