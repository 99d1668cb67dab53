# The adversary's roundings and sums against integers and fractions, which share nothing with them.
"""usage: test_roundings.py"""

import fractions
import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    ml_dtypes = None
else:
    import products
    import rounding

Fraction = fractions.Fraction


def reference(value, bits, lowest, mode):
    """`value` (a Fraction) in a format of `bits` bits whose smallest quantum is 2^lowest; no upper limit."""
    if value == 0:
        return value
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2)**exponent:
        exponent -= 1
    quantum = Fraction(2)**max(exponent - bits + 1, lowest)
    whole, rest = divmod(size, quantum)
    if mode == "rne":
        whole += 2 * rest > quantum or (2 * rest == quantum and whole % 2 == 1)
    elif mode == "rna":
        whole += 2 * rest >= quantum
    return math.copysign(1, value) * whole * quantum


def numbers(count, rng):
    """Doubles that lie on, near and half-way between the values of narrow formats, at many sizes."""
    for _ in range(count):
        bits = rng.choice([4, 8, 11, 16, 24, 53])
        value = Fraction(rng.getrandbits(bits) | 1) * Fraction(2)**rng.randint(-30, 20)
        value += Fraction(rng.choice([-1, 0, 1])) * Fraction(2)**rng.randint(-70, -20)
        yield rng.choice([-1.0, 1.0]) * float(value)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Roundings(unittest.TestCase):
    def check(self, name, values, bits, lowest, mode):
        rounded = rounding.rounding(name)(np.array(values))
        for value, got in zip(values, rounded):
            self.assertEqual(Fraction(float(got)), reference(Fraction(value), bits, lowest, mode), f"{name} of {value.hex()}")
        return len(values)

    def test_formats(self):
        rng, seen = random.Random(1), 0
        formats = {"float32": (24, -149, "rne"), "float32_rz": (24, -149, "rz"), "float32_rna": (24, -149, "rna"),
                   "bfloat16": (8, -133, "rne"),
                   "bfloat16_rz": (8, -133, "rz"), "bfloat16_rna": (8, -133, "rna"), "tf32": (11, -136, "rne"),
                   "tf32_rz": (11, -136, "rz"), "tf32_rna": (11, -136, "rna")}
        for name, (bits, lowest, mode) in formats.items():
            values = list(numbers(2000, rng))
            values += [math.ldexp(rng.getrandbits(30) | 1, lowest - rng.randint(0, 33)) for _ in range(500)]  # subnormals
            seen += self.check(name, values, bits, lowest, mode)
        for bits in range(4, 24):
            for mode in ("rne", "rz", "rna"):
                seen += self.check(f"p{bits}" + ("" if mode == "rne" else f"_{mode}"), list(numbers(200, rng)), bits, -1000,
                                   mode)
        small = [value for value in numbers(4000, rng) if abs(value) < 2.0**8]
        seen += self.check("float16", small, 11, -24, "rne") + self.check("float16_rz", small, 11, -24, "rz")
        seen += self.check("float16_rna", small, 11, -24, "rna")
        seen += self.check("e4m3", small, 4, -9, "rne") + self.check("e5m2", small, 3, -16, "rne")
        self.assertGreater(seen, 30_000)

    def test_overflow(self):
        big = np.array([1e300, -1e300, np.inf, 65520.0, 65519.0])
        self.assertEqual(rounding.rounding("float32")(big)[:3].tolist(), [np.inf, -np.inf, np.inf])
        self.assertEqual(rounding.rounding("float32_rz")(big)[:3].tolist(),
                         [2.0**128 - 2.0**104, -(2.0**128 - 2.0**104), np.inf])
        self.assertEqual(rounding.rounding("float16")(big)[3:].tolist(), [np.inf, 65504.0])
        self.assertEqual(rounding.rounding("e5m2_sat")(big)[0], 57344.0)
        self.assertTrue(np.isnan(rounding.rounding("e4m3")(big)[0]))
        self.assertEqual(rounding.rounding("bfloat16")(big)[0], np.inf)

    def test_stochastic(self):
        rounded = rounding.rounding("p4_sr")(np.full(4000, 1.03125))  # a quarter of the way from 1 to 1.125
        self.assertEqual(set(rounded.tolist()), {1.0, 1.125})
        self.assertAlmostEqual(float((rounded == 1.125).mean()), 0.25, delta=0.03)

    def test_sums_are_rounded_once(self):
        """Sums rounded to double in between differ in some of these cases; here none may."""
        rng, seen, twice = random.Random(2), 0, 0
        for name, bits in (("float32", 24), ("p12", 12), ("bfloat16", 8)):
            add = products.adder(name)
            for _ in range(3000):
                s = float(np.float32(rng.uniform(-4, 4)))
                t = float(np.float32(rng.uniform(-1, 1))) * float(np.float32(rng.uniform(-1, 1))) * 2.0**-rng.randint(0, 40)
                if rng.random() < 0.3:  # next to the middle between two neighbours
                    s = float(reference(Fraction(s), bits, -1000, "rz"))
                    half = 2.0**(math.frexp(s)[1] - 1 - bits) if s else 0.5
                    t = float(math.copysign(half, s) + math.ldexp(rng.choice([-1, 1]) * half, -40))
                whole = reference(Fraction(s) + Fraction(t), bits, -1000, "rne")
                self.assertEqual(Fraction(add(np.array([s]), np.array([t])).item()), whole, f"{name}: {s.hex()} + {t.hex()}")
                seen += 1
                twice += Fraction(rounding.rounding(name)(np.array([s + t])).item()) != whole
        self.assertEqual(seen, 9000)
        self.assertGreater(twice, 100)

    def test_exact_sum(self):
        rng = np.random.default_rng(3)
        a = (rng.standard_normal((5, 200)) * 2.0**rng.integers(-40, 40, (5, 200))).astype(np.float32)
        b = (rng.standard_normal((200, 4)) * 2.0**rng.integers(-40, 40, (200, 4))).astype(np.float32)
        got = products.product(a, b, products.Recipe(acc="exact"), "float32")
        for i in range(5):
            for j in range(4):
                whole = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j]))
                self.assertEqual(Fraction(float(got[i, j])), reference(whole, 24, -149, "rne"))

    def test_orders_take_every_product_once(self):
        for name, (indices, how) in products.ORDERS.items():
            for k in (1, 2, 3, 8, 63, 64, 65, 100, 300):
                taken = sorted(index for index in indices(k).ravel().tolist() if index >= 0)
                self.assertEqual(taken, list(range(k)), f"{name}, {k} terms")
                whole = products.product(np.ones((2, k), np.float32), np.ones((k, 3), np.float32), products.Recipe(order=name),
                                         "float32")
                self.assertTrue((whole == k).all(), f"{name}, {k} terms, {how}")

    def test_sequential_is_the_loop(self):
        rng = np.random.default_rng(4)
        a, b = rng.standard_normal((3, 50)).astype(np.float32), rng.standard_normal((50, 2)).astype(np.float32)
        narrow = ml_dtypes.bfloat16
        total = np.zeros((3, 2), np.float32)
        for k in range(50):
            total = total + a[:, k, None] * b[None, k]
        self.assertTrue((products.product(a, b, products.Recipe(prod="float32"), "float32") == total).all())
        rounded = products.product(a, b, products.Recipe(a="bfloat16", b="bfloat16", prod="float32"), "float32")
        total = np.zeros((3, 2), np.float32)
        for k in range(50):
            total = total + a[:, k, None].astype(narrow).astype(np.float32) * b[None, k].astype(narrow).astype(np.float32)
        self.assertTrue((rounded == total).all())


if __name__ == "__main__":
    unittest.main()
