#!/usr/bin/env python3
"""A first matrix compiles each layer as one unit (ci/setup --quick): no two files of a layer may define the same name.

Layers of at most sixteen files are one unit in every release build; the larger ones are held to it here.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT  # noqa: E402

LAYERS = [*sorted(folder for folder in (ROOT / "harness").iterdir() if folder.is_dir()), ROOT / "oracles", ROOT / "reports"]


def errors_of(sources):
    """What the compiler has against these files as one unit."""
    unit = "".join(f'#include "{source}"\n' for source in sources)
    done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{ROOT}", "-x", "c++", "-"], input=unit,
                          capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


class Units(unittest.TestCase):
    def test_each_layer_is_one_unit(self):
        large = 0
        for layer in LAYERS:
            # A file of one instruction set has options of its own, and CMake leaves it out of the unit; so is main.
            sources = [file for file in sorted(layer.rglob("*.cc")) if "avx" not in file.name and file.name != "main.cc"]
            if len(sources) <= 16:
                continue
            large += 1
            with self.subTest(layer=layer.name):
                self.assertEqual(errors_of(sources), "")
        self.assertGreaterEqual(large, 3)

    def test_one_name_in_two_files_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("a.cc", "b.cc")]
            for file in files:
                file.write_text("namespace { int Twice() { return 2; } }\n", encoding="utf-8")
            self.assertIn("redefinition", errors_of(files))
            self.assertEqual(errors_of(files[:1]), "")


if __name__ == "__main__":
    unittest.main()
