# Every code of every 8-bit float, and the rounding into each, against ml_dtypes: through the SDK's glue.
"""usage: test_float8.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../backends/python"))

import driver
from driver import Adapter, Tensor, float32, step
from ulpscope_adapter.dtypes import DTYPES

try:
    import ml_dtypes
    import numpy
except ImportError:
    ml_dtypes = None

BIN = os.path.join(os.path.dirname(__file__), "../../build/release/bin")
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    BIN = sys.argv.pop(1)
OPENBLAS = os.path.join(BIN, "ulpscope-openblas")
FLOAT8 = [name for name in DTYPES if name.startswith("float8_")]
for name in FLOAT8:  # travels as codes
    driver.ITEM[name] = (DTYPES[name]["safetensors"], "B")
    driver.NAME[DTYPES[name]["safetensors"]] = name


@unittest.skipUnless(ml_dtypes and os.path.exists(OPENBLAS), "needs ml_dtypes and the OpenBLAS adapter")
class Float8(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.glue = Adapter(OPENBLAS, "openblas")

    @classmethod
    def tearDownClass(cls):
        cls.glue.close()

    def cast(self, tensor, dtype):
        reply = self.glue.run({"a": tensor}, [step("cast", "a", name="c", dtype=dtype)], ["c"])
        self.assertEqual(reply.kind, "completed", reply)
        return reply.tensors["c"]

    def same(self, seen, reference):
        """Same bits, but for the bits of NaNs."""
        nan = numpy.isnan(reference.astype("float32"))
        self.assertTrue((numpy.isnan(seen.astype("float32")) == nan).all())
        unsigned = f"uint{8 * reference.itemsize}"
        seen, reference = seen[~nan].view(unsigned), reference[~nan].view(unsigned)
        self.assertEqual(numpy.flatnonzero(seen != reference).tolist(), [])
        return len(reference)

    def test_all_256_codes(self):
        for dtype in FLOAT8:
            codes = list(range(256))
            reference = numpy.array(codes, "uint8").view(getattr(ml_dtypes, dtype)).astype("float32")
            wide = self.cast(Tensor(dtype, [256], codes), "float32")
            numbers = self.same(numpy.array(wide.values, "float32"), reference)
            self.assertGreaterEqual(numbers, 248, dtype)
            # And back: the values that were read give their codes again.
            again = self.cast(wide, dtype)
            self.same(numpy.array(again.values, "uint8").view(getattr(ml_dtypes, dtype)),
                      reference.astype(getattr(ml_dtypes, dtype)))

    def test_rounding(self):
        draw = random.Random(3)
        values = [float32(draw.gauss(0, 1) * 2.0**draw.randint(-14, 18)) for _ in range(20000)]
        # Every half-way point between neighbours, and zeros.
        for dtype in FLOAT8:
            finite = numpy.arange(256, dtype="uint8").view(getattr(ml_dtypes, dtype)).astype("float32")
            finite = numpy.sort(finite[numpy.isfinite(finite)])
            values += [float(value) for value in (finite[1:] + finite[:-1]) / 2]
        values += [0.0, -0.0, 1e-30, -1e-30]
        for dtype in FLOAT8:
            seen = self.cast(Tensor("float32", [len(values)], values), dtype)
            reference = numpy.array(values, "float32").astype(getattr(ml_dtypes, dtype))
            numbers = self.same(numpy.array(seen.values, "uint8").view(reference.dtype), reference)
            self.assertGreater(numbers, 10000, dtype)


if __name__ == "__main__":
    unittest.main()
