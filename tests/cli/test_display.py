#!/usr/bin/env python3
"""Output for people: where a status stands, when an error is printed, words of other languages, commands without arguments, places in files."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ulpscope  # noqa: E402

ROWS = """
about: On which row does a failed equality stand?
cases:
  - name: decay
    tensors:
      p: {dtype: bfloat16, shape: [64], fill: normal}
    program:
      - {op: cast, of: [p], dtype: float32, as: untouched}
      - {op: mul, of: [p, 0.997], as: low}
      - {op: mul, of: [untouched, 0.997], as: wide}
      - {op: cast, of: [low], dtype: float32, as: narrow}
    observe: [untouched, narrow, wide]
    contract: {status: unspecified, equal: [narrow, wide]}
"""
ADAPTER = '''
import atexit, sys, time
open({started!r}, "a").close()
sys.path.insert(0, {sdk!r})
import numpy
from ulpscope_adapter import Adapter, Result, serve
atexit.register(time.sleep, {delay})


class Plain(Adapter):
    def capabilities(self):
        return {{"name": "plain", "backends": ["plain"], "versions": {{"numpy": numpy.__version__}}, "knobs": {{"threads": ["1"]}},
                "dtypes": ["float32"], "ops": {{"add": [], "neg": []}}}}

    def run(self, request):
        values = {{tensor.name: tensor.numpy() for tensor in request.tensors}}
        for step in request.steps:
            values[step.name] = (numpy.add if step.op == "add" else numpy.negative)(*step.operands(values))
        return Result({{name: values[name] for name in request.observe}})


serve(Plain())
'''
SMALL = """
cases:
  - name: one
    tensors:
      x: {dtype: DTYPE, shape: [3, 2], fill: FILL}
    program: [{op: OP, of: [x], as: turned_activations}]
    observe: [turned_activations]
    contract: {status: unspecified, accept: {turned_activations: {FACET: "WORD"}}}
"""


def small(**changed):
    text = SMALL
    for key, value in {"DTYPE": "float32", "FILL": "normal", "OP": "neg", "FACET": "mid", "WORD": "none", **changed}.items():
        text = text.replace(key, value)
    return text


class Display(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def ask(self, *arguments):
        return ulpscope(*arguments, cwd=self.folder)

    def adapter(self, delay=0):
        return self.write("plain.py", ADAPTER.format(sdk=str(ROOT / "backends/python"), started=str(self.folder / "started"), delay=delay))

    def test_a_failed_equality_stands_in_the_row_of_a_value_that_it_compares(self):
        done = self.ask("run", self.write("rows.yaml", ROWS), "-b", "emulated", "-o", "run")
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = {line.split()[0]: line for line in done.stdout.splitlines() if re.match(r"\s+(untouched|narrow|wide)\b", line)}
        self.assertEqual(set(rows), {"untouched", "narrow", "wide"}, done.stdout)
        self.assertEqual({name for name, line in rows.items() if "FAIL" in line}, {"wide"}, done.stdout)

    def test_an_expectation_that_is_not_met_stands_in_the_row_of_its_value(self):
        text = ROWS.replace("    contract: {status: unspecified, equal: [narrow, wide]}",
                            "    expect: {emulated: [{narrow: {dtype: float64}}]}")
        done = self.ask("run", self.write("rows.yaml", text), "-b", "emulated", "-o", "run")
        self.assertIn("changed: expected narrow float64", done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^\s+narrow .*FAIL")
        self.assertNotRegex(done.stdout, r"(?m)^\s+(untouched|wide) .*FAIL")

    def test_an_error_of_a_case_is_told_before_an_adapter_is_started(self):
        adapter = self.adapter()
        self.write("bad.yaml", small(FILL="{values: [1]}"))
        self.write("good.yaml", small())
        for command in (["run", "bad.yaml", "-b", "plain", "-o", "run"], ["plan", "bad.yaml", "-b", "plain", "-o", "plan.json"],
                        ["shrink", "bad.yaml", "-b", "plain,emulated"], ["explain", "bad.yaml"], ["repro", "bad.yaml@plain", "-o", "b"],
                        ["run", "good.yaml", "-b", "plain", "-o", "run", "-k", "one and"]):
            done = self.ask(*command, "--adapter", adapter)
            self.assertEqual(done.returncode, 4, (command, done.stdout, done.stderr))
            self.assertFalse((self.folder / "started").exists(), (command, done.stderr))
        self.write("named.yaml", small().replace("contract:", "expect: {plain: [{unsupported: x}], emulatd: []}\n    contract:"))
        done = self.ask("run", "named.yaml", "-b", "plain", "-o", "run", "--adapter", adapter)
        self.assertIn("did you mean 'emulated'?", done.stderr, "a backend's name is known once adapters have said theirs")
        self.assertNotIn("backend 'plain'", done.stderr)
        self.assertEqual(self.ask("run", "good.yaml", "-b", "plain", "-o", "run", "--adapter", adapter).returncode, 0)
        self.assertTrue((self.folder / "started").exists())

    def test_an_adapter_may_take_its_time_to_end(self):
        # A quarter of a second was allowed; the wire checks end nine processes.
        done = self.ask("doctor", "--adapter", self.adapter(delay=0.4))
        self.assertNotIn("FAIL", done.stdout, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ok +wire\.no_json .*exit")

    def test_words_of_other_languages_are_translated(self):
        cases = [({"DTYPE": word}, meant) for word, meant in
                 (("fp32", "float32"), ("half", "float16"), ("f16", "float16"), ("bf16", "bfloat16"), ("double", "float64"),
                  ("BF16", "bfloat16"), ("Float32", "float32"), ("torch.bfloat16", "bfloat16"), ("jnp.float16", "float16"))]
        cases += [({"FACET": facet, "WORD": word}, meant) for facet, word, meant in
                  (("acc", "fp32", "float32"), ("acc", "split_k(fp32,bf16)", "split_k(float32,bfloat16)"), ("mid", "half", "float16"),
                   ("in", "TensorFloat-32", "tf32_rne"), ("in", "TF32", "tf32_rne"), ("in", "bf16", "bfloat16_rne"), ("out", "bf16_rne", "bfloat16_rne"), ("dtype", "f32", "float32"),
                   ("acc", "flaot32", "float32"))]
        for changed, meant in cases:
            done = self.ask("lint", self.write("words.yaml", small(**changed)))
            self.assertEqual(done.returncode, 4, changed)
            lines = [line for line in done.stderr.splitlines() if "words.yaml:" in line]
            self.assertEqual(len(lines), 1, (changed, done.stderr))
            self.assertIn(f"did you mean '{meant}'?", lines[0], changed)
            self.assertRegex(lines[0], "; found .*, expected ")
        for command, meant in ((["probe", "openblas", "--dtype", "bf16"], "bfloat16"), (["probe", "openblas", "--out-dtype", "FP32"], "float32"),
                               (["probe", "openblas", "--require", "acc=fp32"], "float32"),
                               (["doctor", "--adapter", self.adapter(), "--dtype", "half"], "float16")):
            done = self.ask(*command)
            self.assertEqual(done.returncode, 4, command)
            self.assertIn(f"did you mean '{meant}'?", done.stderr, command)

    def test_a_command_without_its_argument_says_which_and_what_there_is(self):
        done = self.ask("explain")
        self.assertEqual(done.returncode, 4)
        self.assertIn("ID or ID@BACKEND", done.stderr)
        self.assertIn("no run here yet", done.stderr)
        self.write("rows.yaml", ROWS)
        self.ask("run", "rows.yaml", "-b", "emulated")
        done = self.ask("explain")
        self.assertEqual(done.returncode, 4)
        offered = [line.split() for line in done.stderr.splitlines() if line.startswith("  ulpscope explain ")]
        self.assertEqual(offered, [["ulpscope", "explain", "rows/decay@emulated"]], done.stderr)
        self.assertEqual(self.ask(*offered[0][1:]).returncode, 0, "what is offered works")
        for command in ("repro", "probe", "shrink"):
            done = self.ask(command)
            self.assertEqual(done.returncode, 4)
            self.assertNotIn("what is required\n", done.stderr)

    def test_long_names_stand_apart_from_what_follows(self):
        self.write("long.yaml", """
cases:
  - name: long
    tensors:
      x: {dtype: float32, shape: [4, 8], fill: normal}
    program:
      - {op: transpose, of: [x], dim0: 0, dim1: 1, as: turned_activations}
      - {op: neg, of: [turned_activations], as: negated}
    observe: [negated]
""")
        self.ask("run", "long.yaml", "-b", "emulated", "-o", "run")
        done = self.ask("explain", "long/long@emulated", "--run", "run", "-v")
        self.assertIn("turned_activations transpose:", done.stdout, done.stderr)

    def test_annotations_name_file_and_line(self):
        self.write("rows.yaml", ROWS)
        self.ask("run", "rows.yaml", "-b", "emulated", "-o", "run", "--annotations", "notes.txt")
        lines = ROWS.splitlines()
        wide = 1 + next(i for i, line in enumerate(lines) if "as: wide" in line)
        self.assertIn(f"::error file=rows.yaml,line={wide},title=FAIL rows/decay::", (self.folder / "notes.txt").read_text())
        (self.folder / "rows.yaml").unlink()
        self.assertEqual(self.ask("judge", "run", "--annotations", "judged.txt").returncode, 1)
        self.assertEqual((self.folder / "judged.txt").read_text(), (self.folder / "notes.txt").read_text(), "of a recorded case too")
        parts = ROWS.replace("    contract: {status: unspecified, equal: [narrow, wide]}\n", "")
        self.write("parts.yaml", parts)
        self.ask("run", "parts.yaml", "-b", "emulated,emulated:model=mid=float16", "-o", "run2", "--annotations", "notes.txt")
        for line in (self.folder / "notes.txt").read_text().splitlines():
            self.assertRegex(line, r"^::warning file=parts\.yaml,line=\d+,title=")


if __name__ == "__main__":
    unittest.main()
