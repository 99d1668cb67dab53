"""Intervals of float32 arithmetic: all that a description of a step can give, whatever the order of its sums.

An operation on boxes is carried out on their ends in float64 and rounded to float32 (a double rounding from 53 to 24 bits is that of
the exact result for + - * / sqrt). A library's function may be off by a few ulp; a sum of n terms by n float32 roundings.
"""

from dataclasses import dataclass

import numpy as np
from tools import add_odd, rounding

FUNCTION_ULPS = 8  # of exp, tanh, erf ... as libraries approximate them
DIVISION_ULPS = 2  # of a quotient, which may be a product with a reciprocal
SMALLEST = 2.0**-126
_R = rounding("float32")


@dataclass(frozen=True)
class Box:
    lo: np.ndarray
    hi: np.ndarray

    def __add__(self, other):
        other = box(other)
        return _out(_sum(self.lo, other.lo), _sum(self.hi, other.hi))

    def __sub__(self, other):
        return self + -box(other)

    def __neg__(self):
        return Box(-self.hi, -self.lo)

    def __mul__(self, other):
        return _out(*_products(self, box(other)))

    def __truediv__(self, other):
        other = box(other)
        with np.errstate(all="ignore"):
            return _out(*_corners(np.divide, self, other), DIVISION_ULPS)

    __radd__, __rmul__ = __add__, __mul__

    def to(self, word):
        """Rounded to a format; none: as it is."""
        return self if word in ("none", "float32") else Box(rounding(word)(self.lo), rounding(word)(self.hi))

    def flushed(self):
        """Subnormal float32 numbers as zero of their sign."""
        return self.map(lambda x: np.where(np.abs(x) < SMALLEST, np.copysign(0.0, x), x))

    def map(self, view):
        return Box(view(self.lo), view(self.hi))


def box(x):
    """A box of known numbers; Python scalars become float32."""
    if isinstance(x, Box):
        return x
    x = _R(np.float64(x)) if isinstance(x, (int, float)) else np.asarray(x).astype(np.float64)
    return Box(x, x)


def _sum(a, b):
    return add_odd(*np.broadcast_arrays(a, b))


def _corners(function, a, b):
    ends = np.stack(np.broadcast_arrays(*(function(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi))))
    return ends.min(axis=0), ends.max(axis=0)


def _products(a, b):
    return _corners(np.multiply, a, b)


def _out(lo, hi, ulps=0):
    with np.errstate(all="ignore"):
        return Box(_R(lo - np.abs(lo) * ulps * 2.0**-23), _R(hi + np.abs(hi) * ulps * 2.0**-23))


def fused(a, b, c):
    """a * b + c with one rounding; products of float32 numbers are exact in float64."""
    low, high = _products(a, box(b))
    return _out(_sum(low, box(c).lo), _sum(high, box(c).hi))


def rising(function, x, ulps=FUNCTION_ULPS):
    """A function that does not fall."""
    with np.errstate(all="ignore"):
        return _out(function(x.lo), function(x.hi), ulps)


def falling(function, x, ulps=FUNCTION_ULPS):
    with np.errstate(all="ignore"):
        return _out(function(x.hi), function(x.lo), ulps)


def _middle(x):
    return (x.lo + x.hi) / 2, (x.hi - x.lo) / 2


def dot(a, b):
    """a @ b in float32, in any order."""
    (am, ar), (bm, br) = _middle(a), _middle(b)
    centre, size = am @ bm, np.abs(am) @ np.abs(bm)
    radius = np.abs(am) @ br + ar @ np.abs(bm) + ar @ br + (a.lo.shape[-1] + 1) * 2.0**-24 * size * 1.01
    return _out(centre - radius, centre + radius)


def total(x, axis, keepdims):
    """The sums along an axis in float32, in any order."""
    middle, radius = _middle(x)
    centre = middle.sum(axis=axis, keepdims=keepdims)
    radius = radius.sum(axis=axis, keepdims=keepdims) + x.lo.shape[axis] * 2.0**-24 * np.abs(middle).sum(axis=axis, keepdims=keepdims) * 1.01
    return _out(centre - radius, centre + radius)


@dataclass(frozen=True)
class Count:
    """How many elements lie where a description puts them; sharp: of them, those for which it leaves one number alone."""
    holds: int
    sharp: int
    of: int

    def __str__(self):
        return f"{self.holds} of {self.of}" + ("" if self.sharp == self.of else f" ({self.sharp} sharp)")


def count(described, observed):
    """described: a Box in the dtype of the result; observed: the array itself."""
    observed = np.asarray(observed).astype(np.float64)
    lo, hi = np.broadcast_arrays(described.lo, described.hi)
    if lo.shape != observed.shape:
        raise ValueError(f"{lo.shape} described, {observed.shape} observed")
    inside = (lo <= observed) & (observed <= hi)
    return Count(int(inside.sum()), int((inside & (lo == hi)).sum()), observed.size)
