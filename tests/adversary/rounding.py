"""Roundings of float64 arrays into narrower formats, each exactly once: what every kernel of this folder is made of.

A value travels as float64. Operands of at most 24 bits have exact products there; a sum of two of them may not fit 53 bits,
so sums are rounded to odd (add_odd), after which one more rounding to at most 51 bits is the rounding of the exact sum.
"""

import ml_dtypes
import numpy as np

SIGN = np.uint64(1 << 63)


def two_sum(a, b):
    """s = fl(a + b) and the exact a + b - s, in float64 (Knuth). The error of a sum that is not finite is 0."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(s, error):
    """s nudged towards its error where it is inexact and its last bit is even: s + error, rounded to odd."""
    bits = np.ascontiguousarray(s).view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(s) & ((bits & 1) == 0)
    away = (error > 0) == (s > 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


def add_odd(a, b):
    """a + b rounded to odd."""
    with np.errstate(all="ignore"):
        s, error = two_sum(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return to_odd(s, error)


def to_bits(x, p, mode="rne", rng=None):
    """x rounded to p significant bits, any exponent. mode: rne, rz, rna, rod (to odd), sr (stochastic, by rng)."""
    drop = 53 - p
    if drop <= 0:
        return x
    x = np.ascontiguousarray(x, np.float64)
    bits = x.view(np.uint64)
    one = np.uint64(1)
    low = np.uint64((1 << drop) - 1)
    if mode == "rne":
        grown = bits + np.uint64((1 << (drop - 1)) - 1) + ((bits >> np.uint64(drop)) & one)
    elif mode == "rna":
        grown = bits + np.uint64(1 << (drop - 1))
    elif mode == "sr":
        grown = bits + rng.integers(0, 1 << drop, x.shape, dtype=np.uint64)
    elif mode == "rod":
        grown = bits | np.where(bits & low != 0, np.uint64(1 << drop), np.uint64(0))
    else:
        grown = bits
    return np.where(np.isfinite(x), (grown & ~low).view(np.float64), x)


def odd32(x):
    """float64 to float32, rounded to odd: a format of at most 22 bits can be rounded to from there."""
    with np.errstate(all="ignore"):
        y = np.asarray(x, np.float64).astype(np.float32)
        y = np.where(np.isinf(y) & np.isfinite(x), np.copysign(np.float32(3.4028235e38), y), y)
        wide = y.astype(np.float64)
        inexact = np.isfinite(x) & (wide != x)
    bits = y.view(np.int32)
    even = (bits & 1) == 0
    step = np.where(np.abs(x) > np.abs(wide), 1, -1)
    # Next to zero the sign is that of x: a float32 of 0 that hides something becomes the smallest subnormal.
    return np.where(inexact & even, bits + step, bits).astype(np.int32).view(np.float32)


def float32(x):
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


def float32_rz(x):
    """Towards zero; what overflows becomes the largest finite number."""
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        y = x.astype(np.float32)
        back = np.abs(y.astype(np.float64)) > np.abs(x)
    return np.where(back, (y.view(np.int32) - 1).astype(np.int32).view(np.float32), y).astype(np.float64)


def float16(x):
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(np.float16).astype(np.float64)


def through(dtype):
    """Into an ml_dtypes format and back; these convert from float32 alone, which is therefore rounded to odd."""
    def convert(x):
        with np.errstate(all="ignore"):
            return odd32(x).astype(dtype).astype(np.float64)

    return convert


bfloat16 = through(ml_dtypes.bfloat16)


def ranged(p, mode="rne", low=-126, high=127):
    """p bits and normal exponents low..high, by default those of float32: subnormals at its quantum, overflow
    to infinity (rz: to the largest)."""
    quantum = 2.0**(low - (p - 1))
    largest = (2.0 - 2.0**(1 - p)) * 2.0**high

    def convert(x):
        x = np.asarray(x, np.float64)
        with np.errstate(all="ignore"):
            y = to_bits(x, p, mode)
            scaled = x / quantum
            near = np.rint(scaled) if mode == "rne" else np.trunc(scaled)
            if mode == "rna":
                near = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
            y = np.where(np.abs(x) < 2.0**low, near * quantum, y)
            over = largest if mode == "rz" else np.inf
            return np.where((np.abs(y) > largest) & np.isfinite(x), np.copysign(over, x), y)

    return convert


def float16_rz(x):
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        y = x.astype(np.float16)
        back = np.abs(y.astype(np.float64)) > np.abs(x)
    return np.where(back, (y.view(np.int16) - 1).astype(np.int16).view(np.float16), y).astype(np.float64)


def saturating(convert, largest):
    return lambda x: convert(np.clip(x, -largest, largest))


def flushed(convert, smallest=2.0**-126):
    """Results below the smallest normal number become zero of their sign."""
    def flush(x):
        y = convert(x)
        return np.where(np.abs(y) < smallest, np.copysign(0.0, y), y)

    return flush


_E4M3, _E5M2 = through(ml_dtypes.float8_e4m3fn), through(ml_dtypes.float8_e5m2)
NAMED = {
    "none": lambda x: x,
    "as_is": lambda x: x,
    "exact": lambda x: x,
    "float64": lambda x: x,
    "float32": float32,
    "float32_rz": float32_rz,
    "float32_rna": ranged(24, "rna"),
    "float32_ftz": flushed(float32),
    "daz": flushed(lambda x: x),
    "float16": float16,
    "float16_rz": float16_rz,
    "float16_rna": ranged(11, "rna", -14, 15),
    "float16_ftz": flushed(float16, 2.0**-14),
    "float16_sat": saturating(float16, 65504.0),
    "bfloat16": bfloat16,
    "bfloat16_rz": ranged(8, "rz"),
    "bfloat16_ftz": flushed(bfloat16),
    "bfloat16_rna": ranged(8, "rna"),
    "tf32": ranged(11),
    "tf32_rz": ranged(11, "rz"),
    "tf32_rna": ranged(11, "rna"),
    "e4m3": _E4M3,
    "e5m2": _E5M2,
    "e4m3_sat": saturating(_E4M3, 448.0),
    "e5m2_sat": saturating(_E5M2, 57344.0),
    "bfloat16_via_float32": lambda x: bfloat16(float32(x)),
    "float16_via_float32": lambda x: float16(float32(x)),
    "bfloat16_of_float16": lambda x: bfloat16(float16(x)),
}


def rounding(name):
    """The rounding function of a name: one of NAMED, or p<bits> with _rz, _rna, _rod or _sr (seeded anew each time)."""
    if name in NAMED:
        return NAMED[name]
    bits, _, mode = name[1:].partition("_")
    if not name.startswith("p") or not bits.isdigit() or mode not in ("", "rz", "rna", "rod", "sr"):
        raise ValueError(f"no rounding is called {name}")
    rng = np.random.default_rng(20240) if mode == "sr" else None
    return lambda x: to_bits(x, int(bits), mode or "rne", rng)


# Formats of results: dtype -> (NumPy dtype, significant bits, smallest normal).
STORES = {
    "float64": (np.float64, 53, 2.0**-1022),
    "float32": (np.float32, 24, 2.0**-126),
    "float16": (np.float16, 11, 2.0**-14),
    "bfloat16": (ml_dtypes.bfloat16, 8, 2.0**-126)
}


def store(x, dtype, how="rne"):
    """x in the NumPy type of `dtype`. how: rne, rz, rna, ftz, sr."""
    kind, bits, _ = STORES[dtype]
    if how == "rne":
        wide = rounding(dtype)(x)
    elif how == "sr":
        wide = rounding(dtype)(rounding(f"p{bits}_sr")(x))
    else:
        wide = rounding(f"{dtype}_{how}")(x)
    with np.errstate(all="ignore"):
        return np.asarray(wide).astype(np.float32).astype(kind) if dtype == "bfloat16" else np.asarray(wide).astype(kind)
