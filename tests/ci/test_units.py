#!/usr/bin/env python3
"""A first matrix compiles each layer as one unit, and groups of layers as one (ci/setup --quick): no two files of one unit may define
the same name.

Layers of at most sixteen files are one unit in every release build; the larger ones and the groups are held to it here.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT  # noqa: E402

LAYERS = [*sorted(folder for folder in (ROOT / "harness").iterdir() if folder.is_dir()), ROOT / "oracles", ROOT / "reports"]

# CMakeLists.txt has the groups; backends/sdk is the one layer of theirs that is no folder of the harness.
GROUPS = {name: [ROOT / "backends" / "sdk" if layer == "sdk" else ROOT / "harness" / layer for layer in layers.split()]
          for name, layers in re.findall(r"^set\(shared_(\w+) ([\w ]+)\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"),
                                         re.MULTILINE)}


def sources_of(layer):
    """A file of one instruction set has options of its own, and CMake leaves it out of the unit; so it does with main, and with the files
    that the version is defined for."""
    return [file for file in sorted(layer.rglob("*.cc")) if "avx" not in file.name and file.name not in ("main.cc", "build_info.cc")]


def errors_of(sources, name="unit"):
    """The compiler's complaints about these files as one unit. Compiled without optimisation rather than only parsed, as ccache keeps no
    outcome of -fsyntax-only; by paths below the tree, so that it knows the unit in every checkout. Refusals are never kept."""
    folder = ROOT / "build/whole_units"
    folder.mkdir(parents=True, exist_ok=True)
    unit = folder / f"{name}.cc"
    lines = [f'#include "{source.relative_to(ROOT) if source.is_relative_to(ROOT) else source}"\n' for source in sources]
    unit.write_text("".join(lines), encoding="utf-8")
    cache = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1",
             "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    done = subprocess.run([*compiler, "-std=c++20", "-O0", "-w", f"-I{ROOT}", "-c", unit, "-o", unit.with_suffix(".o")], cwd=folder,
                          env={**os.environ, **cache}, capture_output=True, text=True, check=False)
    unit.with_suffix(".o").unlink(missing_ok=True)
    return done.stderr if done.returncode else ""


class Units(unittest.TestCase):
    def test_each_layer_is_one_unit(self):
        large = 0
        for layer in LAYERS:
            sources = sources_of(layer)
            if len(sources) <= 16 or any(layer in group for group in GROUPS.values()):
                continue  # one unit everywhere, or held to it with its group
            large += 1
            with self.subTest(layer=layer.name):
                self.assertEqual(errors_of(sources, layer.name), "")
        self.assertGreaterEqual(large, 3)

    def test_each_group_is_one_unit(self):
        self.assertEqual(sorted(GROUPS), ["low", "top"])
        for name, layers in GROUPS.items():
            with self.subTest(group=name):
                sources = [source for layer in layers for source in sources_of(layer)]
                self.assertGreater(len(sources), 16)
                self.assertEqual(errors_of(sources, "group_" + name), "")

    def test_one_name_in_two_files_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("a.cc", "b.cc")]
            for file in files:
                file.write_text("namespace { int Twice() { return 2; } }\n", encoding="utf-8")
            self.assertIn("redefinition", errors_of(files))
            self.assertEqual(errors_of(files[:1]), "")


if __name__ == "__main__":
    unittest.main()
