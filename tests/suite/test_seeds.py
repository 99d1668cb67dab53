#!/usr/bin/env python3
"""cases/seeds/README.md against the suite: each case that it names is there and passes where it can run, and each command runs."""
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, call, ulpscope  # noqa: E402

TABLE = ROOT / "cases/seeds/README.md"
CASE = "seeds/autocast/matmul_mixed"


def rows():
    """(number, words of the last column)"""
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].isdigit():
            yield int(cells[0]), cells[3]


def shown(text):
    """(cases, commands) of one row: what stands in backticks, a command behind a dollar sign."""
    quoted = re.findall(r"`([^`]+)`", text)
    return ([each for each in quoted if re.fullmatch(r"[a-z]+/\w+/\w+", each)], [each[2:] for each in quoted if each.startswith("$ ")])


class Seeds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ulpscope-seeds-")
        cls.home = pathlib.Path(cls.folder.name)
        cls.ids = {each["id"].split("[")[0] for each in json.loads(ulpscope("list", "cases", "--json").stdout)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_behaviour_has_a_row_and_every_row_a_case_a_command_or_a_reason(self):
        found = dict(rows())
        self.assertEqual(sorted(found), list(range(1, 73)))
        for number, text in found.items():
            cases, commands = shown(text)
            self.assertTrue(cases or commands or "reason: " in text, f"row {number} shows nothing")

    def test_every_case_is_in_the_suite(self):
        named = {case for _, text in rows() for case in shown(text)[0]}
        self.assertGreater(len(named), 50)
        self.assertEqual(named - self.ids, set())

    def test_every_case_of_the_seeds_has_a_row(self):
        named = {case for _, text in rows() for case in shown(text)[0]}
        own = {each for each in self.ids if each.startswith("seeds/")}
        left = own - named - {"seeds/preferred_element_type/unset", "seeds/out_dtype/one_by_one", "seeds/out_dtype/square_64",
                              "seeds/out_dtype/square_64_cuda", "seeds/data_cast/cast_forward_backward",
                              "seeds/data_cast/cast_forward_restore_backward"}
        self.assertEqual(left, set())

    def test_every_command_runs(self):
        run, trace = self.home / "run", self.home / "trace.json"
        own = [command for _, text in rows() for command in shown(text)[1]]
        # Commands that make the run folder and the trace come first.
        own.sort(key=lambda command: (not command.startswith("ulpscope run"), not command.startswith("ulpscope report")))
        policy = self.home / "policy"
        done = 0
        for command in own:
            words = command.split()
            stands = {"RUN": str(policy if words[0] == "ci/autocast" else run), "TRACE": str(trace)}
            words = [stands.get(word, word.replace("CASE", CASE)) for word in words]
            if words[0] == "python":
                self.assertIn("capture", words)  # tests/python holds it
                continue
            if words[0] == "ulpscope":
                ended = ulpscope(*words[1:], cwd=ROOT)
                accepted = {0, 6} if words[1] == "doctor" else {0}
            else:
                made = ulpscope("run", "cases/seeds/autocast_policy.yaml", "-k", "products or pointwise or losses", "-b", "torch-eager", "-o", policy,
                                "--no-steps", "--repeat", "1", "-q")
                self.assertIn(made.returncode, (0, 1), made.stderr)
                ended, accepted = call(ROOT / words[0], *words[1:]), {0}
            self.assertIn(ended.returncode, accepted, f"{command}: {ended.stdout[-500:]}{ended.stderr[-500:]}")
            self.assertTrue(ended.stdout.strip() or trace.is_file(), command)
            if words[0] == "ci/autocast":
                self.assert_policy(ended.stdout)
            if words[1] == "trace":
                self.assertIn("float32 to bfloat16 [128,96] under aten::matmul", ended.stdout)
            if words[1] == "run":
                self.assert_scheduled(run)
            done += 1
        self.assertGreaterEqual(done, 8)

    def assert_policy(self, text):
        table = {line.split()[0]: line.split()[1:] for line in text.splitlines() if re.match(r"[a-z_0-9]+ +(b?f\d|-)", line)}
        self.assertGreaterEqual(len(table), 38)
        # The policy of PyTorch's own wrappers on a CPU: autocast_mode.cpp, lower_precision_fp and fp32.
        self.assertEqual([cell.strip("*") for cell in table["matmul"]], ["bf16"] * 3)
        self.assertEqual([cell.strip("*") for cell in table["mse_loss"]], ["f32"] * 3)
        self.assertEqual(table["exp"], ["f32", "bf16", "f16"])
        self.assertIn("*", table["mm"][0])

    def assert_scheduled(self, run):
        for backend in ("torch-eager", "torch-aot-eager"):
            told = " ".join(ulpscope("explain", f"{CASE}@{backend}", "--run", run, "-v").stdout.split())
            self.assertIn("medians of 3 runs, after 1 that waited and 1 that warmed up", told, backend)
        self.assertIn(" profile ", told)


class WithoutCuda(unittest.TestCase):
    def test_the_script_for_a_gpu_says_that_there_is_none(self):
        if any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
            self.skipTest("this machine has one")
        with tempfile.TemporaryDirectory() as folder:
            ended = call(sys.executable, ROOT / "tests/gpu/seeds_on_cuda.py", "bundle", folder)
        self.assertEqual((ended.returncode, ended.stdout), (3, "no CUDA device: nothing was run\n"))


if __name__ == "__main__":
    unittest.main()
