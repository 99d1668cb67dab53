# The held-out kernels, h_ and a_, run on all sorts of data; the honest ones keep a bound that is proved, the others do not stay with them.
"""usage: test_heldout.py"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../backends/python")]

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    ml_dtypes = None
else:
    import classes
    import kernels
    import ops
    from products import exact_sum
    from rounding import STORES
    from test_kernels import calls

# Never so much worse than float32 on the data of this test.
FAINT = {"h_fixed40", "h_gelu_short_erf", "h_in_p23", "h_minus_zero", "h_prod_p22_rz", "h_silu_half_tanh"}
FAINT_APART = {"a_one_ulp_up"}
# How many times the error of the worst honest result shows: float32 sums in orders that are not listed come to five times it.
SHOWN = 7.0
# Times the error of the worst honest chain; a chain has no bound of its own here.
CHAIN = 16.0


def outside(y, op, call):
    """The largest error of a sum of products in units of what K float32 additions and one store may do."""
    a, b, bias, shape = ops.PRODUCTS[op](call)
    with np.errstate(all="ignore"):
        head, tail = exact_sum(a, b)
        sizes = np.abs(a) @ np.abs(b)
        if op == "mean":
            head, tail, sizes = head / a.shape[1], tail / a.shape[1], sizes / a.shape[1]
        if bias is not None:
            head, sizes = head + bias, sizes + np.abs(bias)
        head, tail, sizes = head.reshape(shape), tail.reshape(shape), sizes.reshape(shape)
        _, bits, smallest = STORES[call.dtype]
        # Every product, partial sum, division and addition of a bias may be off by half an ulp, or half the least subnormal.
        bound = (a.shape[1] + 4) * (sizes * 2.0**-24 + 2.0**-149)
        bound = bound * (1 + 2.0**-bits) + np.maximum(np.abs(head) * 2.0**-bits, smallest * 2.0**-bits)
        result = y.astype(np.float64)
        error = np.abs((result - head) - tail)
        safe = sizes < 2.0**(15 if call.dtype == "float16" else 126)  # no partial sum overflows
    return (error / bound)[safe].max(initial=0.0), np.isfinite(result[safe]).all()


def special_as_some(y, honest):
    """Whether NaN and infinities stand where some honest result has them."""
    mine = classes.specials(y)
    return np.any([classes.specials(other) == mine for other in honest], axis=0).all()


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class HeldOut(unittest.TestCase):
    tables, prefix, least, faint = "HELD_OUT", "h", (120, 30), FAINT

    def table(self):
        return kernels.load(getattr(kernels, self.tables))

    def test_names_and_numbers(self):
        table = self.table()
        self.assertGreaterEqual(len(table), self.least[0])
        self.assertGreaterEqual(sum(kernel.kind == "honest" for kernel in table.values()), self.least[1])
        for others in {"FIRST", "HELD_OUT", "APART"} - {self.tables}:
            self.assertFalse(set(table) & set(kernels.load(getattr(kernels, others))))
        for kernel in table.values():
            self.assertRegex(kernel.name, rf"^{self.prefix}_[a-z0-9_]*$")
            self.assertNotIn("__", kernel.name)
            self.assertIn(kernel.kind, ("honest", "narrow", "wrong"))
        self.assertEqual({kernel.op for kernel in table.values()}, {*ops.PRODUCTS, *ops.CHAINS})

    def test_honest_ones_keep_a_bound_and_the_rest_show(self):
        checked, known, faint = 0, {}, set()
        for kernel in self.table().values():
            seen = set()
            for key, call in calls(kernel):
                y = kernel.run(call)
                if key not in known:
                    known[key] = ops.honest_results(kernel.op, call)
                honest, exact = known[key]
                self.assertEqual(y.dtype, np.dtype(STORES[call.dtype][0]), kernel.name)
                self.assertEqual(y.shape, honest[0].shape, kernel.name)
                checked += 1
                if kernel.kind == "honest" and kernel.op in ops.PRODUCTS:
                    error, finite = outside(y, kernel.op, call)
                    self.assertLessEqual(error, 1.0, f"{kernel.name} {key}")
                    self.assertTrue(finite, f"{kernel.name} {key}")
                    continue
                facts = classes.compare(y, honest, *exact)
                if kernel.kind == "honest":
                    self.assertLessEqual(max(facts["rms"], facts["max"]), CHAIN, f"{kernel.name} {key}")
                    self.assertTrue(special_as_some(y, honest), f"{kernel.name} {key}")
                    continue
                far = not 0 < max(facts["rms"], facts["max"]) < SHOWN
                seen.add(facts["class"] == classes.VISIBLE and (far or not special_as_some(y, honest)))
                if True in seen:
                    self.assertTrue(classes.same_bits(y, kernel.run(call)), f"{kernel.name} is not the same again")
                    break
            if kernel.kind != "honest" and True not in seen:
                faint.add(kernel.name)
        self.assertEqual(faint, self.faint)
        self.assertGreater(checked, 1000)


class Apart(HeldOut):
    tables, prefix, least, faint = "APART", "a", (170, 55), FAINT_APART


if __name__ == "__main__":
    unittest.main()
