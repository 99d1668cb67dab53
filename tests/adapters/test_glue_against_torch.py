# The SDK's glue (through the OpenBLAS adapter) against PyTorch itself: promotion of all dtypes, bits of arithmetic.
"""usage: test_glue_against_torch.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import math
import os
import random
import struct
import unittest

from driver import Adapter, Tensor, bfloat16, float32, step
from torch_common import BIN, BINARY

OPENBLAS = os.path.join(BIN, "ulpscope-openblas")
DTYPES = ["float64", "float32", "bfloat16", "float16", "int64", "int32", "bool"]
ROUNDING = {
    "float64": float,
    "float32": float32,
    "bfloat16": bfloat16,
    "float16": lambda value: struct.unpack("<e", struct.pack("<e", value))[0],
}


@unittest.skipUnless(os.path.exists(BINARY) and os.path.exists(OPENBLAS), "both adapters are needed")
class GlueAgainstTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.torch, cls.glue = Adapter(BINARY, "torch-eager"), Adapter(OPENBLAS, "openblas")

    @classmethod
    def tearDownClass(cls):
        cls.torch.close()
        cls.glue.close()

    def test_promotion_of_tensors_zero_dim_tensors_and_scalars(self):
        checked = 0
        for a in DTYPES:
            for b in DTYPES + [True, 3, 1.5]:
                for shape_a in ([2], []):
                    for shape_b in ([2], []) if isinstance(b, str) else (None,):
                        tensors = {"a": Tensor(a, shape_a, [1] * math.prod(shape_a))}
                        if isinstance(b, str):
                            tensors["b"] = Tensor(b, shape_b, [1] * math.prod(shape_b))
                        steps = [step("mul", "a", "b" if isinstance(b, str) else b, name="c")]
                        seen = [adapter.run(tensors, steps, ["c"]) for adapter in (self.torch, self.glue)]
                        self.assertEqual([reply.kind for reply in seen], ["completed"] * 2, (a, b, seen))
                        dtypes = [reply.tensors["c"].dtype for reply in seen]
                        self.assertEqual(dtypes[0], dtypes[1], (a, shape_a, b, shape_b))
                        checked += 1
        self.assertEqual(checked, 7 * 2 * (7 * 2 + 3))

    def test_arithmetic_has_the_same_bits(self):
        # PyTorch may compute 16-bit operands in float32 and round again, which is innocuous for these operations (24 >= 2 * 11 + 2):
        # rounding once must give the same bits.
        draw = random.Random(7)
        checked = 0
        for dtype, rounding in ROUNDING.items():
            a = [rounding(draw.gauss(0, 1) * 2.0 ** draw.randint(-6, 6)) for _ in range(4096)]
            b = [rounding(draw.gauss(0, 1) * 2.0 ** draw.randint(-6, 6)) for _ in range(4096)]
            tensors = {
                "a": Tensor(dtype, [64, 64], a),
                "b": Tensor(dtype, [64, 64], b),
                "p": Tensor(dtype, [64, 64], [abs(value) for value in a]),
            }
            steps = [step(op, "a", "b", name=op) for op in ("add", "sub", "mul", "div")]
            steps += [step("neg", "a", name="neg"), step("relu", "a", name="relu")]
            # float64 to 16 bits goes through float32 in PyTorch: rounded twice.
            narrow = () if dtype == "float64" else ("float16", "bfloat16")
            steps += [step("cast", "a", name=to, dtype=to) for to in ("float32", "float64", "int32", *narrow)]
            names = [entry["as"] for entry in steps]
            seen = [adapter.run(tensors, steps, names) for adapter in (self.torch, self.glue)]
            for name in names:
                torch, glue = (reply.tensors[name] for reply in seen)
                self.assertEqual((torch.dtype, torch.encode()), (glue.dtype, glue.encode()), (dtype, name))
                checked += len(torch.values)
        self.assertEqual(checked, 4096 * (4 * 9 + 2 * 3))

    def test_square_roots_are_correctly_rounded_by_glue(self):
        # Not compared with PyTorch: its vector library rounds some square roots of float32 and float64 wrongly. The C
        # library's is exact by IEEE 754, and going through binary64 is innocuous for all narrower formats.
        draw = random.Random(8)
        for dtype, rounding in ROUNDING.items():
            values = [rounding(draw.random() * 2.0 ** draw.randint(-6, 6)) for _ in range(4096)]
            reply = self.glue.run({"a": Tensor(dtype, [4096], values)}, [step("sqrt", "a", name="c")], ["c"])
            self.assertEqual(
                list(reply.tensors["c"].values), [rounding(math.sqrt(value)) for value in values]
            )

    def test_a_double_to_bfloat16_is_rounded_twice_by_torch_and_once_by_glue(self):
        tensors = {"a": Tensor("float64", [1], [1 + 2.0**-8 + 2.0**-40])}
        steps = [step("cast", "a", name="c", dtype="bfloat16")]
        self.assertEqual(self.torch.run(tensors, steps, ["c"]).tensors["c"].values, [1.0])
        self.assertEqual(self.glue.run(tensors, steps, ["c"]).tensors["c"].values, [1.0078125])


if __name__ == "__main__":
    unittest.main()
