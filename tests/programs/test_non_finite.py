#!/usr/bin/env python3
"""Infinities and NaNs that every backend gives alike: where they begin is computed again in NumPy, element by element."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE, call  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

BACKENDS = ["emulated", "emulated:model=acc=float64", "emulated:order=pairwise"]
ROWS, COLUMNS = 4, 8


def case(name, tensors, steps, observe):
    lines = [f"  - name: {name}", "    tensors:"]
    lines += [f"      {key}: {{dtype: float16, shape: {list(each.shape)}, fill: {{values: {each.ravel().tolist()}}}}}"
              for key, each in tensors.items()]
    lines += ["    program:"] + [f"      - {{{step}}}" for step in steps]
    return "\n".join([*lines, f"    observe: [{', '.join(observe)}]", ""])


def infinite_or_nan(x):
    return int((~numpy.isfinite(x)).sum())


def first(found):
    """Coordinates of the first element that is true, row by row."""
    return [int(each) for each in numpy.argwhere(found)[0]]


@unittest.skipUnless(numpy, "needs NumPy")
class NonFinite(unittest.TestCase):
    maxDiff = None

    def run_case(self, text):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "case.yaml").write_text("about: Infinities and NaNs.\ncases:\n" + text)
            done = call(ULPSCOPE, "run", "case.yaml", "-b", ",".join(BACKENDS), "-o", "run", "--html", "page.html", "--markdown", "page.md",
                        "--annotations", "lines.txt", cwd=folder, beside={"HOME": os.fspath(folder)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            report = json.loads((folder / "run/report.json").read_text())
            self.assertEqual(report["divergences"], [], "what all do alike is no divergence")
            texts = {name: " ".join((folder / name).read_text().replace("\\", "").split()) for name in ("page.html", "page.md", "lines.txt")}
            texts["console"] = " ".join(done.stdout.split())
            return report, texts

    def births(self, text):
        """The births of the report, which every writer shows and each result has; without their sentences."""
        report, texts = self.run_case(text)
        self.assertEqual(len(report["results"]), len(BACKENDS))
        for birth in report["not_finite"]:
            self.assertEqual((birth["backends"], birth["everywhere"], birth["diverges"]), (BACKENDS, True, False))
            self.assertIn(" on all 3 backends", birth["sentence"])
            for name, shown in texts.items():
                self.assertIn(birth["sentence"], shown, name)
        for result in report["results"]:
            self.assertEqual([each["step"] for each in result.get("not_finite", [])], [each["step"] for each in report["not_finite"]])
        return report["not_finite"]

    def check(self, birth, **wanted):
        self.assertEqual({key: birth[key] for key in wanted}, wanted)

    def spread(self, birth, **values):
        self.assertEqual(birth["spread"], [{"step": name, "elements": infinite_or_nan(each), "of": each.size}
                                           for name, each in values.items() if infinite_or_nan(each)])

    def test_a_softmax_in_float16_without_its_largest_operand_taken_off(self):
        x = numpy.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(numpy.float16)
        x[1, 3], x[2, 5], x[2, 6] = 12, 12.5, 11.5
        births = self.births(case("softmax", {"x": x}, ["op: exp, of: [x], as: e", "op: sum, of: [e], dim: [1], keepdim: true, as: s",
                                                        "op: div, of: [e, s], as: p"], ["p"]))
        exact = numpy.exp(x.astype(numpy.float64))
        with numpy.errstate(over="ignore", invalid="ignore"):
            e = exact.astype(numpy.float16)
            s = e.astype(numpy.float64).sum(axis=1, keepdims=True).astype(numpy.float16)
            p = e / s
        self.assertTrue(numpy.isnan(p).any())
        self.assertEqual([each["what"] for each in births], ["inf", "NaN"])
        over, lost = births
        at, nan = first(numpy.isinf(e)), first(numpy.isnan(p))
        self.check(over, step="e", op="exp", element=at, observed="inf", operands=[float(x[tuple(at)])], dtype="float16", values=["p"])
        self.assertAlmostEqual(over["exact"], float(exact[tuple(at)]), delta=1e-6)
        self.assertGreater(over["exact"], float(numpy.finfo(numpy.float16).max))
        self.spread(over, e=e, s=s, p=p)
        self.check(lost, step="p", op="div", element=nan, observed="nan", operands=["inf", "inf"], exact=None, values=["p"])
        self.spread(lost, p=p)
        end = lost["end"]
        share = exact / exact.sum(axis=1, keepdims=True)
        self.assertEqual((end["value"], end["element"]), ("p", nan))
        self.assertAlmostEqual(end["exact"], float(share[tuple(nan)]), delta=1e-12)

    def test_zero_divided_by_zero(self):
        random = numpy.random.default_rng(2)
        a = random.normal(size=(ROWS, COLUMNS)).astype(numpy.float16)
        b = random.normal(size=(ROWS, COLUMNS)).astype(numpy.float16)
        w = random.normal(size=(COLUMNS, 3)).astype(numpy.float16)
        b[3, 1], b[3, 6] = a[3, 1], a[3, 6]
        births = self.births(case("share", {"a": a, "b": b, "w": w}, ["op: sub, of: [a, b], as: d", "op: div, of: [d, d], as: q",
                                                                      "op: matmul, of: [q, w], as: y", "op: relu, of: [d], as: r"],
                                  ["y", "r"]))
        with numpy.errstate(invalid="ignore"):
            d = a - b
            q = d / d
            y = q.astype(numpy.float64) @ w.astype(numpy.float64)
        [birth] = births
        self.check(birth, what="NaN", step="q", op="div", element=first(numpy.isnan(q)), operands=[0, 0], exact=None, values=["y"])
        self.assertIn("0 / 0 at [3,1]", birth["sentence"])
        self.assertNotIn("end", birth, "the program itself has no value there")
        self.spread(birth, q=q, y=y)

    def test_infinity_less_infinity(self):
        random = numpy.random.default_rng(3)
        x = random.uniform(1, 9, size=(ROWS, COLUMNS)).astype(numpy.float16)
        z = random.uniform(1, 9, size=(ROWS, COLUMNS)).astype(numpy.float16)
        x[0, 2], x[2, 4], z[2, 4] = 256, 300, 400  # 256 * 256 is 65536; in one element both overflow
        births = self.births(case("variance", {"x": x, "z": z}, ["op: mul, of: [x, x], as: u", "op: mul, of: [z, z], as: v",
                                                                 "op: sub, of: [u, v], as: d", "op: sum, of: [d], dim: [1], as: t"],
                                  ["d", "t"]))
        with numpy.errstate(over="ignore", invalid="ignore"):
            u, v = x * x, z * z
            d = u - v
            t = d.astype(numpy.float64).sum(axis=1)
        over, lost = births
        self.check(over, what="inf", step="u", element=[0, 2], operands=[256, 256], exact=65536, values=["d", "t"])
        self.spread(over, u=u, d=d, t=t)
        self.check(lost, what="NaN", step="d", op="sub", element=first(numpy.isnan(d)), operands=["inf", "inf"], exact=None,
                   values=["d", "t"])
        self.spread(lost, d=d, t=t)
        self.assertEqual(first(numpy.isnan(d)), [2, 4])

    def test_what_is_infinite_in_exact_arithmetic_is_no_loss(self):
        x = numpy.ones((2, 2), dtype=numpy.float16)
        z = numpy.array([[1, 0], [2, 4]], dtype=numpy.float16)
        self.assertEqual(self.births(case("pole", {"x": x, "z": z}, ["op: div, of: [x, z], as: q", "op: mul, of: [q, x], as: y"], ["y"])), [])


if __name__ == "__main__":
    unittest.main()
