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


if __name__ == "__main__":
    unittest.main()
