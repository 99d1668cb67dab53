"""Random programs with a false finding once: a use or sum that was right was named, or the planted one was excluded."""

import pathlib
import tempfile
import time
import types
import unittest

import generate
import plans
import score
from accusations import GATES

# seed -> programs of generate.py that it gives: the finding, and the truth.
WRONG = {
    6303: (77, ),  # gelu of large bfloat16 numbers: "steps inside in bfloat16", of a form whose step inside keeps few bits
    6505: (77, ),  # an honest function whose slack holds a step in 20 bits
    6606: (53, ),  # "as if tanh inside were rounded to 23 bits" of an honest gelu
    7001: (42, ),  # split_k of a softmax's four totals, where float16 sums in an order that is not tried do it
    7003: (74, ),  # "v10 unrounded", after narrow sums guessed for it; it is read as bfloat16
    7004: (41, ),  # "v7 as bfloat16" in v7 - v8 of v8 = bfloat16(v7), where v8 is read before its rounding
    7006: (11, ),  # a norm's sums "in bfloat16" by the quarter of its results that no sum changes; they are in float16
    7009: (75, ),  # "v7 unrounded", where v7 as it is stored gives the same bits
    9103: (181, ),  # four sums in float16 "rounded to 10 bits": the last bit of each was zero by chance
    9401: (52, ),  # a softmax read "as tf32", most of whose numbers are below the range of float16, in which it is read
    9402: (155, ),  # two float32 sums that were matched in other orders told as "sums in float32" and "in float32 or wider"
    9404: (90, ),  # a norm with each step in bfloat16 told as narrow sums: the set of its steps was not among those tried
    9408: (5, 8),  # "p22" of a gelu whose other results are its operand or zero; sums in float32 "and in float32 or wider"
    9409: (74, ),  # v8 "unrounded or bfloat16" in v9 - v8 of zeros, where v9 is read before its cast
    9414: (56, 138),  # of eight results, and of a gelu whose forms took every place, "stored" where an operand is read unrounded
    9417: (104, 120),  # four sums told by two narrow formats at once; a gelu that errs by its own steps "unrounded"
}


class OnceWrong(unittest.TestCase):
    def test_is_right(self):
        for seed, indices in WRONG.items():
            programs = [generate.program(seed, index) for index in indices]
            options = types.SimpleNamespace(jobs=2, seed=seed, until=time.monotonic() + 600, batch_minutes=10)
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                report, why = score.run_batch(programs, list(plans.BACKENDS), pathlib.Path(folder), options)
                self.assertIsNotNone(report, why)
                rows = score.score_batch(programs, list(plans.BACKENDS), pathlib.Path(folder), report)
                self.assertEqual(len(rows), len(programs) * len(plans.BACKENDS))
                wrong = [(row["program"], row["backend"], each["place"], each["detail"]) for row in rows
                         for each in row["findings"] if each["what"] in GATES]
                self.assertFalse(wrong)
                self.assertFalse(score.false_divergences(report, rows))


if __name__ == "__main__":
    unittest.main()
