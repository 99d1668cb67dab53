"""Everything that a conforming float32 evaluation of a program can give, as a centre and a radius for each element.

A value is a Ball: its exact value `v` (computed in float64), a bound `e` on the error of any float32 evaluation, and
a magnitude `m`. The magnitude of a sum is the sum of the magnitudes, that of a product their product: the size of
the terms without cancellation. Each operation rounds by a few units of `m`, not of `v`. So a bound is valid for
every order of a sum and for every rearrangement by the laws of algebra: a bias added before the products, scales
applied to operands or to the total, a variance from the mean of squares.

A function is off by 8 units in the last place at most, as a contract allows (harness/docs/contracts.md), and by the
error of its argument; functions that kernels compute from exp (tanh, the logistic function) also by a few units of
1.
"""

import dataclasses

from ulpscope import formats

UNIT = 2.0**-24
_FUNCTION = 8 * UNIT
# Errors of float64 itself are below this share of `m` in any program that fits into memory.
_OWN = 2.0**-44


@dataclasses.dataclass
class Ball:
    """One value: exact, bound of the error, magnitude; tensors of float64 and of one shape."""

    v: object
    e: object
    m: object

    def ends(self):
        return self.v - self.e, self.v + self.e


@dataclasses.dataclass
class Truth:
    """Truth values, and where a conforming evaluation may have the other one."""

    v: object
    open: object


def _ball(v, e, m):
    """An infinite or undefined value has no error; a bound that is none is infinite."""
    import torch
    finite = v.isfinite()
    e = torch.where(finite, e.nan_to_num(nan=float("inf"), posinf=float("inf")), 0.0)
    return Ball(v, e, torch.where(finite, m.nan_to_num(nan=float("inf"), posinf=float("inf")), 0.0))


def exact(tensor):
    """A tensor of any dtype as what the program is given."""
    import torch
    if tensor.dtype == torch.bool:
        return Truth(tensor, torch.zeros_like(tensor))
    v = tensor.double()
    return _ball(v, torch.zeros_like(v), v.abs())


class Enclosing:
    """The operations of a fused program (fusing.py) on Balls. `clock` is called after each; it raises when time is up."""

    def __init__(self, clock=lambda: None):
        self.clock = clock

    def number(self, value):
        """A Python number: exact, or the nearest float32."""
        import torch
        v = torch.tensor(float(value), dtype=torch.float64)
        return _ball(v, (v - v.float().double()).abs(), v.abs())

    def given(self, tensor):
        return exact(tensor)

    def read(self, name, value):
        del name
        return value

    def after(self, node, value):
        del node
        self.clock()
        return value

    def block_of(self, node):
        del node

    def move(self, function, *operands):
        """An op that only moves elements, or repeats or leaves out some."""
        if all(isinstance(each, Truth) for each in operands):
            return Truth(function(*(each.v for each in operands)), function(*(each.open for each in operands)))
        parts = [[each.v, each.e, each.m] for each in operands]
        return Ball(*(function(*(part[i] for part in parts)) for i in range(3)))

    def index(self, function, table, *indices):
        indices = [each.v.long() for each in indices]
        return Ball(*(function(part, *indices) for part in (table.v, table.e, table.m)))

    # Sums and products

    def add(self, a, b):
        m = a.m + b.m
        return _ball(a.v + b.v, a.e + b.e + 2 * UNIT * m, m)

    def sub(self, a, b):
        m = a.m + b.m
        return _ball(a.v - b.v, a.e + b.e + 2 * UNIT * m, m)

    def mul(self, a, b):
        m = a.m * b.m
        return _ball(a.v * b.v, a.v.abs() * b.e + a.e * (b.v.abs() + b.e) + 2 * UNIT * m, m)

    def div(self, a, b):
        least = (b.v.abs() - b.e).clamp(min=0)
        m = a.m / b.v.abs()
        v = a.v / b.v
        return _ball(v, (a.e + v.abs() * b.e) / least + _FUNCTION * m, m)

    def matmul(self, a, b):
        import torch
        terms = torch.matmul((a.v != 0).double(), (b.v != 0).double())
        m = torch.matmul(a.m, b.m)
        e = (terms + 4) * UNIT * m + _OWN * m
        if b.e.any():
            e = e + torch.matmul(a.v.abs() + a.e, b.e)
        if a.e.any():
            e = e + torch.matmul(a.e, b.v.abs())
        return _ball(torch.matmul(a.v, b.v), e, m)

    def sum(self, a, dim, keepdim):
        terms = (a.v != 0).double().sum(dim, keepdim)
        m = a.m.sum(dim, keepdim)
        return _ball(a.v.sum(dim, keepdim), a.e.sum(dim, keepdim) + (terms + 4) * UNIT * m + _OWN * m, m)

    # Without an error of their own

    def neg(self, a):
        return Ball(-a.v, a.e, a.m)

    def abs(self, a):
        return Ball(a.v.abs(), a.e, a.m)

    def amax(self, a, dim, keepdim):
        return self._monotone(lambda x: x.amax(dim, keepdim), a, 0)

    def amin(self, a, dim, keepdim):
        return self._monotone(lambda x: x.amin(dim, keepdim), a, 0)

    def maximum(self, a, b):
        import torch
        return self._pair(torch.maximum, a, b)

    def minimum(self, a, b):
        import torch
        return self._pair(torch.minimum, a, b)

    def _pair(self, function, a, b):
        v, low, high = function(a.v, b.v), function(a.v - a.e, b.v - b.e), function(a.v + a.e, b.v + b.e)
        return _ball(v, _larger(high - v, v - low), v.abs())

    def clamp(self, a, low, high):
        return self._monotone(lambda x: x.clamp(low, high), a, 0)

    def whole(self, a, function):
        """floor, ceil, round or trunc: a number near a step may fall to either side."""
        return self._monotone(function, a, 0)

    # Functions

    def sqrt(self, a):
        return self._monotone(lambda x: x.clamp(min=0).sqrt(), a, _FUNCTION)

    def rsqrt(self, a):
        return self._monotone(lambda x: x.clamp(min=0).rsqrt(), a, _FUNCTION)

    def reciprocal(self, a):
        return self.div(self.number(1), a)

    def pow(self, a, exponent):
        import torch
        if exponent == int(exponent) and 0 < exponent <= 16:
            value = a
            for _ in range(int(exponent) - 1):
                value = self.mul(value, a)
            return value
        v = a.v**exponent
        slope = (exponent * torch.where(a.v == 0, 0.0, v / a.v)).abs()
        return _ball(v, slope * a.e * 1.01 + (16 + 4 * abs(exponent)) * UNIT * v.abs(), v.abs())

    def exp(self, a):
        """Kernels scale the argument, which rounds it, and call exp2."""
        return self._monotone(lambda x: x.exp(), a, _FUNCTION + 4 * UNIT * a.m)

    def exp2(self, a):
        return self._monotone(lambda x: x.exp2(), a, _FUNCTION + 4 * UNIT * a.m)

    def expm1(self, a):
        return self._monotone(lambda x: x.expm1(), a, _FUNCTION, 4 * UNIT)

    def log(self, a):
        return self._monotone(lambda x: x.log(), a, _FUNCTION, 4 * UNIT)

    def log2(self, a):
        return self._monotone(lambda x: x.log2(), a, _FUNCTION, 4 * UNIT)

    def log1p(self, a):
        return self._monotone(lambda x: x.log1p(), a, _FUNCTION, 4 * UNIT)

    def tanh(self, a):
        return self._monotone(lambda x: x.tanh(), self._rounded(a), _FUNCTION, 4 * UNIT)

    def sigmoid(self, a):
        return self._monotone(lambda x: x.sigmoid(), self._rounded(a), _FUNCTION, 4 * UNIT)

    def erf(self, a):
        return self._monotone(lambda x: x.erf(), self._rounded(a), _FUNCTION, 4 * UNIT)

    def sin(self, a):
        return self._turning(a, a.v.sin())

    def cos(self, a):
        return self._turning(a, a.v.cos())

    def _turning(self, a, v):
        return _ball(v, a.e + 4 * UNIT * a.m + _FUNCTION, v.abs())

    def _rounded(self, a):
        """An argument that is scaled before the function is called."""
        return _ball(a.v, a.e + 4 * UNIT * a.m, a.m)

    def _monotone(self, function, a, relative, absolute=0.0):
        v = function(a.v)
        e = _larger((function(a.v + a.e) - v).abs(), (v - function(a.v - a.e)).abs()) if a.e.any() else v.abs() * 0
        return _ball(v, e + relative * v.abs() + absolute, v.abs())

    # Roundings that the program requests

    def to(self, a, name):
        """Rounded to a format: every number of the format that a value of the ball may become."""
        low, high = (formats.rounded(each, name) for each in a.ends())
        v = formats.rounded(a.v, name)
        return _ball(v, _larger(high - v, v - low), v.abs())

    def perhaps(self, a, name):
        """Rounded to a format, after any scaling, or not."""
        return _ball(a.v, a.e + formats.unit(name) * (a.v.abs() + a.e) + formats.tiny(name), a.m)

    # Truth

    def compare(self, function, a, b):
        v = function(a.v, b.v)
        reach = a.e + b.e
        return Truth(v, ((a.v - b.v).abs() <= reach) & (reach > 0))

    def logic(self, function, *operands):
        opened = operands[0].open
        for each in operands[1:]:
            opened = opened | each.open
        return Truth(function(*(each.v for each in operands)), opened)

    def where(self, condition, a, b):
        import torch
        v = torch.where(condition.v, a.v, b.v)
        e = torch.where(condition.v, a.e, b.e)
        other = torch.where(condition.v, b.v, a.v)
        return _ball(v, torch.where(condition.open, (v - other).abs() + a.e + b.e, e), torch.where(condition.v, a.m, b.m))


def _larger(a, b):
    import torch
    return torch.maximum(a, b)
