#!/usr/bin/env python3
"""ci/gpu: the bundle runs in an empty environment, reports what the machine lacks, and its results are judged here alike."""
import json
import pathlib
import re
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import BIN, ROOT, call, ulpscope  # noqa: E402
BARE = {"PATH": "/usr/bin:/bin"}
HAS_GPU = any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


@unittest.skipIf(HAS_GPU, "this machine has a GPU: run the bundle for itself")
class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ulpscope-gpu-")
        cls.home = pathlib.Path(cls.folder.name)
        made = call(ROOT / "ci/gpu", cls.home / "bundle.tar.gz")
        assert made.returncode == 0, made.stderr
        with tarfile.open(cls.home / "bundle.tar.gz") as bundle:
            cls.names = bundle.getnames()
            bundle.extractall(cls.home / "there")
        cls.bundle = cls.home / "there/ulpscope-gpu"
        python = "python3"
        if (BIN / "ulpscope-torch").exists():
            # Built there for itself on a GPU machine, which takes minutes.
            (cls.bundle / "bin/ulpscope-torch").symlink_to(BIN / "ulpscope-torch")
            python = sys.executable
        cls.done = call(cls.bundle / "run", "--no-build", "--no-datasheets", "--python", python, "-k", "cuda or wgrad", env=BARE)
        with tarfile.open(cls.bundle / "result.tar.gz") as result:
            result.extractall(cls.home / "back")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_programs_need_nothing_but_the_c_library(self):
        checked = 0
        for program in ("ulpscope", "ulpscope-cublas"):
            listed = call("readelf", "-d", self.bundle / "bin" / program).stdout
            needed = [line.split("[")[1].rstrip("]") for line in listed.splitlines() if "NEEDED" in line]
            self.assertGreater(len(needed), 0)
            for library in needed:
                self.assertRegex(library, r"^(libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2)$")
                checked += 1
        print(f"\n{checked} libraries of 2 programs, {len(self.names)} files in the bundle")

    def test_every_leg_says_that_there_is_no_device(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        report = json.loads((self.home / "back/run/report.json").read_text())
        legs = {}
        for result in report["results"]:
            self.assertEqual((result["status"], result["outcome"]["kind"]), ("SKIP", "unsupported"), result)
            answer = re.search("no CUDA device|device cuda", result["outcome"]["text"])
            legs.setdefault(result["backend"], []).append(answer is not None)
        self.assertIn("cublas@cuda", legs)
        self.assertIn("cublaslt@cuda", legs)
        if (BIN / "ulpscope-torch").exists():
            self.assertIn("torch-eager@cuda", legs)
            self.assertIn("torch-inductor@cuda", legs)
        for leg, answers in legs.items():
            self.assertTrue(all(answers), f"{leg}: {answers}")
        print(f"\n{sum(map(len, legs.values()))} cells of {len(legs)} legs say that there is no device")

    def test_the_run_is_judged_alike_at_home(self):
        again = ulpscope("judge", self.home / "back/run", "--json", self.home / "again.json",
                         beside={"ULPSCOPE_ROOT": str(ROOT)})
        self.assertEqual(again.returncode, 5, again.stderr)  # nothing but skips ran
        there, here = (json.loads(path.read_text()) for path in (self.home / "back/run/report.json", self.home / "again.json"))
        self.assertGreater(len(there["results"]), 5)
        there.pop("volatile")
        here.pop("volatile")
        self.assertEqual(there, here)


if __name__ == "__main__":
    unittest.main()
