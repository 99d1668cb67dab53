#!/usr/bin/env python3
"""Products that an H100 computed: NumPy gives every bit of them from the operands, and ulpscope names what NumPy had to do.

The arithmetic of a block unit is written here a second time, from the papers and the bits, and shares nothing with the harness: the
products of a block and the running sum are aligned to the largest exponent among them (of a product: the sum of its operands'
exponents), cut at `fraction` bits below it, added exactly, and what is handed on keeps `kept` bits behind its own leading one.
"""
import json
import pathlib
import sys
import tempfile
import unittest

import ml_dtypes  # noqa: F401  (bfloat16 and float8 of the records)
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "backends/python"))
sys.path.insert(0, str(FOLDER.parent / "support"))
from programs import ulpscope  # noqa: E402
from ulpscope_adapter.tensor import read_safetensors  # noqa: E402

NONE = -1000  # exponent of zero: below every other, and within reach of a double


def exponent(x):
    return np.where(x == 0, NONE, np.frexp(np.abs(x))[1] - 1)


def cut(x, exponents, bits):
    unit = np.ldexp(1.0, exponents - bits)
    return np.trunc(x / unit) * unit


def float32(x):
    return x.astype(np.float32).astype(np.float64)


def tf32(x, ties):
    """float32 values with 13 bits less: ties to even, away from zero, or no rounding but a cut."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    half = {"rne": 0xfff + (bits >> np.uint64(13) & np.uint64(1)), "rna": np.uint64(0x1000), "rz": np.uint64(0)}[ties]
    return ((bits + half) & ~np.uint64(0x1fff)).astype(np.uint32).view(np.float32).astype(np.float64)


class Unit:
    def __init__(self, a, b):
        self.products = a[:, None, :] * b.T[None]
        self.exponents = np.where(self.products == 0, NONE, exponent(a)[:, None, :] + exponent(b).T[None])
        self.k = a.shape[1]

    def sums(self, n, fraction, kept, parts=((0, 1), )):
        """One running sum for each of `parts` (first, stride of blocks of n): [part, row, column]. kept: bits, or a dtype."""
        results = []
        for blocks in parts:
            total = np.zeros(self.products.shape[:2])
            for k in blocks:
                products, exponents = self.products[..., k:k + n], self.exponents[..., k:k + n]
                largest = np.maximum(exponents.max(-1), exponent(total))
                total = cut(products, largest[..., None], fraction).sum(-1) + cut(total, largest, fraction)
                total = cut(total, exponent(total), kept) if isinstance(kept, int) else total.astype(kept).astype(np.float64)
            results.append(total)
        return results

    def contiguous(self, n, length):
        return [range(first, first + length, n) for first in range(0, self.k, length)]


def added(parts):
    total = parts[0]
    for part in parts[1:]:
        total = float32(total + part)
    return total


def record(name):
    tensors = read_safetensors(FOLDER / "h100" / f"{name}.safetensors")
    return [tensors[each].numpy() for each in ("a", "b", "product")]


def wide(name):
    a, b, product = record(name)
    return a.astype(np.float64), b.astype(np.float64), product.astype(np.float64)


class Recomputed(unittest.TestCase):
    """Every element; beside the right parameters the ones next to them, which are to miss many."""
    def hold(self, name, product, compute, right, others):
        same = float(np.mean(compute(*right) == product))
        near = {other: float(np.mean(compute(*other) == product)) for other in others}
        print(f"\n{name}: {right} gives {product.size} of {product.size} elements" if same == 1 else f"\n{name}: {right} gives {same:.4f}",
              *(f"{other} {share:.3f}" for other, share in near.items()), sep="; ")
        self.assertEqual(same, 1)
        for other, share in near.items():
            self.assertLess(share, 0.999, f"{name}: {other} gives as much")

    def test_bfloat16(self):
        a, b, product = wide("bfloat16")
        unit = Unit(a, b)
        self.hold("bfloat16", product, lambda n, f: added(unit.sums(n, f, 23, unit.contiguous(n, 64))), (16, 25), [(16, 24), (16, 26), (8, 25), (32, 25)])

    def test_tf32_operands_are_rounded_by_cublas_to_even_by_xla_away_from_zero_and_cut_by_triton(self):
        right = {"tf32_cublas": "rne", "tf32_jax": "rna", "tf32_triton": "rz"}
        for name, ties in right.items():
            a, b, product = record(name)
            k = a.shape[1]

            def compute(ties, fraction, a=a, b=b, k=k):
                unit = Unit(tf32(a, ties), tf32(b, ties))
                # In cuBLAS and XLA eight sums of 32 terms each, at K = 256; in Triton one of 64.
                return added(unit.sums(8, fraction, 23, unit.contiguous(8, 32 if k == 256 else 64)))

            self.hold(name, product.astype(np.float64), compute, (ties, 25),
                      [(other, 25) for other in ("rne", "rna", "rz") if other != ties and not (name == "tf32_triton" and other == ties)] + [(ties, 24)])

    def test_float16_accumulators_round_every_block(self):
        a, b, product = wide("float16_sums")
        unit = Unit(a, b)
        self.hold("float16 sums", product, lambda n, f: added(unit.sums(n, f, np.float16, unit.contiguous(n, 64))), (16, 25), [(8, 25), (4, 25)])

    def test_float8_sums_keep_14_bits_and_128_terms_begin_anew_unless_told_to_be_fast(self):
        for name, length, other in (("float8", 128, 512), ("float8_fast", 512, 128)):
            a, b, product = wide(name)
            unit = Unit(a, b)
            self.hold(name, product, lambda f, kept, length: added(unit.sums(32, f, kept, unit.contiguous(32, length))), (13, 13, length),
                      [(13, 14, length), (13, 23, length), (12, 13, length), (14, 13, length), (13, 13, other)])


class Named(unittest.TestCase):
    """The findings on the stored bits are what NumPy had to do to get them."""
    EXPECTED = {
        "bfloat16": ("bfloat16", {"acc": ["blockfma(16,25,rz)"]}),
        "tf32_cublas": ("tf32", {"acc": ["blockfma(8,25,rz)"], "a": {"tf32_rne", "float16_rne"}}),
        "tf32_jax": ("tf32", {"acc": ["blockfma(8,25,rz)"], "a": {"tf32_rna"}}),
        "tf32_triton": ("tf32_triton", {"acc": ["blockfma(8,25,rz)"], "x": {"tf32_rz"}}),
        "float16_sums": ("float16_sums", {"acc": ["blockfma(16,25,rne_float16)"]}),
        "float8": ("float8", {"acc": ["blockfma(32,13,rz)"]}),
        "float8_fast": ("float8", {"acc": ["blockfma(32,13,rz)"]})
    }

    def test_every_record(self):
        checked = 0
        with tempfile.TemporaryDirectory() as folder:
            for name, (case, expected) in self.EXPECTED.items():
                report = pathlib.Path(folder) / f"{name}.json"
                done = ulpscope("run", FOLDER / "h100.yaml", "-k", f'"h100/{case}"', "-b", f"h100@cuda:record={name}", "--adapter", FOLDER / "replay.py",
                                "--json", report, "-q", "-o", pathlib.Path(folder) / name)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                (result, ) = [each for each in json.loads(report.read_text())["results"] if each["id"] == f"h100/{case}"]
                self.assertEqual(result["outcome"]["kind"], "completed", result["outcome"])
                facets = result["values"]["product"]["facets"]
                self.assertEqual(facets["acc"], expected["acc"], f"{name}: {result['values']['product']['label']}")
                for operand, words in expected.items():
                    if operand != "acc":
                        self.assertEqual(set(facets["in"][operand]), words, name)
                checked += 1
        print(f"\n{checked} records named")
        self.assertEqual(checked, len(self.EXPECTED))
        self.assertEqual(set(self.EXPECTED), {path.stem for path in (FOLDER / "h100").glob("*.safetensors")})


if __name__ == "__main__":
    unittest.main()
