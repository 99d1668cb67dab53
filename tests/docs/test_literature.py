#!/usr/bin/env python3
"""The units of LITERATURE.md: each model runs, and the candidate models among them come back under their own name."""
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report  # noqa: E402
from programs import ROOT, ulpscope  # noqa: E402
PAGE = (ROOT / "reports/datasheets/LITERATURE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (CDNA\d [^|]*) \| ([^|]*) \| (\d+) \| `([^`]*)` \|", re.MULTILINE)
# Operands around bfloat16's and float32's smallest normal number, and sums around it.
CASE = """about: Products whose operands and sums are near the smallest normal number.
cases:
  - name: product
    tensors:
      a: {dtype: %s, shape: [12, 24], fill: {wide_exponent: {low: -133, high: -121}}}
      b: {dtype: %s, shape: [24, 12], fill: {wide_exponent: {low: -5, high: 4}}}
    program:
      - {op: mm, of: [a, b], out_dtype: float32, as: product}
    observe: [product]
"""


def classify(model, dtype):
    with tempfile.TemporaryDirectory() as folder:
        case = pathlib.Path(folder) / "unit.yaml"
        case.write_text(CASE % (dtype, dtype), encoding="utf-8")
        done = ulpscope("run", case, "-b", "emulated:model=" + model, "-o", folder + "/run", "--json", folder + "/report.json")
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return report.load(pathlib.Path(folder) / "report.json")["results"][0]["values"]["product"]


class Literature(unittest.TestCase):
    def test_every_model_runs_and_cdna2_is_named(self):
        rows = ROW.findall(PAGE)
        self.assertEqual(len(rows), 6)
        named = 0
        for unit, _, _, model in rows:
            value = classify(model, "float32" if "tf32" in model else "bfloat16")
            self.assertEqual(value["checked"], 144)
            if "daz" in model:
                # b has no subnormal numbers: it may be read either way.
                self.assertIn(model, value["models"], unit)
                only = {each.replace(",b:as_is+daz", "") for each in value["models"]}
                self.assertEqual(only, {model.replace(",b:as_is+daz", "")}, unit)
                self.assertIn("taken as zero", value["label"])
                named += 1
        self.assertEqual(named, 2)
        print(f"\n{len(rows)} units run, {named} named")

    def test_the_page_says_that_nothing_was_measured_and_names_its_sources(self):
        self.assertIn("no hardware seen", PAGE)
        sources = set(re.findall(r"\[(\d)\]", PAGE))
        self.assertEqual(sources, {number for number in re.findall(r"^(\d)\. ", PAGE, re.MULTILINE)})
        for backend in ("hipblas", "tpu"):
            row = next(json.loads(line) for line in (ROOT / "backends/registry.jsonl").read_text().splitlines()
                       if json.loads(line)["backend"] == backend)
            self.assertIn("no hardware seen", row["absent"])


if __name__ == "__main__":
    unittest.main()
