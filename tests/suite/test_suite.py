#!/usr/bin/env python3
"""ci/suite on every installed backend: it conforms, prints its matrix, accounts for every difference of bits, and leaves nothing out."""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report  # noqa: E402
from programs import ulpscope  # noqa: E402
from suite_run import suite_run  # noqa: E402

EVERYWHERE = {"torch-eager", "torch-traced", "torch-aot-eager", "torch-inductor", "jax", "jax-eager", "openblas"}


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ran = suite_run()
        if not (cls.ran.path / "report.json").is_file():
            raise AssertionError(cls.ran.stdout[-3000:] + cls.ran.stderr[-3000:])
        cls.report = report.load(cls.ran.path)

    def test_it_conforms_and_prints_its_matrix(self):
        self.assertEqual(self.ran.code, 0, self.ran.stdout[-3000:] + self.ran.stderr[-3000:])
        self.assertRegex(self.ran.stdout, r"(?m)^seeds/matmul_out/as_posted\n +product +raises")
        self.assertRegex(self.ran.stdout, r"(?m)^\d+ PASS ")

    def test_every_difference_is_accounted_for(self):
        counted = re.search(r"accounts: (\d+) values of 1 run folder read; (\d+) pairs of groups differ in bits; (\d+)", self.ran.stderr)
        self.assertGreater(int(counted[1]), 500)
        self.assertGreater(int(counted[2]), 100)
        self.assertEqual(int(counted[3]), 0)

    def test_every_case_of_the_tier_ran_on_every_installed_backend(self):
        listed = {each["id"] for each in json.loads(ulpscope("list", "cases", "--json").stdout) if {"smoke", "ci"} & set(each["tags"].replace(",", " ").split())}
        ran = {(result["id"], result["backend"]) for result in self.report["results"]}
        backends = {backend for _, backend in ran}
        self.assertGreater(len(listed), 80)
        self.assertEqual({case for case, _ in ran}, listed)
        self.assertEqual(ran, {(case, backend) for case in listed for backend in backends})
        self.assertEqual(EVERYWHERE - backends, set())


if __name__ == "__main__":
    unittest.main()
