#!/usr/bin/env python3
"""ci/house keeps to its limits on this tree, and counts a fault of each sort that is planted in a copy of it."""
import contextlib
import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT  # noqa: E402

HOUSE = ROOT / "ci" / "house"
LOADER = importlib.machinery.SourceFileLoader("house", str(HOUSE))
house = importlib.util.module_from_spec(importlib.util.spec_from_loader("house", LOADER))
sys.dont_write_bytecode = True
LOADER.exec_module(house)
# Faults planted behind the last line of a file: measure -> (file, text, by how much the figure rises).
FAULTS = {
    "parses": ("harness/judge/label.cc", "int Planted(const std::string& word) { return ParseMid(word)->bits(); }\n", 1),
    "texts": ("harness/judge/combine.cc",
              'bool Planted(const Classification& one) { return one.label.find("accumulated in") != std::string::npos; }\n', 1),
    "texts of the package": ("harness/python/ulpscope/checking.py", 'def planted(self):\n    return re.search("finding", self.console)\n', 1),
    "conforming": ("harness/judge/contract.cc", "bool Planted(const PrecisionModel& model) {\n  return model.in.empty() && model.prod.none() &&\n"
                                                "         model.acc.wide() && model.mid.none();\n}\n", 1),
    "functions": ("reports/cell.cc", "int Planted(int x) {\n" + "  ++x;\n" * 59 + "  return x;\n}\n", 1),
    "functions of the package": ("harness/python/ulpscope/names.py", "def planted(x):\n" + "    x += 1\n" * 60, 1),
    "files": ("harness/base/find.h", "\n" * 400, 1),
    "cli": ("harness/cli/cli.cc", "\n" * 7, 7),
    "judge": ("harness/judge/judge.cc", "\n" * 7, 7),
    "constants": ("harness/judge/judge.cc", "constexpr double kPlanted = 3.25;\n", 1),
    "headless": ("harness/base/find.h", "/// What errs less is small.\nint a = 1;  // The first. Of two terms the second.\n", 2),
    "headless of a script": ("backends/python/ulpscope_adapter/fpenv.py",
                             'def planted():\n    """Adds.\n\n    What is left stays. Where nothing is, none.\n    """\n'
                             "    return 1  # Whoever calls.\n", 3),
    "origins": ("harness/judge/rule_numbers.h", "/// Three and a quarter.\nULPSCOPE_RULE_NUMBER(double, kPlanted, 3.25);\n", 1),
}
# Texts that look like a fault and are none.
SOUND = {
    "parses": ("harness/judge/label.cc", "// ParseMid(word) is what a case file is read with.\n"),
    "texts": ("harness/judge/combine.cc", '// label.find("accumulated in") was how this was asked.\n'),
    "conforming": ("harness/judge/contract.cc", "bool Planted(const PrecisionModel& a, const PrecisionModel& b) {\n"
                                                "  return a.in == b.in && a.prod == b.prod && a.acc == b.acc && a.mid == b.mid;\n}\n"),
    "functions": ("reports/cell.cc", "int Planted(int x) {\n" + "  ++x;\n" * 57 + "  return x;\n}\n"),
    "constants": ("harness/judge/judge.cc", "// Three standard deviations and a quarter.\nconstexpr double kPlanted = 3.25;\n"),
    "headless": ("harness/base/find.h", '/// The value of\n/// what is left; Whatever comes.\nconst char* kPlanted = "// What is this";\n'),
    "origins": ("harness/judge/rule_numbers.h", "/// derived: three and a quarter.\nULPSCOPE_RULE_NUMBER(double, kPlanted, 3.25);\n"),
}


def figure(measure, root):
    found = house.MEASURES[measure](root)
    return found if isinstance(found, int) else len(found)


class House(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="house-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        for layer in ("harness", "oracles", "reports", "backends"):
            for file in (ROOT / layer).rglob("*"):
                if file.suffix in (".cc", ".h", ".py") and file.is_file():
                    copy = cls.root / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, copy)
        cls.clean = {measure: figure(measure, cls.root) for measure in house.MEASURES}

    @contextlib.contextmanager
    def planted(self, name, text):
        file = self.root / name
        before = file.read_text(encoding="utf-8")
        file.write_text(before + text, encoding="utf-8")
        yield
        file.write_text(before, encoding="utf-8")

    def test_the_tree_keeps_to_its_limits(self):
        done = subprocess.run([HOUSE], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        rows = dict(re.findall(r"^(\w+) +(\d+) ", done.stdout, re.MULTILINE))
        self.assertEqual({name: int(row) for name, row in rows.items()}, self.clean)
        self.assertTrue(all(found for measure, found in self.clean.items() if house.LIMITS[measure][0] > 0), self.clean)

    def test_each_fault_is_counted(self):
        for name, (file, text, more) in FAULTS.items():
            measure = name.split()[0]
            with self.subTest(fault=name), self.planted(file, text):
                self.assertEqual(figure(measure, self.root) - self.clean[measure], more)
        self.assertEqual({name.split()[0] for name in FAULTS}, set(house.MEASURES))

    def test_a_figure_above_its_limit_fails(self):
        file, text, _ = FAULTS["parses"]
        with self.planted(file, text * (house.LIMITS["parses"][0] + 1)):
            done = subprocess.run([HOUSE, "--root", self.root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^parses .* ABOVE$")

    def test_what_is_none_is_not_counted(self):
        for measure, (file, text) in SOUND.items():
            with self.subTest(measure=measure), self.planted(file, text):
                self.assertEqual(figure(measure, self.root), self.clean[measure])

    def test_places_are_listed(self):
        listed = subprocess.run([HOUSE, "--list", "files"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(len(listed), self.clean["files"])
        for place in listed:
            name, lines = re.fullmatch(r"(\S+) \((\d+)\)", place).groups()
            self.assertEqual(len((ROOT / name).read_text(encoding="utf-8").splitlines()), int(lines))


if __name__ == "__main__":
    unittest.main()
