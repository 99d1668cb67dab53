"""The blocks of cases/blocks on real stacks: every step recomputed from its own operands, and the report's findings on it.

usage: blocks_on_stacks.py [unittest's arguments]

BLOCKS_RUN and BLOCKS_INPUTS name a run folder and the folder of keep.py in place of runs of its own; ULPSCOPE_BIN the program.
"""

import json
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from programs import ROOT, ulpscope  # noqa: E402

try:
    import ml_dtypes
    import accusations
    import recompute
    from arithmetic import POINTWISE
    from described import Description
    from truth_of_blocks import BACKENDS, CASES, FLUSHED, NAMELESS, OPENING_CHANGES, TRUTH, truth
except ImportError:
    ml_dtypes = None


def _run(*arguments):
    done = ulpscope("run", *arguments, "--no-trace", "-q", timeout=3000, beside={"ULPSCOPE_PYTHON": sys.executable})
    if done.returncode not in (0, 1, 5):  # 5: keep.py runs nothing, and says so
        raise RuntimeError(done.stderr[-2000:])


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Blocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="blocks-", ignore_cleanup_errors=True)
        scratch = pathlib.Path(cls.scratch.name)
        inputs, folder = os.environ.get("BLOCKS_INPUTS"), os.environ.get("BLOCKS_RUN")
        if not inputs:
            inputs = scratch / "inputs"
            inputs.mkdir()
            _run(ROOT / "cases/blocks", "--adapter", HERE / "keep.py", "-b", f"keep:keep={inputs}", "-o", scratch / "kept")
        if not folder:
            folder = scratch / "run"
            _run(ROOT / "cases/blocks", "-b", ",".join(BACKENDS), "-o", folder)
        cls.files, cls.all = recompute.results(folder), {}
        cls.report = json.loads((pathlib.Path(folder) / "report.json").read_text())
        for case in CASES:
            for backend in BACKENDS:
                if (case, backend) in cls.files:
                    cls.all[(case, backend)] = recompute.Recomputed(cls.files, inputs, case, backend)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_block_ran(self):
        self.assertEqual(set(self.all), {(case, backend) for case in CASES for backend in BACKENDS})

    def test_each_step_is_what_the_table_says(self):
        """N of N; and where the table has more than "all as stored", that does not hold."""
        steps = listed = 0
        for (case, backend), one in self.all.items():
            for value in one.found:
                with self.subTest(case=case, backend=backend, value=value):
                    step, description = one.program.steps[value], truth(case, backend, value)
                    count = one.program.hold(step, description)
                    self.assertEqual(count.holds, count.of, str(description))
                    steps += 1
                    if description != Description():
                        listed += 1
                        self.assertLess(one.program.plain[value][1].holds, count.of)
        self.assertGreater(steps, 380)
        self.assertEqual(listed, sum(len(names) for rows in TRUTH.values() for names in rows))

    def test_opening(self):
        changed = {key for key, one in self.all.items() if not all(one.kept_bits.values())}
        self.assertEqual(changed, OPENING_CHANGES)

    def test_what_the_report_says(self):
        """The true reading of each operand is among those named, and nothing honest is accused."""
        results = {(result["id"], result["backend"]): result for result in self.report["results"]}
        looked = 0
        for (case, backend), one in self.all.items():
            result = results[(case, backend)]
            said = self.steps_said(result)
            if (case, backend) in OPENING_CHANGES:
                self.assertIs((result.get("opened") or {}).get("kept"), False, (case, backend))
                continue
            for value in one.found:
                with self.subTest(case=case, backend=backend, value=value):
                    looked += self.look((case, backend), one, said.get(value), truth(case, backend, value))
        self.assertGreater(looked, 200)

    def look(self, where, one, said, description):
        """One step; how many uses were looked at."""
        self.assertIsNotNone(said, "the report does not tell of it")
        kind, facets = said["classification"]["kind"], said["classification"].get("facets") or {}
        step = one.program.steps[said["value"]]
        if kind != "unmodelled":
            acc = [word.removesuffix("+ftz").removesuffix("+daz") for word in facets.get("acc") or []]
            # For a pointwise op these are its elementary steps, which may well be narrow.
            if acc and (step.op not in POINTWISE or not description.rounded):
                self.assertFalse(all(map(accusations.narrow, acc)), f"{step.op}: narrow sums or steps are named: {acc}")
            mid = set(facets.get("mid") or [])
            if mid and not description.rounded:
                self.assertTrue(mid & {"none", "float32"}, f"{step.op}: a rounding is named: {sorted(mid)}")
        looked, flushed = 0, set()
        for use in said.get("reads") or []:
            words, name = set(use.get("as") or []), use["operand"]
            if not words:
                continue
            if name == said["value"]:  # its own results
                self.assertEqual(words, {"flushed"})
                flushed.add(name)
                continue
            word = description.reads.get(name, "stored")
            # Reads that hold by the numbers alone may be named too.
            also = {each.reads.get(name, "stored") for each, _ in one.found[said["value"]]}
            right = {word} | (accusations.CONTRACTED if "contracted" in (also | {word}) else set())
            self.assertTrue(words & right, f"{step.op}: {name} is read {word}, the report says {sorted(words)}")
            looked += 1
        self.assertEqual(bool(flushed), (*where, said["value"]) in FLUSHED, "flushed results")
        return looked

    def test_every_step_has_a_name(self):
        named, nameless = 0, set()
        for result in self.report["results"]:
            for value, step in self.steps_said(result).items():
                named += 1
                if step["classification"]["kind"] == "unmodelled" and (result["id"], result["backend"]) not in OPENING_CHANGES:
                    nameless.add((result["id"], result["backend"], value))
        self.assertGreater(named, 300)
        self.assertEqual(nameless, NAMELESS)

    def steps_said(self, result):
        """step -> the findings on it; a program of one step is reported as its value."""
        said = accusations.said_of(result)
        return said or {name: {"value": name, "classification": {"kind": value["classification"], "facets": value["facets"]}}
                        for name, value in result["values"].items()}


if __name__ == "__main__":
    unittest.main()
