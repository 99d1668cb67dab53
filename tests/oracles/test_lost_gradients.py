#!/usr/bin/env python3
"""A value without a reference takes it only from the values made from it: a gradient from no value and from no other gradient, a step that
cannot be expanded from none of its neighbours; and gradients are PyTorch's in float64."""
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
      base: {dtype: float32, shape: [8, 16], fill: {uniform: {low: 1, high: 2}}}
    program:
      - {op: pow, of: [base, x], as: p}
      - {op: mul, of: [p, z], as: y}
      - {op: sum, of: [y], as: s}
      - {op: backward, of: [s]}
    observe: [p, y, s, x.grad, z.grad]
  - name: cross_entropy
    tensors:
      x: {dtype: float32, shape: [8, 6], fill: normal, requires_grad: true}
      w: {dtype: float32, shape: [5, 6], fill: normal}
      target: {dtype: int64, shape: [8], fill: {integers: {low: 0, high: 4}}}
      base: {dtype: float32, shape: [], fill: {values: [1.5]}}
    program:
      - {op: linear, of: [x, w], as: logits}
      - {op: cross_entropy, of: [logits, target], as: loss}
      - {op: pow, of: [base, loss], as: end}
      - {op: backward, of: [end]}
    observe: [logits, loss, end, x.grad]
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
X = "x: {dtype: float64, shape: [8, 10], fill: normal, requires_grad: true}"
# name: other tensors, the step whose result is differentiated, the shape that it has
IN_FLOAT64 = {
    "softmax": ("", "op: softmax, of: [x], dim: 1", [8, 10]),
    "log_softmax": ("", "op: log_softmax, of: [x], dim: 0", [8, 10]),
    "logsumexp": ("", "op: logsumexp, of: [x], dim: 1", [8]),
    "cross_entropy": ("target: {dtype: int64, shape: [8], fill: {integers: {low: 0, high: 9}}}", "op: cross_entropy, of: [x, target]", []),
    "unreduced": ("target: {dtype: int64, shape: [8], fill: {integers: {low: 0, high: 9}}}",
                  "op: cross_entropy, of: [x, target], reduction: none", [8]),
    "nll_loss": ("target: {dtype: int64, shape: [8], fill: {integers: {low: 0, high: 9}}}", "op: nll_loss, of: [x, target]", []),
    "amax": ("", "op: amax, of: [x], dim: [0, 1]", []),
    "amin": ("", "op: amin, of: [x], dim: 0", [10]),
    "cumsum": ("", "op: cumsum, of: [x], dim: 0", [8, 10]),
    "slice": ("", "op: slice, of: [x], dim: 1, start: 1, step: 4", [8, 3]),
    "addmm": ("c: {dtype: float64, shape: [8, 8], fill: normal, requires_grad: true}\n      w: {dtype: float64, shape: [10, 8], fill: normal}",
              "op: addmm, of: [c, x, w], alpha: 3, beta: 0.7", [8, 8]),
    "attention": ("k: {dtype: float64, shape: [6, 10], fill: normal}\n      v: {dtype: float64, shape: [6, 4], fill: normal}",
                  "op: scaled_dot_product_attention, of: [x, k, v]", [8, 4]),
    "causal": ("k: {dtype: float64, shape: [8, 10], fill: normal}\n      v: {dtype: float64, shape: [8, 4], fill: normal}",
               "op: scaled_dot_product_attention, of: [x, k, v], is_causal: true", [8, 4]),
    "added_mask": ("k: {dtype: float64, shape: [6, 10], fill: normal}\n      v: {dtype: float64, shape: [6, 4], fill: normal}\n"
                   "      m: {dtype: float64, shape: [8, 6], fill: normal}",
                   "op: scaled_dot_product_attention, of: [x, k, v, m]", [8, 4]),
    "kept_mask": ("k: {dtype: float64, shape: [6, 10], fill: normal}\n      v: {dtype: float64, shape: [6, 4], fill: normal}\n"
                  "      m: {dtype: bool, shape: [6], fill: {values: [1, 0, 1, 1, 0, 1]}}",
                  "op: scaled_dot_product_attention, of: [x, k, v, m]", [8, 4]),
}
for each, (tensors, step, shape) in IN_FLOAT64.items():
    others = "".join(f"\n      {line.strip()}" for line in (tensors.split("\n") if tensors else []))
    if shape:
        others += f"\n      g: {{dtype: float64, shape: {shape}, fill: normal}}"
    leaves = "x.grad, c.grad" if "requires_grad" in tensors else "x.grad"
    CASES += f"""  - name: in_float64_{each}
    tensors:
      {X}{others}
    program:
      - {{{step}, as: y}}
      - {{op: backward, of: [y]{", grad: g" if shape else ""}}}
    observe: [y, {leaves}]
"""
    WITHOUT["in_float64_" + each] = set()


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
        for each in IN_FLOAT64:
            for name, value in found["in_float64_" + each].items():
                with self.subTest(each, value=name):
                    self.assertEqual(value["checked"], value["elements"])
                    self.assertLess(value["max_abs"], 1e-14)


if __name__ == "__main__":
    unittest.main()
