#!/usr/bin/env python3
"""What an addition costs: each tests/patches/NAME.patch adds one thing of a kind, to a copy of the tree.

Always: it applies, touches no more files than CONTRIBUTING says of its kind (code, documents, schemas and golden files count), leaves
every list that stands in a file as the tables write it, and each source that it touches compiles. With ULPSCOPE_NIGHTLY=1 the
copies are built as well, and NAME.cc beside each patch tests that what it adds works.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from programs import ROOT  # noqa: E402

MOST_FILES = 4

# Patch -> its row in CONTRIBUTING's table of additions.
PATCHES = {
    "accumulator": "an accumulator",
    "rounding": "an accumulator with a rounding of its own",
    "divergence_kind": "a kind of divergence",
    "classification_kind": "a kind of classification",
    "cause": "a cause of a difference",
    "report_format": "a report format",
}
# What report.schema.json lists, held to the tables: small enough to be built each time.
SCHEMA_TEST = ("tests/reports/schema_test.cc", "harness/base/text.cc", "harness/base/spellings.cc", "harness/base/build_info.cc")
# The lists in files that tables write: compared in what is built.
LISTS = ("tests/casefile/schema_test.cc", "tests/words/export_test.cc", "tests/words/facets_test.cc", "tests/reports/schema_test.cc")


def run(*command, cwd, **options):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **options)


def copy_tree(folder):
    """What is tracked, as it stands; a repository of its own, so that git tells what a patch touches."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "core.autocrlf=false")
    for command in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-q", "-m", "the tree")):
        subprocess.run(["git", *identity, *command], cwd=folder, check=True)
    return folder


def apply(folder, patch):
    """What git has against it; empty where it is applied."""
    done = run("git", "apply", "--index", patch, cwd=folder)
    return done.stderr if done.returncode else ""


def touched(folder):
    return run("git", "diff", "--cached", "--name-only", cwd=folder).stdout.split()


def reset(folder):
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)


def too_many(files):
    """What is wrong with an addition that touches them; empty where nothing is."""
    return "" if len(files) <= MOST_FILES else f"{len(files)} files, more than {MOST_FILES}: {', '.join(files)}"


def compiler_in(folder, *arguments):
    """By paths below the tree: ccache knows what did not change."""
    cache = {"CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1",
             "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    done = run(*compiler, "-std=c++20", "-O0", "-w", "-DFMT_SHARED", '-DULPSCOPE_VERSION="0"', "-I.", *arguments, cwd=folder,
               env={**os.environ, **cache})
    return done.stderr if done.returncode else ""


def compile_errors(folder, file):
    unit = pathlib.Path(file).with_suffix(".o").name
    how = ["-fsyntax-only"] if file.endswith(".h") else ["-c", "-o", unit]
    errors = compiler_in(folder, *how, file)
    (folder / unit).unlink(missing_ok=True)
    return errors


def wrong_lists(folder):
    """What the schema's test says of the lists in report.schema.json; empty where it passes."""
    units = [pathlib.Path(file).with_suffix(".o").name for file in SCHEMA_TEST]
    errors = "".join(compiler_in(folder, "-c", file, "-o", unit) for file, unit in zip(SCHEMA_TEST, units, strict=True))
    errors = errors or compiler_in(folder, *units, "-o", "schema_test", "-lgtest", "-lgtest_main", "-lpthread")
    if errors:
        return errors
    done = run("./schema_test", cwd=folder)
    return "" if done.returncode == 0 and "PASSED" in done.stdout else done.stdout


def stated():
    """Addition -> the files that CONTRIBUTING says it touches."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {row[1]: int(row[2]) for row in re.finditer(r"^\| ([^|]+?) \| (\d+) \|", text, re.MULTILINE)}


class Additions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.folder = copy_tree(pathlib.Path(cls.made.name) / "tree")

    def tearDown(self):
        reset(self.folder)

    def add(self, name):
        self.assertEqual(apply(self.folder, HERE / f"{name}.patch"), "")
        return touched(self.folder)

    def test_each_patch_has_its_kind_and_its_test(self):
        self.assertEqual({file.stem for file in HERE.glob("*.patch")}, set(PATCHES))
        self.assertEqual({file.stem for file in HERE.glob("*.cc")}, set(PATCHES))

    def test_each_costs_what_is_stated(self):
        costs = stated()
        for name, kind in PATCHES.items():
            with self.subTest(name):
                files = self.add(name)
                self.assertEqual(too_many(files), "")
                self.assertEqual(len(files), costs.get(kind), f"CONTRIBUTING's row of {kind}: {files}")
                reset(self.folder)

    def test_each_compiles(self):
        compiled = 0
        for name in PATCHES:
            for file in self.add(name):
                if file.endswith((".cc", ".h")):
                    with self.subTest(name, file=file):
                        self.assertEqual(compile_errors(self.folder, file), "")
                        compiled += 1
            reset(self.folder)
        self.assertGreaterEqual(compiled, len(PATCHES))

    def test_the_schema_lists_what_is_added(self):
        self.assertEqual(wrong_lists(self.folder), "")
        for name in ("divergence_kind", "classification_kind"):
            with self.subTest(name):
                self.add(name)
                self.assertEqual(wrong_lists(self.folder), "")
                run("git", "checkout", "-q", "HEAD", "--", "reports/report.schema.json", cwd=self.folder)
                self.assertIn("against", wrong_lists(self.folder), "a schema without it")
                reset(self.folder)

    def test_a_fifth_file_is_too_many(self):
        files = self.add("accumulator")
        for place in ("harness/words/README.md", "reports/further.h"):
            (self.folder / place).write_text("// Further.\n", encoding="utf-8")
            subprocess.run(["git", "add", "-f", place], cwd=self.folder, check=True)
            if len(files) + 1 > MOST_FILES:
                break
            files = touched(self.folder)
        self.assertRegex(too_many(touched(self.folder)), f"^{MOST_FILES + 1} files, more than {MOST_FILES}: ")

    def test_a_kind_without_its_row_does_not_compile(self):
        for header, first in (("divergence_kind.h", "kOutcome"), ("classification_kind.h", "kIdentified")):
            with self.subTest(header):
                file = self.folder / "harness/model" / header
                text = file.read_text(encoding="utf-8")
                file.write_text(text.replace(f"  {first},", f"  kPlanted,\n  {first},", 1), encoding="utf-8")
                self.assertIn("the rows stand in the order of their enumerators",
                              compile_errors(self.folder, f"harness/model/{header}"))

    @unittest.skipUnless(os.environ.get("ULPSCOPE_NIGHTLY"), "ULPSCOPE_NIGHTLY=1 builds the tree with all that is added")
    def test_each_works(self):
        copies = []
        for name in PATCHES:
            # Two that change the same lines cannot be in one copy.
            for folder, names in copies:
                if not apply(folder, HERE / f"{name}.patch"):
                    names.append(name)
                    break
            else:
                folder = copy_tree(pathlib.Path(self.made.name) / f"copy{len(copies)}")
                self.assertEqual(apply(folder, HERE / f"{name}.patch"), "")
                copies.append((folder, [name]))
        for folder, names in copies:
            with self.subTest(names=names):
                sources = " ".join(["../" + file for file in LISTS] + [f"patches/{name}.cc" for name in names])
                with (folder / "tests/CMakeLists.txt").open("a", encoding="utf-8") as lists:
                    lists.write(f"\nadd_executable(test_patches {sources.replace('../tests/', '')})\n"
                                "target_link_libraries(test_patches PRIVATE GTest::gtest GTest::gmock GTest::gtest_main ulpscope_judge ulpscope_oracles "
                                "ulpscope_casefile ulpscope_reports)\n"
                                "target_compile_options(test_patches PRIVATE -O1)\nset_target_properties(test_patches PROPERTIES UNITY_BUILD OFF)\n")
                for command in (("cmake", "--preset", "release"),
                                ("nice", "ninja", "-C", "build/release", "test_patches"),
                                ("build/release/bin/test_patches",)):
                    done = run(*command, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
