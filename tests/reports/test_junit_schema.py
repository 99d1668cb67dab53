#!/usr/bin/env python3
"""junit.xml is valid by the schema of Jenkins' xunit plugin, whatever a run holds; divergences are in it as test cases."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, call, need_tool, ulpscope  # noqa: E402

# From the source distribution of pytest 8.4.2 (testing/example_scripts), which tests its own reports by it; MIT, as its head says.
SCHEMA = ROOT / "tests/reports/junit-10.xsd"
CASES = """about: One result of each kind.
cases:
""" + "".join(f"""  - name: {name}
    tensors:
      a: {{dtype: bfloat16, shape: [16, 64], fill: normal}}
      b: {{dtype: bfloat16, shape: [64, 16], fill: normal}}
    program:
      - {{op: matmul, of: [a, b], as: y}}
    observe: [y]
{more}""" for name, more in (("fine", ""), ("bad", ""),
                             ("violated", "    contract: {status: documented, source: nobody, accept: {y: {acc: [float16]}}}\n"),
                             ("skipped", "    requires: {device: cuda}\n")))
BACKENDS = "emulated,emulated:model=acc=bfloat16,faulty:fault=segv,case=bad"


def setUpModule():
    need_tool("xmllint", "libxml2-utils")


def check(file):
    return call("xmllint", "--noout", "--nonet", "--schema", SCHEMA, file)


class Junit(unittest.TestCase):
    def valid(self, file):
        done = check(file)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_golden(self):
        self.valid(ROOT / "tests/golden/junit.xml")

    def test_a_run_with_every_kind_of_result(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "cases.yaml").write_text(CASES)
            done = ulpscope("run", folder / "cases.yaml", "-b", BACKENDS, "-o", folder / "run")
            self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
            file = folder / "run/junit.xml"
            text = file.read_text()
            for element in ("<failure ", "<error ", "<skipped ", 'testsuite name="divergences"', 'name="bad: outcome'):
                self.assertIn(element, text)
            self.valid(file)

    def test_a_captured_program_has_its_source_besides(self):
        """CI servers read `file` and `line` of a test case, which the schema of the xunit plugin has not: nothing else is beside it."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "cases.yaml").write_text(CASES.replace("as: y}", "as: y, at: {file: net/model.py, line: 7}}"))
            ulpscope("run", folder / "cases.yaml", "-b", BACKENDS, "-o", folder / "run")
            file = folder / "run/junit.xml"
            text, count = re.subn(r'(<testcase [^>]*) file="net/model.py" line="7"', r"\1", file.read_text())
            self.assertGreater(count, 0)
            self.assertNotIn("net/model.py\"", text)
            file.write_text(text)
            self.valid(file)

    def test_the_schema_refuses_what_is_wrong(self):
        golden = (ROOT / "tests/golden/junit.xml").read_text()
        planted = {"a test case without a name": re.sub(r'<testcase name="[^"]*"', "<testcase", golden, count=1),
                   "an element that nobody knows": golden.replace("<failure ", "<divergence ", 1).replace("</failure>", "</divergence>", 1),
                   "a time with an exponent": re.sub(r'(<testsuite [^>]* time=")[^"]*', r"\g<1>1e-3", golden, count=1)}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "junit.xml"
            for what, text in planted.items():
                self.assertNotEqual(text, golden, what)
                file.write_text(text)
                self.assertNotEqual(check(file).returncode, 0, what)


if __name__ == "__main__":
    unittest.main()
