"""Parts that the emulator of programs borrows: the roundings and sums of tests/adversary, the Python SDK."""

import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# At the end: files of that folder are called as some of this one are.
sys.path += [str(ROOT / "backends/python"), str(ROOT / "tests/adversary"), str(ROOT / "tests/support")]

from products import Recipe, accumulate  # noqa: E402
from rounding import STORES, add_odd, rounding, store  # noqa: E402

# Significant bits of the formats that a use can be rounded to.
BITS = {"float64": 53, "float32": 24, "tf32": 11, "float16": 11, "bfloat16": 8}

__all__ = ["BITS", "HERE", "ROOT", "Recipe", "STORES", "accumulate", "add_odd", "rounding", "store"]
