#!/usr/bin/env python3
"""pytest --ulpscope: case files as items with the statuses of `ulpscope run`, failures that read like the console's, the fixture."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call, ulpscope  # noqa: E402

FRAMES = next((ROOT / ".venv-package/lib").glob("python3*/site-packages"))  # pytest and xdist; torch is this interpreter's
EMULATED = "emulated:model=in=as_is;prod=exact;acc={};mid=none;out=bfloat16_rne".format
NARROW, CRASHES = EMULATED("bfloat16"), "faulty:fault=segv"
BACKENDS = f"{EMULATED('float32')},{NARROW},{CRASHES}"
CASE = """  - name: {}
    tensors:
      a: {{dtype: bfloat16, shape: [16, 64], fill: normal}}
      b: {{dtype: bfloat16, shape: [64, 16], fill: normal}}
    program: [{{op: matmul, of: [a, b], as: product}}]
    observe: [product]
{}"""
LIBRARY = """import ml_dtypes, numpy, pytest, torch
torch.ops.load_library("own.so")
def product(x, w, dtype): return sum((x[:, k:k + 1].astype(dtype) * w[k:k + 1].astype(dtype) for k in range(32)), dtype(0)).astype("f4")
def wide(x, w): return product(x, w, numpy.float32)
def narrow(x, w): return product(x, w, ml_dtypes.bfloat16)
x, w = torch.randn(16, 32, generator=torch.manual_seed(3)).bfloat16(), torch.randn(32, 16).bfloat16()
@pytest.mark.parametrize("f", [torch.ops.ulpscope_own.wide, torch.ops.ulpscope_own.narrow, wide, narrow])
def test_sum(ulpscope, f):
    args = (x.float().numpy(), w.float().numpy()) if f in (wide, narrow) else (x, w)
    ulpscope.assert_precision(f, args, acc="float32")
"""
PASSES = {"PASS": "passed", "SKIP": "skipped", "XFAIL": "xfailed"}  # all others fail
OUTCOMES = '''"""Writes the outcome of every item."""
import json
import os

FOUND = {}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        FOUND[report.nodeid] = "xfailed" if hasattr(report, "wasxfail") else report.outcome


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        with open(os.environ["OUTCOMES"], "w", encoding="utf-8") as file:
            json.dump(FOUND, file)
'''


def suite(folder):
    """A suite whose cases on BACKENDS have six statuses."""
    cases = folder / "cases"
    cases.mkdir()
    (folder / "backends").symlink_to(ROOT / "backends")
    named = (("held", ""), ("known", "    tags: [smoke, products]\n"), ("known_and_gone", ""), ("on_a_gpu", "    requires: {device: cuda}\n"))
    (cases / "products.yaml").write_text(
        "about: Products that are summed in float32.\ncontract: {status: specified, prove: true, accept: {product: {acc: at_least_float32}}}\n"
        "cases:\n" + "".join(CASE.format(*each) for each in named), encoding="utf-8")
    (folder / "settings.yaml").write_text("cases_of_another_tool: 1\n", encoding="utf-8")
    listed = (("known", NARROW), ("known_and_gone", EMULATED("float32")))
    (cases / "deviations.yaml").write_text("".join(
        f'- {{case: products/{case}, backend: "{backend}", value: product, found: bfloat16, reason: it is ours, '
        'link: "https://example.org/1", expires: 2099-01-01}\n' for case, backend in listed), encoding="utf-8")
    return cases


class Session(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "outcomes.py").write_text(OUTCOMES, encoding="utf-8")
        self.variables = {"PYTHONPATH": f"{ROOT / 'harness/python'}:{FRAMES}:{self.folder}", "OUTCOMES": str(self.folder / "found.json"),
                          "ULPSCOPE_BIN": str(ULPSCOPE), "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def pytest(self, *arguments):
        return call(sys.executable, "-m", "pytest", "-p", "ulpscope.pytest_plugin", "-p", "outcomes", "--basetemp", self.folder / "kept",
                    *arguments, cwd=self.folder, beside=self.variables)

    def outcomes(self):
        """ID@BACKEND -> outcome, from the names of the items."""
        found = json.loads((self.folder / "found.json").read_text(encoding="utf-8"))
        return {f"{case}@{rest[:-1]}": outcome
                for name, outcome in found.items() for case, _, rest in [name.partition("::")[2].rpartition("[")]}

    def own_suite(self):
        self.variables["ULPSCOPE_ROOT"] = str(self.folder)
        return suite(self.folder)

    def run_directly(self, *arguments):
        out = self.folder / "direct"
        done = ulpscope("run", *arguments, "-q", "-o", out, cwd=self.folder, beside=self.variables)
        self.assertTrue((out / "report.json").is_file(), done.stderr)
        results = json.loads((out / "report.json").read_text(encoding="utf-8"))["results"]
        return done.returncode, {f"{each['id']}@{each['backend']}": each for each in results}


class Items(Session):
    def test_the_seeds_have_the_statuses_of_a_run(self):
        # The posted sizes and the searches of long programs take minutes, and nothing here depends on them.
        chosen = "not posted and not fsdp and not xla and not data_cast and not linear_backward"
        backends = "torch-eager,openblas"
        done = self.pytest("--ulpscope", "--ulpscope-backends", backends, "--ulpscope-run=--no-steps", ROOT / "cases/seeds", "-k", chosen, "-q")
        code, results = self.run_directly(ROOT / "cases/seeds", "-b", backends, "--no-steps", "-k", chosen)
        self.assertGreater(len(results), 25)
        self.assertEqual(self.outcomes(), {key: PASSES.get(each["status"], "failed") for key, each in results.items()}, done.stdout)
        self.assertEqual((done.returncode, code), (0, 0))
        print(f"\n{len(results)} items of cases/seeds as `ulpscope run` has them")

    def test_every_status_has_its_outcome_and_exit_codes_are_pytests_own(self):
        cases = self.own_suite()
        code, results = self.run_directly("-b", BACKENDS)
        self.assertEqual(code, 6)
        self.assertLessEqual({"PASS", "FAIL", "XFAIL", "XPASS", "SKIP", "CRASH"}, {each["status"] for each in results.values()})
        expected = {key: PASSES.get(each["status"], "failed") for key, each in results.items()}
        for more in ((), ("-p", "xdist", "-n", "2")):
            done = self.pytest("--ulpscope", "--ulpscope-backends", BACKENDS, cases, "-rs", *more)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(self.outcomes(), expected, done.stdout)
            self.assertIn("products.yaml:23: requires device cuda", done.stdout)
        runs = [each.name for each in (self.folder / "kept/ulpscope0").glob("*-0")]
        self.assertEqual(sorted(runs), ["0-0", "1-0"], "one run for each worker")
        for arguments, wanted in ((["-k", "held and float32"], 0), (["-k", "nothing_of_this_name"], 5)):
            done = self.pytest("--ulpscope", "--ulpscope-backends", BACKENDS, cases, *arguments)
            self.assertEqual(done.returncode, wanted, done.stdout)
        self.assertEqual(self.pytest("--ulpscope", "--ulpscope-backends", "torch-eagre", cases).returncode, 4)

    def test_a_failure_is_told_as_on_the_console_and_holds_no_traceback(self):
        cases = self.own_suite()
        _, results = self.run_directly("-b", BACKENDS)
        failed = results[f"products/held@{NARROW}"]
        done = self.pytest("--ulpscope", "--ulpscope-backends", BACKENDS, cases, "--lf", "-x", "-k", "held and bfloat16_rne and acc and not float32 and not segv")
        self.assertEqual(done.returncode, 1, done.stdout)
        told = " ".join(done.stdout.split())
        self.assertIn(f"FAIL products/held {NARROW} {failed['reason']}"[:150], told)
        self.assertIn("cases/products.yaml:4\n", done.stdout)
        self.assertIn(f"    {failed['repro']}\n", done.stdout)
        self.assertNotIn("Traceback", done.stdout + done.stderr)
        self.assertNotIn("pytest_plugin.py", done.stdout)
        look = next(line for line in done.stdout.splitlines() if line.startswith("    ulpscope explain"))
        explained = call("sh", "-c", look.replace("ulpscope", str(ULPSCOPE), 1), cwd=self.folder, beside=self.variables)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        again = self.pytest("--ulpscope", "--ulpscope-backends", BACKENDS, cases, "--lf")
        self.assertEqual(list(self.outcomes()), [f"products/held@{NARROW}"], again.stdout)

    def test_marks_node_ids_and_files_that_are_none(self):
        cases = self.own_suite()

        def chosen(*arguments):
            done = self.pytest("--ulpscope", "--ulpscope-backends", BACKENDS, "--collect-only", "-q", "--strict-markers", *arguments)
            return [line for line in done.stdout.splitlines() if "::" in line], done

        everything, _ = chosen(self.folder)
        self.assertEqual(len(everything), 12)
        self.assertEqual([each for each in everything if "/known[" in each], chosen(cases, "-m", "smoke")[0])
        self.assertEqual([each for each in everything if "/known[" in each], chosen(cases, "-m", "products")[0])
        self.assertEqual(everything, chosen(cases, "-m", "ci")[0])
        self.assertEqual(3, len(chosen(f"{cases}/products.yaml::products/held")[0]))
        self.assertEqual([everything[0]], chosen(everything[0])[0])
        broken = cases / "broken.yaml"
        broken.write_text("about: a\ncases: [{name: x, tensors: {}, programme: [], observe: []}]\n", encoding="utf-8")
        _, done = chosen(broken)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown key 'programme'", done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        self.assertEqual(self.pytest(cases).returncode, 5, "without --ulpscope a case file is none of pytest's")

    def test_files_of_one_name_in_two_folders(self):
        for name, demand in (("one", "contract: {status: specified, accept: {product: {acc: at_least_float32}}}\n"), ("two", "")):
            (self.folder / name).mkdir()
            (self.folder / name / "same.yaml").write_text(
                f"about: Twice.\n{demand}cases:\n" + CASE.format("held", ""), encoding="utf-8")
        done = self.pytest("--ulpscope", "--ulpscope-backends", NARROW, "one", "two", "-rA")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"FAILED one/same.yaml::same/held[{NARROW}]", done.stdout)
        self.assertIn(f"PASSED two/same.yaml::same/held[{NARROW}]", done.stdout)

    def test_a_session_that_is_stopped_takes_its_run_with_it(self):
        self.own_suite()
        process = subprocess.Popen([sys.executable, "-m", "pytest", "-p", "ulpscope.pytest_plugin", "--basetemp", str(self.folder / "kept"),
                                    "--ulpscope", "--ulpscope-backends", "faulty:fault=hang", "cases"], cwd=self.folder,
                                   env={**os.environ, **self.variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   # A shell's background jobs ignore it.
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        journal = self.folder / "kept/ulpscope0/0-0/journal.jsonl"
        while process.poll() is None and not (journal.is_file() and '"begin"' in journal.read_text(encoding="utf-8")):
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 2, said)
        self.assertLess(time.monotonic() - began, 60)
        report = json.loads((journal.parent / "report.json").read_text(encoding="utf-8"))
        self.assertFalse(report["run"]["complete"])


class Fixture(Session):
    def test_a_proof_a_refusal_and_where_they_are_kept(self):
        shutil.copy(pathlib.Path(__file__).parent / "own_kernels.py", self.folder / "test_own.py")
        done = self.pytest("test_own.py", "--junitxml", self.folder / "junit.xml")
        self.assertEqual(done.returncode, 1, done.stdout)
        found = {name.partition("::")[2]: outcome
                 for name, outcome in json.loads((self.folder / "found.json").read_text(encoding="utf-8")).items()}
        self.assertEqual(found, {"test_float32": "passed", "test_bfloat16": "failed", "test_check": "passed"}, done.stdout)
        message = xml.etree.ElementTree.parse(self.folder / "junit.xml").find(".//failure").get("message")
        self.assertIn("witness  result[", message)
        self.assertIn(str(self.folder / "kept/test_bfloat160/ulpscope-precision-1/run"), message)
        self.assertNotIn("precision.py", done.stdout)
        self.assertTrue((self.folder / "kept/test_check0/ulpscope-check-1/report.json").is_file())

    def test_ops_of_a_library_and_numpy_in_ten_lines(self):
        """A library in C++ registers its ops with PyTorch; each way of computing has a narrow sum and its twin a wide one."""
        self.assertLessEqual(len(LIBRARY.splitlines()), 10)
        torch = next((ROOT / ".venv/lib").glob("python3*/site-packages/torch"))
        call("g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include",
             pathlib.Path(__file__).parent / "library_op.cc", f"-L{torch}/lib", "-ltorch_cpu", "-lc10", "-o", self.folder / "own.so")
        (self.folder / "test_library.py").write_text(LIBRARY, encoding="utf-8")
        done = self.pytest("test_library.py", "--junitxml", self.folder / "junit.xml")
        self.assertEqual(done.returncode, 1, done.stdout)
        found = {name.partition("::")[2]: outcome
                 for name, outcome in json.loads((self.folder / "found.json").read_text(encoding="utf-8")).items()}
        self.assertEqual(found, {"test_sum[wide0]": "passed", "test_sum[narrow0]": "failed", "test_sum[wide1]": "passed",
                                 "test_sum[narrow1]": "failed"}, done.stdout)
        failures = xml.etree.ElementTree.parse(self.folder / "junit.xml").findall(".//failure")
        self.assertEqual(len(failures), 2)
        for failure in failures:
            self.assertIn("witness  result[", failure.get("message"))
            self.assertIn("accumulated in bfloat16", failure.get("message"))


if __name__ == "__main__":
    unittest.main()
