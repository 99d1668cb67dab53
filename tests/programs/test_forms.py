# Ops that libraries compute by other formulas are explained by these, each recomputed here in NumPy, and nothing else is.
"""usage: test_forms.py"""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support")]
from programs import ULPSCOPE, call  # noqa: E402

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# Every step is rounded to bfloat16. `other` takes the formulas of JAX (hypot) and PyTorch/XLA (cross entropy), `wide` rounds the
# result alone, `wrong` moves every third result of `other` by some units, which no rounding explains.
FRAMEWORK = '''
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve
def bf(x):
    return x.astype(numpy_dtype("bfloat16")).astype("float32")
def hypot(a, b, r):
    larger, smaller = numpy.maximum(abs(a), abs(b)), numpy.minimum(abs(a), abs(b))
    ratio = r(smaller / larger)
    return larger * r(numpy.sqrt(r(r(ratio * ratio) + numpy.float32(1))))
def entropy(p, t, r):
    against = r(r(t - numpy.float32(1)) * r(numpy.log(r(numpy.float32(1) - p))))
    return against - r(t * r(numpy.log(p)))
class Forms(Adapter):
    def capabilities(self):
        return {"name": "forms", "backends": ["other", "wide", "wrong"], "versions": {}, "knobs": {"threads": ["1"]},
                "dtypes": ["bfloat16"], "ops": {"hypot": [], "binary_cross_entropy": ["reduction"]}}
    def configure(self, backend, device, knobs):
        self.backend = backend
    def run(self, request):
        given = {tensor.name: tensor.numpy().astype("float64" if self.backend == "wide" else "float32") for tensor in request.tensors}
        values = {}
        for step in request.steps:
            formula = hypot if step.op == "hypot" else entropy
            value = formula(*(given[name] for name in step.of), (lambda x: x) if self.backend == "wide" else bf)
            if self.backend == "wrong":
                value.flat[::3] *= numpy.float32(1.03)
            values[step.name] = value.astype(numpy_dtype("bfloat16"))
        return Result({name: values[name] for name in request.observe})
serve(Forms())
'''
# x + value a / b in float32, rounded once: the number first multiplies a, or the quotient.
RARE = '''
import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve
class Rare(Adapter):
    def capabilities(self):
        return {"name": "rare", "backends": ["scaled_first", "quotient_first"], "versions": {}, "knobs": {"threads": ["1"]},
                "dtypes": ["bfloat16"], "ops": {"addcdiv": ["value"]}}
    def configure(self, backend, device, knobs):
        self.backend = backend
    def run(self, request):
        x, a, b = (tensor.numpy().astype("float32") for tensor in request.tensors)
        value = numpy.float32(-0.7)
        added = value * a / b if self.backend == "scaled_first" else value * (a / b)
        return Result({request.steps[0].name: (x + added).astype(numpy_dtype("bfloat16"))})
serve(Rare())
'''
RARE_CASES = """
cases:
  - name: addcdiv
    tensors:
      x: {dtype: bfloat16, shape: [400, 1000], fill: normal}
      a: {dtype: bfloat16, shape: [400, 1000], fill: normal}
      b: {dtype: bfloat16, shape: [400, 1000], fill: normal}
    program:
      - {op: addcdiv, of: [x, a, b], value: -0.7, as: y}
    observe: [y]
"""
CASES = """
about: Ops of several formulas.
cases:
  - name: hypot
    tensors:
      a: {dtype: bfloat16, shape: [16, 32], fill: normal}
      b: {dtype: bfloat16, shape: [16, 32], fill: normal}
    program:
      - {op: hypot, of: [a, b], as: y}
    observe: [y]
  - name: entropy
    tensors:
      a: {dtype: bfloat16, shape: [16, 32], fill: {uniform: {low: 0.1, high: 0.9}}}
      b: {dtype: bfloat16, shape: [16, 32], fill: {uniform: {low: 0.1, high: 0.9}}}
    program:
      - {op: binary_cross_entropy, of: [a, b], reduction: none, as: y}
    observe: [y]
"""


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Forms(unittest.TestCase):
    def test_each_formula_is_known_and_a_wrong_one_is_not(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "forms.py").write_text(FRAMEWORK)
            (folder / "forms.yaml").write_text(CASES)
            ran = call(ULPSCOPE, "run", folder / "forms.yaml", "--adapter", folder / "forms.py", "-b", "other,wide,wrong", "--no-trace",
                       "-q", "-o", folder / "run", cwd=folder, beside={"ULPSCOPE_PYTHON": sys.executable})
            report = json.loads((folder / "run/report.json").read_text())
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual([r["outcome"] for r in report["results"] if r["outcome"]["kind"] != "completed"], [])
        kinds = {(r["id"].rsplit("/", 1)[-1], r["backend"].partition(":")[0]): r["values"]["y"] for r in report["results"]}
        self.assertEqual(len(kinds), 6)
        for case in ("hypot", "entropy"):
            label = kinds[case, "other"]["label"]
            self.assertNotEqual(kinds[case, "other"]["classification"], "unmodelled", label)
            self.assertIn("inside rounded to bfloat16", label)
            self.assertNotEqual(kinds[case, "wide"]["classification"], "unmodelled", kinds[case, "wide"]["label"])
            self.assertNotIn("inside rounded", kinds[case, "wide"]["label"])
            self.assertEqual(kinds[case, "wrong"]["classification"], "unmodelled", kinds[case, "wrong"]["label"])

    def test_a_form_that_a_sample_does_not_show_is_known_by_the_elements_that_differ(self):
        """Each backend is classified as soon as it has answered, when nobody knows yet where the other one will differ."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rare.py").write_text(RARE)
            (folder / "rare.yaml").write_text(RARE_CASES)
            asked = [ULPSCOPE, "run", folder / "rare.yaml", "--adapter", folder / "rare.py", "-b", "scaled_first,quotient_first", "-q", "-o",
                     folder / "run"]
            ran = call(*asked, cwd=folder, beside={"ULPSCOPE_PYTHON": sys.executable})
            report = json.loads((folder / "run/report.json").read_text())
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            judged = call(ULPSCOPE, "judge", folder / "run", "--json", folder / "again.json", cwd=folder)
            again = json.loads((folder / "again.json").read_text())
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        (entry,) = report["account"]
        self.assertTrue(0 < entry["size"]["elements"] < 40, "elements of which a sample of 4096 holds none, mostly")
        (said,) = [each["sentence"] for each in report["divergences"]]
        self.assertIn("scaled_first likely computes `y` as `x + a * -0.7 / b`", said)
        self.assertIn("quotient_first likely computes `y` as `x + a / b * -0.7`", said)
        # A new classification equals the one made during the run.
        self.assertEqual([each["sentence"] for each in again["divergences"]], [said])
        self.assertEqual([each["values"] for each in again["results"]], [each["values"] for each in report["results"]])


if __name__ == "__main__":
    unittest.main()
