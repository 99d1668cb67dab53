"""Additional inputs on which narrow places of a kernel show: the same shapes, dtypes and layouts as the caller's, other
values.

They are made from the caller's values: positive values stay positive, masks and indices stay unchanged, a quantised
weight keeps its range. Sums of one sign make narrow totals stop growing; slices of other scales bring every function
to where it bends; large scores make a softmax choose; sums of one or two terms keep the rounding of the sum out of
the results; tensors of another range leave that of float16. Every draw comes from its seed.
"""

import math
from typing import NamedTuple

KINDS = ("shuffled", "of other scales", "of one sign", "of another range", "larger", "smaller", "with a few large elements",
         "with zeros for most elements")
RANGE = "of another range"
_BEYOND = 18  # float16 ends at 2^16


class Varied(NamedTuple):
    """An input: its name for readers, {name: tensor}, the index of its kind in KINDS, and which tensor is changed by itself, if one is."""

    name: str
    tensors: dict
    kind: int
    chosen: str


def vary(tensors, number, seed=0):
    """The Varied with that number, of a seed."""
    import torch
    kind, generator = KINDS[number % len(KINDS)], torch.Generator().manual_seed(1000 * (seed + 1) + number)
    free = [name for name, each in tensors.items() if is_free(each)]
    floating = [name for name in free if tensors[name].dtype.is_floating_point]
    everywhere = kind == RANGE and number < len(KINDS)
    chosen = floating[number // len(KINDS) % len(floating)] if floating else None
    made = dict(tensors)
    for name in free:
        made[name] = _like(tensors[name], _changed(tensors[name], kind, everywhere or name == chosen, generator))
    alone = chosen if kind not in ("shuffled", "of one sign", RANGE) else None
    return Varied(f"input {number + 1} ({f'{kind}, {alone}' if alone else kind})", made, number % len(KINDS), alone)


def is_free(tensor):
    """Whether other values may take the place of these: not of masks, indices, positions, one-hot targets, or what is not finite."""
    import torch
    if tensor.dtype in (torch.int8, torch.uint8):
        return True
    values = tensor.float() if tensor.dtype.is_floating_point else None
    return values is not None and bool(values.isfinite().all()) and not bool(((values == 0) | (values == 1)).all())


def _changed(tensor, kind, chosen, generator):
    import torch
    values = tensor.detach().cpu().double().reshape(-1)
    values = values[torch.randperm(values.numel(), generator=generator)].reshape(tensor.shape)
    if not tensor.dtype.is_floating_point:
        return values.abs() if kind == "of one sign" else values
    values = values * (0.5 + torch.rand(tensor.shape, generator=generator, dtype=torch.float64))
    if kind == "of one sign":
        return values.abs()
    if kind == RANGE:
        reach = 0 if tensor.dtype.itemsize < 2 or tensor.dtype == torch.float16 else _BEYOND - _exponent(values)
        return values * 2.0**(reach * (1 if chosen else int(torch.randint(-1, 2, (1, ), generator=generator))))
    if kind == "larger" and chosen:
        return values * 4
    if kind == "smaller" and chosen:
        return values / 16
    if kind == "of other scales" and chosen and values.dim():
        shape = [1] * values.dim()
        dim = int(torch.randint(max(1, values.dim() - 1), (1, ), generator=generator))
        shape[dim] = values.shape[dim]
        return values * torch.exp2(torch.rand(shape, generator=generator, dtype=torch.float64) * 6 - 5)
    if kind == "with zeros for most elements" and chosen:
        kept = 2 / max([*tensor.shape[-2:], 2])
        return torch.where(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) < kept, values, 0.0)
    if kind == "with a few large elements" and chosen:
        return torch.where(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) < 0.03, values * 32, values)
    return values


def _exponent(values):
    """The usual size of the values, as a power of two."""
    return round(math.log2(float(values.abs().mean()) or 1.0))


def _like(tensor, values):
    import torch
    limit = torch.finfo(tensor.dtype).max / 8 if tensor.dtype.is_floating_point else 127
    made = torch.empty_like(tensor.detach(), device="cpu")
    made.copy_(values.clamp(-limit, limit).to(tensor.dtype))
    return made
