#!/usr/bin/env python3
"""Every adapter of this tree passes the conformance test that its author is given: `ulpscope doctor --adapter`.

Which faults that test finds is tested in tests/conform/adapter_check_test.cc.
"""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import BIN, ROOT, ulpscope  # noqa: E402

# Dtypes for a compiler, to which each op that a dtype of eight bits refuses is a compilation of its own: one dtype of each width. The
# adapters that compile nothing are tested with all.
COMPILED = "float32,bfloat16,float8_e5m2"


class Doctor(unittest.TestCase):
    def check(self, adapter, *arguments, at_least=40):
        """Runs it; returns what it printed."""
        if not pathlib.Path(adapter).exists():
            self.skipTest(f"{adapter} is not built")
        done = ulpscope("doctor", "--adapter", adapter, *arguments, timeout=900)
        closing = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", done.stdout)
        self.assertIsNotNone(closing, done.stdout + done.stderr)
        passed, failed, _ = map(int, closing.groups())
        self.assertEqual((done.returncode, failed), (0, 0), done.stdout + done.stderr)
        self.assertGreaterEqual(passed, at_least, done.stdout)
        return done.stdout

    def test_openblas(self):
        out = self.check(BIN / "ulpscope-openblas")
        self.assertRegex(out, r"ok +run.exact float32 +3\d ops")

    def test_recorded_has_nothing_to_compute(self):
        adapter = [BIN / "ulpscope-recorded", ROOT / "backends/recorded/data"]
        done = ulpscope("doctor", "--adapter", *adapter)
        # It answers the rows that it holds and no others: what it claims cannot be tried on small numbers.
        self.assertIn("FAIL  run.claimed", done.stdout)

    def test_torch(self):
        out = self.check(BIN / "ulpscope-torch", "-b", "torch-eager")
        self.assertRegex(out, r"ok +run.exact bfloat16 +1\d\d ops")

    def test_torch_traced(self):
        self.check(BIN / "ulpscope-torch", "-b", "torch-traced")

    def test_torch_compile(self):
        out = self.check(ROOT / "backends/torch_compile/adapter.py", "-b", "torch-aot-eager", "--dtype", COMPILED)
        self.assertRegex(out, r"ok +run.exact float8_e5m2 +\d+ ops, \d+ refused")
        self.assertRegex(out, r"skip +run.exact float8_e4m3fn +claimed, and not asked for")

    def test_jax(self):
        self.check(ROOT / "backends/jax/adapter.py", "-b", "jax-eager", "--dtype", COMPILED)

    def test_a_dtype_that_is_none(self):
        done = ulpscope("doctor", "--adapter", BIN / "ulpscope-openblas", "--dtype", "float32,int8")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"--dtype is no floating dtype.*(.|\n)*'int8'")

    def test_the_example(self):
        self.check(ROOT / "backends/python/example_numpy.py")


if __name__ == "__main__":
    unittest.main()
