#!/usr/bin/env python3
"""Rules that are switched off and numbers that are scaled: the mechanism always, each of them with ULPSCOPE_NIGHTLY=1."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import mutants

PROBE = r'''
#include <cstdio>
#include "harness/judge/mutants.h"
namespace ulpscope {
ULPSCOPE_RULE_NUMBER(double, kShare, 0.75);
ULPSCOPE_RULE_NUMBER(int, kBits, 24);
}
int main() {
#ifndef ULPSCOPE_MUTANTS
  static_assert(ulpscope::kShare == 0.75 && ulpscope::kBits == 24 && !ulpscope::IsSwitchedOff("one-rule"));
#endif
  std::printf("%g %d %d %d\n", ulpscope::kShare, ulpscope::kBits, ulpscope::IsSwitchedOff("one-rule"),
              ulpscope::IsSwitchedOff("other-rule"));
}
'''


class Mutants(unittest.TestCase):
    def test_each_number_that_a_rule_names_is_there(self):
        known = set(mutants.numbers())
        self.assertEqual(len(known), len(mutants.numbers()))
        for rule in mutants.rules():
            self.assertLessEqual(set(rule.numbers), known, rule.name)

    def test_a_rule_without_a_test_is_a_survivor_with_a_reason_and_no_other_is(self):
        rules, survivors = mutants.rules(), mutants.survivors()
        self.assertEqual({f"rule {rule.name}" for rule in rules if not rule.test},
                         {mutant for mutant in survivors if mutant.startswith("rule ")})
        every = set(mutants.mutants())
        for mutant, reason in survivors.items():
            self.assertIn(mutant, every)
            self.assertGreater(len(reason), 10, mutant)

    def test_one_mutant_changes_one_thing_and_only_in_a_build_for_it(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder, "probe.cc"), pathlib.Path(folder, "probe")
            source.write_text(PROBE, encoding="utf-8")

            def says(mutant, *flags):
                subprocess.run(["c++", "-std=c++20", f"-I{mutants.ROOT}", *flags, str(source), "-o", str(program)], check=True)
                environment = {**os.environ, "ULPSCOPE_MUTANT": mutant}
                return subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout.split()

            plain = ["0.75", "24", "0", "0"]
            self.assertEqual(says("rule one-rule"), plain)
            self.assertEqual(says("", "-DULPSCOPE_MUTANTS"), plain)
            self.assertEqual(says("rule one-rule", "-DULPSCOPE_MUTANTS"), ["0.75", "24", "1", "0"])
            self.assertEqual(says("number kShare 2", "-DULPSCOPE_MUTANTS"), ["1.5", "24", "0", "0"])
            self.assertEqual(says("number kBits 0.5", "-DULPSCOPE_MUTANTS"), ["0.75", "12", "0", "0"])

    @unittest.skipUnless(os.environ.get("ULPSCOPE_NIGHTLY") == "1", "each night: an hour")
    def test_each_mutant_is_noticed_or_listed(self):
        ran = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("run")], check=False)
        self.assertEqual(ran.returncode, 0)


if __name__ == "__main__":
    unittest.main()
