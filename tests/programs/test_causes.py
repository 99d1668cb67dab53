# Causes and figures of programs of several steps, of two backends planted here: one stores every step, the other fuses them.
"""usage: test_causes.py"""

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
    import numpy
except ImportError:
    ml_dtypes = None

FRAMEWORK = '''
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve
class Planted(Adapter):
    def capabilities(self):
        return {"name": "planted", "backends": ["stores", "fuses"], "versions": {}, "knobs": {"threads": ["1"]},
                "dtypes": ["bfloat16", "float16"], "ops": {"mul": [], "add": [], "div": [], "amax": ["dim", "keepdim"]}}
    def configure(self, backend, device, knobs):
        self.backend = backend
    def run(self, request):
        values, wide = {}, {}
        for tensor in request.tensors:
            values[tensor.name] = tensor.numpy()
            wide[tensor.name] = values[tensor.name].astype("float32")
        dtype = next(iter(values.values())).dtype
        for step in request.steps:
            read = [wide[each] if isinstance(each, str) else numpy.float32(each) for each in step.of]
            with numpy.errstate(all="ignore"):
                if step.op == "amax":
                    result = read[0].max(axis=-1, keepdims=True)
                else:
                    result = {"mul": numpy.multiply, "add": numpy.add, "div": numpy.divide}[step.op](*read)
                values[step.name] = result.astype(dtype)
                wide[step.name] = result if self.backend == "fuses" else values[step.name].astype("float32")
        return Result({name: values[name] for name in request.observe})
serve(Planted())
'''
DECAY = """
about: A decayed average, whose first number is 1 in bfloat16.
cases:
  - name: decay
    tensors:
      v: {dtype: bfloat16, shape: [16, 16], fill: {uniform: {low: 1, high: 2}}}
      g: {dtype: bfloat16, shape: [16, 16], fill: uniform}
    program:
      - {op: mul, of: [v, 0.999], as: a}
      - {op: mul, of: [g, 0.3], as: b}
      - {op: add, of: [a, b], as: total}
    observe: [v, g, total]
"""


def rounded(x):
    return x.astype(numpy.float32).astype(ml_dtypes.bfloat16).astype(numpy.float64)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Causes(unittest.TestCase):
    def run_case(self, text, expect=(0,)):
        """report.json and the console of a run of the two backends."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "adapter.py").write_text(FRAMEWORK)
            (folder / "case.yaml").write_text(text)
            done = call(ULPSCOPE, "run", "case.yaml", "--adapter", "adapter.py", "-b", "stores,fuses", "-o", "run", "-j", "1", cwd=folder,
                        beside={"HOME": os.fspath(folder)})
            self.assertIn(done.returncode, expect, done.stdout + done.stderr)
            report = json.loads((folder / "run/report.json").read_text())
            self.tensors = self.stored(folder / "run")
            first = report["results"][0]
            explained = call(ULPSCOPE, "explain", f"{first['id']}@{first['backend']}", "--run", "run", cwd=folder,
                             beside={"HOME": os.fspath(folder)})
            return report, done.stdout, explained.stdout

    @staticmethod
    def stored(run):
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "backends/python"))
        from ulpscope_adapter.tensor import read_safetensors
        found = {}
        for line in (run / "journal.jsonl").read_text().splitlines():
            record = json.loads(line)["record"]
            if record.get("type") == "result" and "tensors" in record and not record["case"].endswith("~opened"):
                found[record["backend"]] = {name: each.numpy().astype("float64")
                                            for name, each in read_safetensors(run / record["tensors"]["file"]).items()}
        return found

    def test_every_operand_that_is_read_unrounded_is_named(self):
        report, _, _ = self.run_case(DECAY)
        v, g, got = (self.tensors["fuses"][name] for name in ("v", "g", "total"))
        a, b = (x.astype("float32") * numpy.float32(c) for x, c in ((v, .999), (g, .3)))
        a, b = a.astype("float64"), b.astype("float64")
        self.assertEqual(int((rounded(a + b) != got).sum()), 0)
        self.assertGreater(int((rounded(rounded(a) + b) != got).sum()), 0, "b alone does not explain it")
        left = int((rounded(rounded(a) + rounded(b)) != got).sum())
        said = [each["sentence"] for each in report["divergences"] if each["kind"] == "precision"]
        self.assertEqual(len(said), 1, said)
        self.assertIn("fuses likely computes `total` from the unrounded `a` and `b`; stores likely does not", said[0])
        self.assertIn(f"({left} of 256 elements)", said[0])

    def test_the_error_of_a_value_is_that_of_the_whole_program(self):
        report, _, _ = self.run_case(DECAY)
        for result in report["results"]:
            stored = self.tensors[result["backend"]]
            exact = stored["v"] * .999 + stored["g"] * .3
            value = result["values"]["total"]
            self.assertAlmostEqual(float(value["max_abs"]), float(numpy.abs(stored["total"] - exact).max()), delta=1e-9)
            step = next(each for each in result["steps"] if each["value"] == "total")
            self.assertLessEqual(float(step["classification"]["max_ulp"]), 0.51)

    def test_what_is_not_finite_on_all_backends_is_told(self):
        report, console, explained = self.run_case("""
about: A square out of the range of float16, and its share of the largest one.
cases:
  - name: square
    tensors:
      x: {dtype: float16, shape: [2, 2], fill: {values: [2, 3, 300, 1]}}
    program:
      - {op: mul, of: [x, x], as: y}
      - {op: mul, of: [y, 2], as: z}
    observe: [z]
""")
        self.assertEqual(report["divergences"], [])
        for result in report["results"]:
            [birth] = result["not_finite"]
            self.assertEqual((birth["what"], birth["values"], birth["step"], birth["element"], birth["operands"], birth["exact"]),
                             ("inf", ["z"], "y", [1, 0], [300, 300], 90000))
        begins = "inf of z begins in step y (mul, 300 * 300 at [1,0])"
        whole = (f"{begins} on all 2 backends; the exact value there is 90000, beyond 65504, the largest float16, and z[1,0] is exactly "
                 "180000. Not finite: 1 of 4 elements of y, 1 of 4 of z.")
        self.assertEqual([each["sentence"] for each in report["not_finite"]], [whole])
        self.assertIn(whole, " ".join(console.split()))
        self.assertIn(begins, " ".join(explained.split()))


if __name__ == "__main__":
    unittest.main()
