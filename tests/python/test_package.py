#!/usr/bin/env python3
"""The wheel: its tree, its tag; installed away from the checkout and without a compiler it runs cases, check() and assert_precision()."""
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest
import venv
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call  # noqa: E402

TOOLS = ROOT / ".venv-package/bin"
OWN = '''import pathlib
import torch
import ulpscope
from ulpscope import places


def block(x, w):
    return torch.nn.functional.silu(x @ w)


made = torch.Generator().manual_seed(3)
x, w = torch.randn(16, 32, generator=made).bfloat16(), torch.randn(32, 16, generator=made).bfloat16()
report = ulpscope.check(block, (x, w), backends=["torch-aot-eager", "openblas"], verify=())
print(sorted({each["backend"] for each in report.results}), report.ok)
ulpscope.assert_precision(lambda x, w: (x.float() @ w.float()).bfloat16(), (x, w), acc="float32")
try:
    ulpscope.assert_precision(lambda x, w: sum(x[:, k:k + 1] * w[k:k + 1] for k in range(32)), (x, w), acc="float32")
except ulpscope.PrecisionError as refused:
    print("witness" in str(refused))
print(places.binary(), places.root(), sep="\\n")
'''


def setUpModule():
    """Builds the wheel as pip does, of the programs that were built already, and installs it in an environment of its own."""
    global FOLDER, WHEEL, BIN, PACKAGE, ENVIRONMENT
    made = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(made.cleanup)
    FOLDER = pathlib.Path(made.name).resolve()
    built = call(TOOLS / "python", "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "--no-index", "-w", FOLDER, "-q",
                 beside={"ULPSCOPE_PREBUILT": str(ULPSCOPE.parents[1]), "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    if built.returncode != 0:
        raise AssertionError(built.stdout + built.stderr)
    WHEEL = next(FOLDER.glob("*.whl"))
    home = FOLDER / "environment"
    venv.create(home, with_pip=False)
    PACKAGE = next(home.glob("lib/python*/site-packages"))
    # torch and NumPy are those of the checkout's environment: no download.
    besides = [sysconfig.get_paths()["purelib"], *map(str, TOOLS.parent.glob("lib/python*/site-packages"))]
    (PACKAGE / "frameworks.pth").write_text("\n".join(besides) + "\n", encoding="utf-8")
    done = call(TOOLS / "python", "-m", "pip", "--python", home / "bin/python", "install", "-q", "--no-deps", "--no-index", WHEEL)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    BIN = home / "bin"
    nothing = FOLDER / "path"
    nothing.mkdir()
    for name in ("env", "sh"):
        (nothing / name).symlink_to(f"/usr/bin/{name}")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("ULPSCOPE", "PYTHON"))}
    ENVIRONMENT = {**kept, "PATH": f"{BIN}:{nothing}", "HOME": str(FOLDER)}


def inside(*command):
    return subprocess.run([str(part) for part in command], cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
                          check=False)


class Wheel(unittest.TestCase):
    def test_the_tag_the_version_and_what_is_in_it(self):
        version = re.search(r"project\(ulpscope VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        self.assertRegex(WHEEL.name, rf"^ulpscope-{re.escape(version)}-py3-none-(many)?linux.*\.whl$")
        self.assertIn(f"## {version}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        with zipfile.ZipFile(WHEEL) as packed:
            names = set(packed.namelist())
        tracked = subprocess.run(["git", "ls-files", "cases", "backends/python", "backends/jax", "backends/torch_compile",
                                  "harness/python/ulpscope"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        missing = [each for each in tracked if each.replace("harness/python/ulpscope/", "ulpscope/") not in names
                   and f"ulpscope/share/ulpscope/{each}" not in names]
        self.assertGreater(len(tracked), 60)
        self.assertEqual(missing, [])
        self.assertLessEqual({f"ulpscope/bin/ulpscope{end}" for end in ("", "-openblas", "-emulated", "-recorded")}, names)
        self.assertEqual([each for each in names if "__pycache__" in each], [])

    def test_what_it_needs_besides_is_what_every_linux_has(self):
        shown = call(TOOLS / "auditwheel", "show", WHEEL)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(" ".join(shown.stdout.split()), r'platform tag to "manylinux_2_\d+_')

    def test_cases_check_and_assert_precision_without_a_compiler(self):
        began = time.monotonic()
        for compiler in ("cc", "gcc", "c++", "g++", "clang"):
            self.assertNotEqual(inside("env", compiler, "--version").returncode, 0)
        said = inside(BIN / "ulpscope", "--version")
        self.assertRegex(said.stdout, r"^ulpscope [0-9.]+")
        ran = inside(BIN / "ulpscope", "run", "seeds/matmul_out/as_posted", "seeds/matmul_out/square_64", "-b", "torch-aot-eager,openblas")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"seeds/matmul_out/as_posted\n +product +f32>bf16>f32~?.* f32~?")
        (FOLDER / "own.py").write_text(OWN, encoding="utf-8")
        own = inside(BIN / "python", "own.py")
        self.assertEqual(own.returncode, 0, own.stdout + own.stderr)
        backends, witness, binary, root = own.stdout.splitlines()
        self.assertEqual(backends, "['openblas', 'torch-aot-eager'] True")
        self.assertEqual(witness, "True")
        self.assertEqual([binary, root], [str(PACKAGE / "ulpscope/bin/ulpscope"), str(PACKAGE / "ulpscope/share/ulpscope")])
        took = time.monotonic() - began
        self.assertLess(took, 60)
        print(f"\nrun, check and assert_precision from the wheel in {took:.0f} s")

    def test_torch_eager_has_the_bits_that_libtorch_has(self):
        """In the wheel PyTorch's ops are called from Python, in the checkout from C++; the status of each case is the same too."""
        found = {}
        for name, run in (("wheel", inside), ("checkout", call)):
            folder, harness = FOLDER / f"bits-{name}", BIN / "ulpscope" if name == "wheel" else ULPSCOPE
            ran = run(harness, "run", "-m", "ci", "-b", "torch-eager", "--no-trace", "-q", "-o", folder)
            self.assertIn(ran.returncode, (0, 1), ran.stderr)
            found[name] = {result["id"]: (result["status"], {value: each.get("bits") for value, each in result.get("values", {}).items()})
                           for result in json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]}
        values = sum(len(bits) for _, bits in found["wheel"].values())
        self.assertGreater(values, 100, "too few values to say that bits are the same")
        self.assertEqual(found["wheel"], found["checkout"])

    def test_pytest_finds_the_plugin_by_itself(self):
        suite = PACKAGE / "ulpscope/share/ulpscope/cases/seeds/matmul_out.yaml"
        done = inside(BIN / "python", "-m", "pytest", "-p", "no:cacheprovider", "--ulpscope", "--ulpscope-backends", "openblas",
                      f"{suite}::seeds/matmul_out/as_posted", "-q")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 passed", done.stdout)

    def test_nothing_of_the_checkout_is_read(self):
        traced = inside(BIN / "ulpscope", "list", "cases", "seeds/matmul_out", "--json")
        self.assertEqual(traced.returncode, 0, traced.stderr)
        for name in ("ulpscope", "ulpscope-openblas"):
            maps = subprocess.run(["ldd", PACKAGE / "ulpscope/bin" / name], capture_output=True, text=True, check=True).stdout
            self.assertNotIn("not found", maps)
            self.assertIn(str(PACKAGE / "ulpscope"), maps)
            self.assertNotIn("/usr/lib/x86_64-linux-gnu/openblas", maps)
        self.assertIn("libgfortran.so.5 => " + str(PACKAGE), maps)

    def test_doctor_says_what_is_not_in_the_wheel_and_why(self):
        said = " ".join(inside(BIN / "ulpscope", "doctor").stdout.split())
        self.assertRegex(said, "ok torch-eager")
        self.assertIn("absent torch-traced", said)
        self.assertIn("LibTorch's adapter is not in the wheel", said)
        self.assertNotIn("ci/setup", said)
        self.assertRegex(said, r"ok openblas")


if __name__ == "__main__":
    unittest.main()
