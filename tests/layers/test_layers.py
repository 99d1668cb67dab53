#!/usr/bin/env python3
"""The layer rules hold for the tree, and the checker sees a violation of each kind of rule."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[2]

# One planted include per kind of rule: (file, include line).
PLANTED = [
    ("harness/base/a.h", '#include "harness/num/dtype.h"'),
    ("harness/num/a.h", '#include "harness/model/case.h"'),
    ("harness/model/a.h", "#include <yaml-cpp/yaml.h>"),
    ("harness/judge/a.cc", "#include <boost/multiprecision/cpp_int.hpp>"),
    ("harness/judge/a.cc", "#include <fstream>"),
    ("harness/judge/a.cc", '#include "harness/run/backend.h"'),
    ("harness/judge/a.cc", '#include "oracles/exact/real.h"'),
    ("harness/cli/a.cc", "#include <ATen/ATen.h>"),
    ("harness/cli/a.cc", '#include "backends/torch/eager.h"'),
    ("reports/a.cc", '#include "harness/judge/classify.h"'),
    ("oracles/a.cc", '#include "harness/judge/classify.h"'),
    ("backends/sdk/a.h", "#include <fmt/format.h>"),
    ("backends/sdk/a.h", '#include "harness/model/case.h"'),
    ("backends/torch/a.cc", "#include <fmt/format.h>"),
    ("backends/torch/a.cc", '#include "backends/cblas/gemm.h"'),
    ("backends/cblas/a.cc", '#include "oracles/exact/real.h"'),
    ("backends/cblas/a.cc", "  #  include <torch/script.h>"),
    ("backends/cblas/a.cc", "#include <oneapi/dnnl/dnnl.hpp>"),
    ("harness/run/a.cc", '#include "journal.h"'),
]
ALLOWED = [
    ("backends/emulated/a.cc", '#include "oracles/exact/real.h"'),
    ("backends/torch/a.cc", '#include "backends/torch/eager.h"'),
    ("harness/cli/a.cc", '#include "harness/judge/classify.h"'),
    ("harness/judge/a.cc", "#include <vector>"),
    ("tests/judge/a_test.cc", "#include <mpfr.h>"),
]


def check_one(file, line):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / file
        path.parent.mkdir(parents=True)
        path.write_text("#pragma once\n" + line + "\n", encoding="utf-8")
        return check_layers.check_tree(pathlib.Path(folder))


class Layers(unittest.TestCase):
    def test_tree_keeps_to_its_layers(self):
        violations, includes, files = check_layers.check_tree(ROOT)
        self.assertEqual(violations, [])
        # The tree has hundreds; a checker that walks the wrong folder would see none.
        self.assertGreater(files, 20)
        self.assertGreater(includes, 100)

    def test_planted_violations_are_found(self):
        for file, line in PLANTED:
            with self.subTest(file=file, line=line):
                violations, includes, _ = check_one(file, line)
                self.assertEqual(includes, 1)
                self.assertEqual(len(violations), 1, violations)
                self.assertTrue(violations[0].startswith(file + ":2: "), violations)

    def test_allowed_includes_are_not_reported(self):
        for file, line in ALLOWED:
            with self.subTest(file=file, line=line):
                self.assertEqual(check_one(file, line)[0], [])

    def test_nothing_checked_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(check_layers.main(["check_layers.py", folder]), 1)
        self.assertIn("0 includes", out.getvalue())


if __name__ == "__main__":
    unittest.main()
