#!/usr/bin/env python3
"""The findings on ten programs on the emulator's backends, word for word: tests/golden/sentences.txt, to be read aloud.

The emulator (emulator.py) shares no line with the oracle, and what each backend does there is known (plans.py), so that a
sentence can be held against the truth by whoever reads it. ULPSCOPE_REGENERATE_GOLDEN=1 rewrites the file, and the test fails all
the same.
"""
import os
import pathlib
import sys
import tempfile
import time
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generate  # noqa: E402
import plans  # noqa: E402
import score  # noqa: E402

GOLDEN = HERE.parent / "golden/sentences.txt"
SEED = 31337
PROGRAMS = (107, 30, 154, 82, 168, 143, 12, 23, 73, 169)  # those whose sentences are least like each other, of 222 programs
FEWEST = 50


def groups(most=5):
    """Those that are compared with each other, as score.py has them."""
    faults = list(plans.FAULTS)
    return [list(plans.HONEST), *(faults[i:i + most] for i in range(0, len(faults), most))]


def sentences(programs, folder):
    """Program -> lines, in the order in which they are reported."""
    said = {program.name: [] for program in programs}
    options = types.SimpleNamespace(jobs=2, seed=SEED, until=time.monotonic() + 600, batch_minutes=10)
    for number, group in enumerate(groups()):
        report, why = score.run_batch(programs, group, folder / f"group{number}", options)
        if report is None:
            raise AssertionError(why)
        for each in report["divergences"]:
            also = f" The same for {', '.join(f'`{name}`' for name in each['also'])}." if each["also"] else ""
            line = f"{each['kind']}: {each['sentence']}{also}"
            said[plans.program_of(each["case"])].append(line.replace(f":keep={folder / f'group{number}' / 'keep'}", ""))
    return said


class Sentences(unittest.TestCase):
    def test_word_for_word(self):
        programs = [generate.program(SEED, index) for index in PROGRAMS]
        with tempfile.TemporaryDirectory(prefix="sentences-") as folder:
            said = sentences(programs, pathlib.Path(folder).resolve())
        text = ""
        for program in programs:
            steps = [f"    {step.name} = {step.op}({', '.join(map(str, step.of))})" for step in program.steps]
            text += "\n".join([program.name, *steps, *(f"  {line}" for line in said[program.name])]) + "\n\n"
        found = sum(map(len, said.values()))
        self.assertGreaterEqual(found, FEWEST, "too few sentences to be worth reading")
        if os.environ.get("ULPSCOPE_REGENERATE_GOLDEN"):
            GOLDEN.write_text(text, encoding="utf-8")
            self.fail(f"rewrote {GOLDEN} with {found} sentences; read the difference before it is committed")
        self.maxDiff = None
        self.assertEqual(text, GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
