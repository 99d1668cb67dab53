#!/usr/bin/env python3
"""Findings stand at the line of source that their step was captured from, in every report; no other step's line is there."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE, call, class_folder  # noqa: E402

BACKENDS = "emulated,emulated:model=acc=bfloat16"
LAYERS = 3
# Two layers of a product, which the two backends sum otherwise, between steps that they compute alike.
CASE = """about: A stack of layers.
cases:
  - name: stack
    tensors:
      x: {dtype: float32, shape: [4, 16], fill: normal}
      w: {dtype: float32, shape: [16, 16], fill: normal}
    program:
""" + "".join(f"""      - {{op: relu, of: [{'x' if layer == 0 else f'h{layer - 1}'}], as: a{layer}, at: {{module: layers.{layer}.act, file: net/model.py, line: 11}}}}
      - {{op: {'matmul' if layer != 1 else 'mul'}, of: [a{layer}, {'w' if layer != 1 else 'a1'}], as: h{layer}, """
              f"""at: {{module: layers.{layer}.mlp, file: net/model.py, line: 12}}}}
""" for layer in range(LAYERS)) + """    observe: [h2]
  - name: alone
    tensors:
      x: {dtype: float32, shape: [4, 16], fill: normal}
      w: {dtype: float32, shape: [16, 16], fill: normal}
    program:
      - {op: matmul, of: [x, w], as: y, at: {module: head, file: net/heads.py, line: 5}}
    observe: [y]
    contract: {status: documented, source: nobody, accept: {y: {acc: [at_least_float32]}}}
"""
PLACE = "layers.*.mlp, model.py:12 in 2 of 3 layers"


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        (cls.folder / "case.yaml").write_text(CASE)
        cls.done = call(ULPSCOPE, "run", "case.yaml", "-b", BACKENDS, "-o", "run", "--html", "page.html", "--markdown", "page.md",
                        "--annotations", "lines.txt", cwd=cls.folder, beside={"HOME": os.fspath(cls.folder)})
        cls.report = json.loads((cls.folder / "run/report.json").read_text())

    def precision(self):
        found = [each for each in self.report["divergences"] if each["kind"] == "precision" and each["case"].endswith("stack")]
        self.assertTrue(found, self.done.stdout + self.done.stderr)
        return found

    def test_the_report_says_the_step_of_each_value(self):
        of_value = {f"h{layer}": {"module": f"layers.{layer}.mlp", "file": "net/model.py", "line": 12} for layer in range(LAYERS)}
        of_value |= {f"a{layer}": {"module": f"layers.{layer}.act", "file": "net/model.py", "line": 11} for layer in range(LAYERS)}
        of_value["y"] = {"module": "head", "file": "net/heads.py", "line": 5}
        for each in self.report["divergences"]:
            self.assertEqual(each["at"], of_value[each["value"]], each["sentence"])
        del of_value["y"]
        for result in self.report["results"]:
            if result["id"].endswith("alone"):
                continue
            steps = {each["value"]: each["at"] for each in result["steps"]}
            self.assertEqual(steps, of_value)

    def test_products_of_two_layers_are_one_place_in_every_report(self):
        values = {value for each in self.precision() for value in [each["value"], *each["also"]]}
        self.assertEqual(values, {"h0", "h2"}, "the layer that multiplies element by element sums nothing")
        [finding] = [each for each in self.report["findings"] if each["kind"] == "precision" and each["case"].endswith("stack")]
        [place] = finding["places"]
        self.assertRegex(place, re.escape(PLACE) + r", largest in layers\.[02]\.mlp$")
        shares = {each["step"]: abs(each["share"]) for each in self.report["ledgers"][0]["entries"]}
        largest = max(("h0", "h2"), key=lambda step: shares[step])
        self.assertTrue(place.endswith(f"layers.{largest[1]}.mlp"), shares)
        self.assertIn(f"at {place}", " ".join(self.done.stdout.split()))
        for name in ("page.html", "page.md", "run/junit.xml", "lines.txt"):
            text = " ".join((self.folder / name).read_text().replace("\\", "").split())
            self.assertIn(PLACE, text, name)

    def test_annotations_and_junit_point_into_the_source(self):
        lines = (self.folder / "lines.txt").read_text().splitlines()
        [fails] = [line for line in lines if line.startswith("::error ") and "title=FAIL" in line and "bfloat16" in line]
        self.assertIn("file=net/heads.py,line=5,", fails)
        self.assertIn("::warning file=net/model.py,line=12,title=precision", "".join(lines))
        self.assertFalse([line for line in lines if "line=11," in line])
        root, found = xml.etree.ElementTree.parse(self.folder / "run/junit.xml"), []
        for test in root.iter("testcase"):
            wanted = (None, None)
            if test.find("failure") is not None or ": precision of y" in test.get("name"):
                wanted = ("net/heads.py", "5")
            elif ": precision of h" in test.get("name"):
                wanted = ("net/model.py", "12")
            self.assertEqual((test.get("file"), test.get("line")), wanted, test.get("name"))
            found.append(wanted)
        self.assertEqual({each for each in found if each[0]}, {("net/heads.py", "5"), ("net/model.py", "12")})

    def test_a_derivation_has_it_below_each_step(self):
        explained = call(ULPSCOPE, "explain", f"case/stack@{BACKENDS.split(',')[1]}", "--run", "run", "-v", cwd=self.folder,
                         beside={"HOME": os.fspath(self.folder)}).stdout
        lines = [line.strip() for line in explained.splitlines()]
        for layer in range(LAYERS):
            step = next(i for i, line in enumerate(lines) if line.startswith("step") and f"as: h{layer}}}" in line)
            self.assertEqual(lines[step + 1], f"at layers.{layer}.mlp, model.py:12")

    def test_the_record_keeps_it(self):
        shutil.copytree(self.folder / "run", self.folder / "alone")
        with tempfile.TemporaryDirectory() as elsewhere:
            done = call(ULPSCOPE, "report", self.folder / "alone", "--json", "again.json", cwd=elsewhere)
            again = json.loads((pathlib.Path(elsewhere) / "again.json").read_text())
        self.assertEqual([each.get("at") for each in again["divergences"]], [each["at"] for each in self.report["divergences"]], done.stderr)

    def test_what_is_shrunk_keeps_it(self):
        (self.folder / "stack.yaml").write_text(CASE.split("  - name: alone")[0])
        done = call(ULPSCOPE, "shrink", "stack.yaml", "-b", BACKENDS, "-o", "small", "-q", "--minutes", "1", cwd=self.folder,
                    beside={"HOME": os.fspath(self.folder)})
        texts = "".join(each.read_text() for each in (self.folder / "small").glob("*.yaml"))
        self.assertRegex(texts, r"op: matmul[^\n]*at: \{module: layers\.[02]\.mlp, file: net/model\.py, line: 12\}", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
