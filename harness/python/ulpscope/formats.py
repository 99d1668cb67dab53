"""Rounding of float64 tensors to the formats in which kernels keep numbers, through float32 as in kernels."""

import functools
import math


@functools.cache
def _shape(name):
    """(explicit bits of a significand, least exponent of a normal number) of a format of 32 bits or fewer; None where it is none."""
    import torch
    if name == "tf32":
        return 10, -126
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize > 4:
        return None
    found = torch.finfo(dtype)
    return int(-math.log2(found.eps)), int(math.log2(found.smallest_normal))


def known(name):
    return _shape(name) is not None


def rounded(x, name):
    """To the nearest number of the format, ties to even (tf32: away from zero, as the hardware converts)."""
    import torch
    x = x.float()
    if name == "float32":
        return x.double()
    if name == "tf32":
        bits = x.contiguous().view(torch.int32)
        return torch.where(x.isfinite(), ((bits + 0x1000) & ~0x1fff).view(torch.float32), x).double()
    return x.to(getattr(torch, name)).double()


def stored(x, name, mode="rne"):
    """The output rounding of a kernel: to nearest ("rne"), or truncation towards zero ("rz")."""
    import torch
    y = rounded(x, name)
    if mode == "rne":
        return y
    toward = neighbour(y, name, -1)
    toward = torch.where(y < 0, neighbour(y, name, 1), toward)
    return torch.where((y.abs() > x.abs()) & x.isfinite(), toward, y)


def unit(name):
    """The largest relative error of a rounding."""
    return 2.0**-(_shape(name)[0] + 1)


def tiny(name):
    """The largest error of a rounding to a subnormal number."""
    return 2.0**(_shape(name)[1] - _shape(name)[0] - 1)


def holds(name, other):
    """Whether every number of `other` is one of `name`."""
    if name == other:
        return True
    if other in ("bool", "int8", "uint8"):
        return (_shape(name) or (0, 0))[0] >= 7
    if not known(name) or not known(other):
        return name == "float64"
    (bits, least), (other_bits, other_least) = _shape(name), _shape(other)
    return bits >= other_bits and least <= other_least


def name_of(tensor):
    """The dtype's name of a torch tensor."""
    return str(tensor.dtype).removeprefix("torch.")


def neighbour(x, name, side):
    """The next number of the format below (-1) or above (1)."""
    import torch
    towards = torch.full((), side * float("inf"))
    return torch.nextafter(x.float(), towards).double() if name == "float32" else _next(x, name, side)


def _next(x, name, side):
    import torch
    step = torch.where(x == 0, 0.0, torch.exp2(torch.floor(torch.log2(x.abs())) - _shape(name)[0])).clamp(min=2 * tiny(name))
    near = torch.where(x * side < 0, step / 2, step)
    best = rounded(x + side * near, name)
    return torch.where(best == x, rounded(x + side * step, name), best)
