# If observing the steps changes the result, their findings are reported for that run, and for no other: two backends planted here.
"""usage: test_observed.py"""

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

# `stores` rounds every step to bfloat16. `fuses` adds to the unrounded product where its steps are observed; without instrumentation it
# moves every third result by a tenth, which no rounding explains. `steady` does the first in both runs.
FRAMEWORK = '''
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve
class Planted(Adapter):
    def capabilities(self):
        return {"name": "planted", "backends": ["stores", "fuses", "steady"], "versions": {}, "knobs": {"threads": ["1"]},
                "dtypes": ["bfloat16"], "ops": {"mul": [], "add": []}}
    def configure(self, backend, device, knobs):
        self.backend = backend
    def run(self, request):
        def rounded(x):
            return x.astype(numpy_dtype("bfloat16"))
        given = {tensor.name: tensor.numpy().astype("float32") for tensor in request.tensors}
        product = given["a"] * given["b"]
        total = (rounded(product).astype("float32") if self.backend == "stores" else product) + given["c"]
        if self.backend == "fuses" and len(request.observe) == 1:
            total.flat[::3] *= numpy.float32(1.1)
        values = {"product": rounded(product), "total": rounded(total)}
        return Result({name: values[name] for name in request.observe})
serve(Planted())
'''
CASE = """
about: A product and a sum, whose steps one backend computes otherwise where they are observed.
cases:
  - name: fused
    tensors:
      a: {dtype: bfloat16, shape: [16, 16], fill: normal}
      b: {dtype: bfloat16, shape: [16, 16], fill: normal}
      c: {dtype: bfloat16, shape: [16, 16], fill: normal}
    program:
      - {op: mul, of: [a, b], as: product}
      - {op: add, of: [product, c], as: total}
    observe: [total]
"""
SHOWN = "fuses likely computes `total` from the unrounded `product`; stores likely does not"


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Observed(unittest.TestCase):
    def sentences(self, backends):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "planted.py").write_text(FRAMEWORK, encoding="utf-8")
            (folder / "mine.yaml").write_text(CASE, encoding="utf-8")
            done = call(ULPSCOPE, "run", "mine.yaml", "--adapter", "planted.py", "-b", backends, "-o", "run", cwd=folder,
                        beside={"HOME": os.fspath(folder)})
            self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
            report = json.loads((folder / "run/report.json").read_text(encoding="utf-8"))
        self.assertEqual(len(report["results"]), backends.count(",") + 1, done.stdout)
        return [(each["kind"], each["sentence"]) for each in report["divergences"]]

    def test_what_another_run_shows_is_said_as_that(self):
        [(kind, sentence)] = self.sentences("stores,fuses")
        self.assertEqual(kind, "value", sentence)
        self.assertRegex(sentence, r"^stores differs from fuses in `total` \(\d+ of 256 elements")
        self.assertRegex(sentence, r"\. Observing all steps changes `total` on fuses \(\d+ of 256 elements, by up to [0-9.]+ ulp\); "
                         rf"there, {SHOWN}\.$")

    def test_where_nothing_changes_it_is_the_finding_itself(self):
        [(kind, sentence)] = self.sentences("stores,steady")
        self.assertEqual(kind, "precision", sentence)
        self.assertTrue(sentence.startswith(SHOWN.replace("fuses", "steady") + ": `total["), sentence)
        self.assertNotIn("Observing all steps", sentence)


if __name__ == "__main__":
    unittest.main()
