# Descriptions of steps hold for what they describe and for nothing else: the emulator's faults are found again from its numbers alone.
"""usage: test_recompute.py"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    ml_dtypes = None
else:
    import boxes
    import described
    import emulator
    import plans
    from arithmetic import VIEWS
    from emulator import Plan
    from test_programs import data, programs, step
    from tools import store


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Boxes(unittest.TestCase):
    def test_a_sum_in_any_order_lies_inside_and_a_bfloat16_sum_does_not(self):
        rng = np.random.default_rng(1)
        a, b = (store(rng.standard_normal(shape), "float32").astype(np.float64) for shape in ((8, 64), (64, 8)))
        box = boxes.dot(boxes.box(a), boxes.box(b))
        honest = (a[:, :, None] * b[None]).astype(np.float32)
        for order in (range(64), range(63, -1, -1), rng.permutation(64)):
            total = np.zeros((8, 8), np.float32)
            for k in order:
                total = total + honest[:, k]
            self.assertEqual(boxes.count(box, total).holds, 64)
        self.assertLess(boxes.count(box, store(box.lo, "bfloat16")).holds, 8)

    def test_fused_is_rounded_once(self):
        a, b, c = (np.array([x], np.float32) for x in (1 + 2**-12, 1 + 2**-12, -1 - 2**-11))
        self.assertEqual(boxes.count(boxes.fused(boxes.box(a), boxes.box(b), boxes.box(c)), np.array([2**-24])).holds, 1)
        self.assertEqual(boxes.count(boxes.box(a) * boxes.box(b) + boxes.box(c), np.array([2**-24])).holds, 0)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Descriptions(unittest.TestCase):
    def described(self, program, plan):
        inputs = data(program)
        values = emulator.run(program.steps, inputs, plan)
        one = described.Program(program.steps, inputs, {each.name: values[each.name].array() for each in program.steps})
        return one, one.describe(), {row["value"]: row for row in emulator.truth(program.steps, inputs, plan)}

    def test_the_emulators_faults_are_found_again(self):
        steps = faults = 0
        for program in programs()[:8]:
            for backend in ("honest", "reversed", "unrounded", "kernel", "contract"):
                plan = plans.plan(backend, program.name, program.steps, program.dtypes())
                one, found, truth = self.described(program, plan)
                for each in program.steps:
                    if each.op in VIEWS:
                        continue
                    reads = {name: plan.reads.get((each.name, name), "stored") for name in dict.fromkeys(x for x in each.of if isinstance(x, str))}
                    if any(word == "contracted" and one.dtype(each) != "float32" for word in reads.values()):
                        continue
                    steps += 1
                    place = (program.name, backend, each.name)
                    self.assertIn(reads, [description.reads for description, _ in found[each.name]], place)
                    if any(use["visible"] and use["as"] != "stored" for use in truth[each.name]["reads"]) and one.plain[each.name][1].sharp > 8:
                        faults += 1
                        least = found[each.name][0][0]
                        self.assertNotEqual(least, described.Description(dict.fromkeys(reads, "stored")), place)
        self.assertGreater(steps, 120)
        self.assertGreater(faults, 5)

    def test_inside_an_op(self):
        rng = np.random.default_rng(9)
        x = store(rng.standard_normal((8, 32)), "bfloat16")
        for op, site, attrs in (("silu", "sigmoid", {}), ("softmax", "exp_in_numerator", {"dim": 1}), ("gelu", "erf", {}),
                                ("layer_norm", "rstd", {"normalized_shape": [32]})):
            with self.subTest(op):
                steps = [step("y", op, "x", **attrs)]
                values = emulator.run(steps, {"x": x}, Plan(inner={"y": {site: "bfloat16"}}))
                one = described.Program(steps, {"x": x}, {"y": values["y"].array()})
                held = [description for description, _ in one.describe()["y"]]
                self.assertTrue(any(description.rounded == (site, ) for description in held), list(map(str, held[:3])))
                self.assertFalse(any(not description.rounded for description in held))


if __name__ == "__main__":
    unittest.main()
