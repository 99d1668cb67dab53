#!/usr/bin/env python3
"""The layer rules hold for the tree, and the checkers see a violation of each kind of rule."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import check_layers
import names_reached
import types_twice
import word_lists

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


# Circles: the files of each, and the circle that is to be seen.
UNITS_IN_A_CIRCLE = {"harness/run/a.h": "harness/run/b.h", "harness/run/b.cc": "harness/run/c.h", "harness/run/c.h": "harness/run/a.h"}
ROOMS_IN_A_CIRCLE = {"harness/num/a.h": "harness/words/b.h", "harness/words/c.h": "harness/num/d.h"}
NO_CIRCLE = {"harness/run/a.cc": "harness/run/a.h", "harness/run/b.cc": "harness/run/a.h", "tests/run/c.cc": "harness/run/a.h"}

# A vocabulary, and enumerations of it that are copies: one of each form.
HOME = 'const Row kRows[] = {{"one", 1}, {"two", 2}, {"three", 3}, {"four", 4}, {"five", 5}, {"six", 6}, {"seven", 7}};'
COPIES = {
    "harness/a.cc": 'const char* kWords[] = {"one", "two", "three",\n "four", "five", "six", "other"};',
    "harness/b.cc": 'const Row kRows[] = {{"one", One, "text"}, {"two", 2}, {"three"}, {"four"}, {F("five")}, {"six"}};',
    "harness/c.cc": 'int F(S s) { if (s == "one") return 1; if (Is("two")) {} G("three"); G("four"); G("five"); G("six"); }',
    "harness/d.cc": 'const auto kWords = Split("one two three four five six");',
    "harness/e.cc": 'Table kTable{Row("one"), // "a comment is no literal"\n Row("two"), Row("three"), Row("four"), Row("five"), Row("six")};',
    "backends/a.py": 'WORDS = ["one", "two", "three", "four", "five", "six"]',
    "backends/b.py": 'WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}',
    "backends/c.py": 'WORDS = set("one two three four five six".split())',
    "backends/d.py": 'WORDS = (("one", 1), ("two", 2), ("three", 3), ("four", 4), ("five", 5), ("six", 6))',
    "backends/e.py": 'def f(x):\n    return x in ("one", "two", "three", "four") or x == "five" or x == "six"',
}
NO_COPIES = {
    "harness/a.cc": 'const char* kFew[] = {"one", "two", "three", "four", "five"};',
    "harness/b.cc": 'const char* kOthers[] = {"one", "two", "three", "four", "five", "six", "x", "y", "z"};',
    "harness/c.cc": '// {"one", "two", "three", "four", "five", "six"}',
    "harness/d.cc": 'const char* kSame[] = {"one", "one", "one", "two", "two", "two", "three"};',
    "backends/a.py": '"""one two three four five six"""\nFEW = ["one", "two", "three"]',
}


def make_tree(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return pathlib.Path(folder)


def check_one(file, line):
    with tempfile.TemporaryDirectory() as folder:
        return check_layers.check_tree(make_tree(folder, {file: "#pragma once\n" + line + "\n"}))


def circles_of(includes, units=None, rooms=None):
    with tempfile.TemporaryDirectory() as folder:
        files = {file: f'#include "{target}"\n' for file, target in includes.items()}
        return check_layers.check_circles(make_tree(folder, files), units or {}, rooms or {})


def copies_of(files, allowed=None):
    return word_lists.check({"home.cc": HOME, **files}, {"numbers": ["home.cc"]}, allowed or {})


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


class Circles(unittest.TestCase):
    def test_tree_has_none(self):
        self.assertEqual(check_layers.check_circles(ROOT), [])

    def test_planted_circles_are_found(self):
        self.assertEqual(
            circles_of(UNITS_IN_A_CIRCLE), ["circle of units: harness/run/a harness/run/b harness/run/c"]
        )
        self.assertEqual(circles_of(ROOMS_IN_A_CIRCLE), ["circle of rooms: harness/num harness/words"])
        self.assertEqual(circles_of(NO_CIRCLE), [])

    def test_what_is_allowed_has_to_be_there(self):
        allowed = {("harness/run/a", "harness/run/b", "harness/run/c"): "a reason"}
        self.assertEqual(circles_of(UNITS_IN_A_CIRCLE, allowed), [])
        self.assertEqual(len(circles_of(NO_CIRCLE, allowed)), 1)


class WordLists(unittest.TestCase):
    def test_tree_has_none_twice(self):
        self.assertEqual(check_layers.check_words(ROOT), [])

    def test_planted_copies_are_found(self):
        for file, text in COPIES.items():
            with self.subTest(file=file):
                violations = copies_of({file: text})
                self.assertEqual(len(violations), 1, violations)
                self.assertIn("6 words of 'numbers' a second time", violations[0])

    def test_choices_and_comments_are_none(self):
        self.assertEqual(copies_of(NO_COPIES), [])

    def test_what_is_allowed_has_to_be_there(self):
        allowed = {("harness/a.cc", "numbers"): "a reason"}
        self.assertEqual(copies_of({"harness/a.cc": COPIES["harness/a.cc"]}, allowed), [])
        self.assertEqual(len(copies_of({"harness/a.cc": NO_COPIES["harness/a.cc"]}, allowed)), 1)

    def test_a_home_without_words_is_an_error(self):
        self.assertEqual(len(word_lists.check({}, {"numbers": ["home.cc"]}, {})), 1)


# Types of one name: what meets in a program, and what does not.
TWICE = "namespace ulpscope {\nstruct One {\n  int a;\n};\n}  // namespace ulpscope\n"
HIDDEN = "namespace ulpscope {\nnamespace {\nclass One final : public Base {\n};\n}  // namespace\n}  // namespace ulpscope\n"


class TypesTwice(unittest.TestCase):
    def test_tree_has_none(self):
        violations, types = check_layers.check_types(ROOT)
        self.assertEqual(violations, [])
        self.assertGreater(types, 100)

    def test_second_types_are_found(self):
        for files in [("harness/a.h", "harness/b.cc"), ("harness/a.h", "backends/x/b.h"), ("tests/run/a.cc", "tests/run/b.cc")]:
            with self.subTest(files=files):
                violations, types = types_twice.check(dict.fromkeys(files, TWICE), check_layers.program_of)
                self.assertEqual(types, 2)
                self.assertEqual(len(violations), 1, violations)
                self.assertIn("a second type ulpscope::One", violations[0])

    def test_what_does_not_meet_is_none(self):
        for files in [
            {"harness/a.h": TWICE, "harness/b.cc": HIDDEN},
            {"harness/a.h": TWICE, "harness/b.h": "namespace ulpscope {\nstruct One;\nstruct Other {\n};\n}  // namespace ulpscope\n"},
            {"backends/x/a.h": TWICE, "backends/y/a.h": TWICE},
            {"harness/a.h": TWICE, "harness/b.h": TWICE.replace("ulpscope", "ulpscope::part")},
        ]:
            with self.subTest(files=sorted(files)):
                self.assertEqual(types_twice.check(files, check_layers.program_of)[0], [])


# A header, what uses its type, and whether it may: alone, through another header, by a declaration of its own, in a comment.
HEADER = {"harness/model/a.h": TWICE.replace("One", "TwoWords"), "harness/model/b.h": '#include "harness/model/a.h"\n#include <map>\n'}
USES = {
    "TwoWords x;": False,
    '#include "harness/model/a.h"\nTwoWords x;': True,
    '#include "harness/model/b.h"\nTwoWords x;': True,
    "class TwoWords;\nTwoWords* x;": True,
    "// TwoWords\nconst char* x = \"TwoWords\";": True,
    "std::map<int, int> x;": False,
    "#include <map>\nstd::map<int, int> x;": True,
    '#include "harness/model/b.h"\nstd::map<int, int> x;': True,
}


class NamesReached(unittest.TestCase):
    def test_the_tree_reaches_what_it_uses(self):
        violations, uses = check_layers.check_names(ROOT)
        self.assertEqual(violations, [])
        self.assertGreater(uses, 3000)

    def test_what_is_not_reached_is_found(self):
        for text, may in USES.items():
            with self.subTest(text=text):
                violations, _ = names_reached.check({**HEADER, "harness/judge/c.cc": text}, check_layers.program_of)
                self.assertEqual(len(violations), 0 if may else 1, violations)

    def test_another_programs_type_is_none(self):
        files = {"backends/x/a.h": HEADER["harness/model/a.h"], "backends/y/c.cc": "TwoWords x;", "backends/x/c.cc": "TwoWords x;"}
        self.assertEqual([each.partition(":")[0] for each in names_reached.check(files, check_layers.program_of)[0]], ["backends/x/c.cc"])


if __name__ == "__main__":
    unittest.main()
