#!/usr/bin/env python3
"""Output that cannot be written is reported, before the work if that can be known; a run in which nothing was checked does not end with 0;
temporary folders go with the reports that name them."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call, class_folder, ulpscope  # noqa: E402

ONE = ("about: One case.\ncases:\n  - name: a\n    tags: [ci]\n    tensors: {x: {dtype: float32, shape: [4], fill: normal}}\n"
       "    program: [{op: neg, of: [x], as: r}]\n    observe: [r]\n")
MISFIT = ("about: Shapes that do not go together.\ncases:\n  - name: refused\n    tags: [ci]\n    tensors:\n"
          "      a: {dtype: float32, shape: [4, 8], fill: normal}\n      b: {dtype: float32, shape: [7, 4], fill: normal}\n"
          "    program: [{op: matmul, of: [a, b], as: y}]\n    observe: [y]\n")
FORMATS = ("json", "html", "junit", "csv", "markdown", "annotations")


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        (cls.folder / "one.yaml").write_text(ONE)
        (cls.folder / "misfit.yaml").write_text(MISFIT)
        done = ulpscope("run", "one.yaml", "-b", "emulated", "-q", "-o", "run", cwd=cls.folder)
        assert done.returncode == 0, done.stderr

    def test_a_stdout_that_takes_nothing_is_an_error(self):
        commands = (["report", "run"], ["explain", "one/a@emulated", "--run", "run"], ["diff", "run", "run"], ["list", "cases"],
                    ["list", "ops", "--json"], ["schema"], ["lint", "one.yaml"], ["--help"], ["--version"], ["completion", "bash"],
                    ["man"], ["run", "one.yaml", "-b", "emulated", "-o", "again"], ["judge", "run"], ["report", "run", "--json", "-"])
        for command in commands:
            with self.subTest(command=command):
                done = call("bash", "-c", 'exec "$@" > /dev/full', "bash", ULPSCOPE, *command, cwd=self.folder)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn("cannot write to stdout: No space left on device", done.stderr)

    def test_a_verdict_outlives_a_stdout_that_takes_nothing(self):
        done = call("bash", "-c", 'exec "$@" > /dev/full', "bash", ULPSCOPE, "run", "misfit.yaml", "-b", "openblas", "-o", "lost",
                    cwd=self.folder)
        self.assertEqual(done.returncode, 5)
        self.assertIn("cannot write to stdout", done.stderr)

    def test_a_reader_that_has_read_enough_is_no_error(self):
        done = call("bash", "-c", 'set -o pipefail; "$1" schema | head -1 >/dev/null', "bash", ULPSCOPE, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_reports_that_cannot_be_written_are_refused_before_the_run(self):
        (self.folder / "file").write_text("")
        (self.folder / "there").mkdir(exist_ok=True)
        for number, (place, why) in enumerate((("nowhere/page", "No such file or directory"), ("file/page", "Not a directory"),
                                               ("there", "Is a directory"), ("x" * 255, "File name too long"))):
            for name in FORMATS:
                with self.subTest(place=place[:20], name=name):
                    out = f"refused-{number}-{name}"
                    done = ulpscope("run", "one.yaml", "-b", "emulated", "-q", "-o", out, f"--{name}", place, cwd=self.folder)
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertIn(why, done.stderr)
                    self.assertIn(f"--{name}", done.stderr)
                    self.assertFalse((self.folder / out / "journal.jsonl").exists(), "it was run before")
        before = sorted(each.name for each in self.folder.iterdir())
        for command in (["judge", "run"], ["report", "run"], ["merge", "run", "-o", "merged"]):
            done = ulpscope(*command, "--html", "nowhere/page.html", cwd=self.folder)
            self.assertEqual(done.returncode, 4, done.stderr)
        done = ulpscope("probe", "openblas", "--json", "nowhere/sheet.json", cwd=self.folder)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(sorted(each.name for each in self.folder.iterdir()), before)

    def test_reports_may_lie_in_the_folder_that_the_run_makes(self):
        done = ulpscope("run", "one.yaml", "-b", "emulated", "-q", "-o", "deep/run", "--html", "deep/run/page.html", "--csv", "deep/v.csv",
                        cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "deep/run/page.html").is_file() and (self.folder / "deep/v.csv").is_file())

    def test_nothing_checked_is_told_and_no_success(self):
        for command in (["run", "misfit.yaml", "-b", "openblas,torch-eager", "-q", "-o", "nothing"], ["judge", "nothing"], ["report", "nothing"]):
            done = ulpscope(*command, cwd=self.folder)
            self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
            self.assertIn("nothing was checked", done.stdout + done.stderr)
        (self.folder / "both.yaml").write_text(MISFIT + ONE[ONE.index("  - name"):])
        done = ulpscope("run", "both.yaml", "-b", "openblas,emulated", "-q", "-o", "both", cwd=self.folder)
        self.assertEqual(done.returncode, 0, "one of the two cases is checked: " + done.stdout + done.stderr)
        (self.folder / "demanded.yaml").write_text(MISFIT + "    contract: {status: specified, accept: {raised: {class: RuntimeError}}}\n")
        done = ulpscope("run", "demanded.yaml", "-b", "openblas", "-q", "-o", "demanded", cwd=self.folder)
        self.assertEqual(done.returncode, 0, "an error that is demanded is checked: " + done.stdout + done.stderr)

    def test_temporary_folders_of_the_package_go_with_their_reports(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        (self.folder / "checks.py").write_text(f"""
import os, pathlib, sys
sys.path[:0] = [{str(ROOT / "harness/python")!r}, {str(ROOT / "backends/python")!r}]
import torch, ulpscope
from ulpscope.checking import RunFailed
def left(): return len(list(pathlib.Path({str(scratch)!r}).glob("ulpscope*")))
report = ulpscope.check(lambda x: x * 2, (torch.ones(4),), backends=["emulated"], verify=(), progress=False)
assert left() == 1 and report.run_dir.is_dir(), "a report that is there keeps its folder"
if os.fork() == 0: sys.exit(0)
os.wait()
assert report.run_dir.is_dir(), "a child that ends takes it away"
report = ulpscope.check(lambda x: x * 3, (torch.ones(4),), backends=["emulated"], verify=(), progress=False)
assert left() == 1 and report.run_dir.is_dir(), "one that is gone leaves its own"
try:
    ulpscope.check("no-such-file.yaml", backends=["emulated"], progress=False)
except RunFailed: pass
assert left() == 1, "a run that failed leaves its own"
ulpscope.check(lambda x: x * 3, (torch.ones(4),), backends=["emulated"], verify=(), progress=False, out="kept")
""")
        done = call(sys.executable, "checks.py", cwd=self.folder, beside={"TMPDIR": str(scratch), "ULPSCOPE_BIN": str(ULPSCOPE)})
        self.assertEqual(done.returncode, 0, done.stderr[-1500:])
        self.assertEqual([each.name for each in scratch.iterdir() if each.name.startswith("ulpscope")], [])
        self.assertTrue((self.folder / "kept/journal.jsonl").is_file())


if __name__ == "__main__":
    unittest.main()
