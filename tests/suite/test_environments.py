#!/usr/bin/env python3
"""Two Python environments as two columns of one matrix: distinguished by name, and `diff` and the page name the class that changed.

The environments are two names of one; the framework is a few lines of NumPy of which a later "version" rounds before it stores.
"""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, class_folder, ulpscope  # noqa: E402

FRAMEWORK = '''
"""A framework of two versions: 1.0 keeps a float32 product, 2.0 rounds it to bfloat16 first. The environment says which."""
import os
import sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve
VERSION = "2.0" if sys.prefix.endswith("later") else "1.0"
class Framework(Adapter):
    def capabilities(self):
        return {"name": "framework", "backends": ["framework", "steady"], "versions": {"framework": VERSION},
                "knobs": {"threads": ["1"]}, "dtypes": ["float32", "bfloat16"], "ops": {"matmul": [], "cast": ["dtype"]}}
    def configure(self, backend, device, knobs):
        assert "env" not in knobs, "the environment is the harness's business"
        self.backend = backend
    def run(self, request):
        values = {tensor.name: tensor.numpy() for tensor in request.tensors}
        for step in request.steps:
            operands = step.operands(values)
            if step.op == "cast":
                values[step.name] = operands[0].astype(numpy_dtype(step.attrs["dtype"]))
                continue
            product = operands[0] @ operands[1]
            if VERSION == "2.0" and self.backend == "framework":
                product = product.astype(numpy_dtype("bfloat16")).astype("float32")
            values[step.name] = product
        return Result({name: values[name] for name in request.observe})
serve(Framework())
'''
CASE = """
cases:
  - name: product
    tensors:
      a: {dtype: float32, shape: [8, 16], fill: normal}
      b: {dtype: float32, shape: [16, 8], fill: normal}
    program:
      - {op: matmul, of: [a, b], as: product}
    observe: [product]
"""
BOTH = "framework,framework:env=later,steady,steady:env=later"
CHANGE = "product: f32~ -> bf16?>f32~"  # a set: what was summed in before that is not proved


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = class_folder(cls)
        for name in ("backends", "cases", "harness", "reports", "ci"):
            (cls.root / name).symlink_to(ROOT / name)
        for name in (".venv", ".venv-later"):  # named by the link: neither is copied, and Python says which it was called by
            (cls.root / name).symlink_to(pathlib.Path(sys.prefix))
        (cls.root / "framework.py").write_text(FRAMEWORK, encoding="utf-8")
        (cls.root / "mine.yaml").write_text(CASE, encoding="utf-8")
        cls.env = {**os.environ, "ULPSCOPE_ROOT": str(cls.root), "HOME": str(cls.root)}
        cls.env.pop("ULPSCOPE_PYTHON", None)
        cls.matrix = cls.run_it("run", "mine.yaml", "--adapter", "framework.py", "-b", BOTH, "-o", "both")

    @classmethod
    def run_it(cls, *arguments, **env):
        return ulpscope(*arguments, cwd=cls.root, env={**cls.env, **env})

    def report(self, folder):
        self.assertEqual(self.run_it("report", folder, "--json", "report.json", "--html", "page.html").returncode, 0)
        return json.loads((self.root / "report.json").read_text(encoding="utf-8"))

    def test_two_environments_are_two_columns(self):
        self.assertEqual(self.matrix.returncode, 0, self.matrix.stdout + self.matrix.stderr)
        report = self.report("both")
        self.assertEqual({name: told["framework"] for name, told in report["run"]["versions"].items()},
                         {"framework": "1.0", "framework:env=later": "2.0", "steady": "1.0", "steady:env=later": "2.0"})
        read_back = {one["backend"]: one["knobs"]["effective"].get("env") for one in report["results"]}
        self.assertEqual(read_back, {"framework": None, "framework:env=later": "later", "steady": None, "steady:env=later": "later"})
        for told in ("framework 1.0", "framework 2.0", "framework:env=later"):
            self.assertIn(told, self.matrix.stdout)

    def test_diff_names_the_class_that_changed_and_no_other(self):
        told = self.run_it("diff", "both", "--env", "default,later")
        self.assertEqual(told.returncode, 1, told.stdout + told.stderr)
        self.assertIn("framework 1.0 -> 2.0 (framework, steady)", told.stdout)
        classes = [line.split(maxsplit=1)[1] for line in told.stdout.splitlines() if line.lstrip().startswith("class ")]
        self.assertEqual(classes, [f"mine/product  framework  {CHANGE}"], told.stdout)
        self.assertIn("2 results compared", told.stdout)
        back = self.run_it("diff", "both", "--env", "later,default")
        self.assertEqual(back.returncode, 0, back.stdout)
        self.assertIn("for the better", back.stdout)

    def test_so_does_the_page(self):
        self.report("both")
        page = (self.root / "page.html").read_text(encoding="utf-8")
        part = page.partition("From default to later</h2>")[2].partition("<h2")[0]
        self.assertIn("2 results compared; framework 1.0 -&gt; 2.0 (framework, steady)", part)
        self.assertIn(CHANGE.replace(">", "&gt;") + " <span class=kind>for the worse", part)
        self.assertNotIn("</a> steady", part, "none of its classes changed")

    def test_two_runs_of_the_same_columns_are_compared_too(self):
        for folder, python in (("first", ".venv"), ("second", ".venv-later")):
            done = self.run_it("run", "mine.yaml", "--adapter", "framework.py", "-b", "framework,steady", "-o", folder,
                               ULPSCOPE_PYTHON=str(self.root / python / "bin/python"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = self.run_it("diff", "first", "second")
        self.assertEqual(told.returncode, 1, told.stdout + told.stderr)
        self.assertIn(f"mine/product  framework  {CHANGE}", told.stdout)
        across = self.run_it("diff", "first", "both", "--env", "default,later")
        self.assertEqual(across.returncode, 1, across.stdout + across.stderr)
        self.assertIn(f"mine/product  framework  {CHANGE}", across.stdout)

    def test_what_is_not_there_or_no_name_is_refused_with_the_line_that_helps(self):
        for backend, words in (("torch-inductor:env=torch-1.2.3", ["is not installed", "ci/setup --with torch==1.2.3"]),
                               ("jax:env=jax-0.0.1", ["is not installed", "ci/setup --with jax==0.0.1"]),
                               ("jax:env=../../tmp/x", ["wrong value for knob env"]),
                               ("jax:env=.later", ["wrong value for knob env"]),
                               ("openblas:env=later", ["has no knob 'env'"])):
            told = self.run_it("run", "mine.yaml", "-b", backend, "-o", "none")
            self.assertEqual(told.returncode, 4, backend + told.stdout)
            for word in words:
                self.assertIn(word, told.stderr, backend)
        told = self.run_it("diff", "both", "--env", "default,latter")
        self.assertEqual(told.returncode, 4)
        self.assertIn("did you mean 'later'?", told.stderr)
        self.assertEqual(self.run_it("diff", "both").returncode, 4)

    def test_no_case_chooses_its_environment(self):
        (self.root / "sly.yaml").write_text(CASE + "    knobs: {env: later}\n", encoding="utf-8")
        told = self.run_it("lint", "sly.yaml")
        self.assertEqual(told.returncode, 4, told.stdout)
        self.assertIn("env", told.stderr)


if __name__ == "__main__":
    unittest.main()
