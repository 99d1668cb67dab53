"""Parts of the held-out kernels: products term by term, operands block by block, chains of float32 steps."""

from dataclasses import replace

import numpy as np
from kernel import Kernel
from ops import PRODUCTS, apply, wide
from products import Recipe, accumulate, finish
from rounding import add_odd, float32, rounding

ALL = ("float32", "bfloat16", "float16")
F32 = ("float32", )
HALF = ("bfloat16", "float16")
GOOD = Recipe(order="lanes8")


def terms(a, b):
    """The exact products, K first."""
    return a.T[:, :, None] * b[:, None, :]


def add32(s, t):
    return float32(add_odd(s, t))


def in_turn(t, add=add32):
    """The terms added one by one."""
    total = np.zeros(t.shape[1:])
    for each in t:
        total = add(total, each)
    return total


def adding(name):
    rounded = rounding(name)
    return lambda s, t: rounded(add_odd(s, t))


def good(a, b):
    return accumulate(a, b, GOOD)


def words(inside=None, second=None, prod=None, acc=None, mid="none", op="matmul"):
    """Truth for kernels without a recipe: what is given, "other" standing for what has no word."""
    names = {"backward": ("g", "x")}.get(op, ("x", "w"))
    said = {"mid": mid}
    if inside:
        said["in"] = {names[0]: inside, **({names[1]: second or inside} if op not in ("sum", "mean") else {})}
    if prod:
        said["prod"] = prod
    if acc:
        said["acc"] = acc
    return said


def made(name, kind, why, total, op="matmul", inputs=ALL, truth=None, accepted=False, bias_as="none", scale=1.0):
    """A sum of products: total(a, b) gives it before mean, bias and store."""
    def run(call):
        a, b, bias, shape = PRODUCTS[op](call)
        with np.errstate(all="ignore"):
            y = total(a, b) * scale
            if op == "mean":
                y = float32(y / a.shape[1])
            if bias is not None:
                y = add32(float32(y), rounding(bias_as)(bias))
            return finish(y, Recipe(), call.dtype).reshape(shape)

    return Kernel(name=f"h_{name}", op=op, kind=kind, why=why, run=run, words=truth or {}, inputs=inputs, accepted=accepted)


def recipe(name, kind, why, op="matmul", inputs=ALL, accepted=False, **more):
    """A sum of products that a recipe describes completely."""
    whole = Recipe(**more)
    return Kernel(name=f"h_{name}", op=op, kind=kind, why=why, run=lambda call: apply(op, whole, call), recipe=whole,
                  inputs=inputs, accepted=accepted)


def chain(op, name, kind, why, result, inputs=ALL):
    """A chain: result(x, w, bias, eps) in float64, of which the store makes the rest; w and bias are None where there are none."""
    def run(call):
        x, w, bias = (*map(wide, call.operands), None, None)[:3]
        with np.errstate(all="ignore"):
            return finish(result(x, w, bias, call.attrs.get("eps", 0.0)), Recipe(), call.dtype)

    return Kernel(name=f"h_{op}_{name}", op=op, kind=kind, why=why, run=run, inputs=inputs)


def blockwise(x, axis, size, change):
    """change(blocks), blocks of `size` along `axis` lying along the last axis (zeros fill the last one)."""
    rows = np.moveaxis(x, axis, -1)
    k = rows.shape[-1]
    padded = np.concatenate([rows, np.zeros((*rows.shape[:-1], -k % size))], axis=-1)
    blocks = change(padded.reshape(*rows.shape[:-1], -1, size))
    return np.moveaxis(np.broadcast_to(blocks, (*rows.shape[:-1], padded.shape[-1] // size, size)).reshape(padded.shape)[..., :k],
                       -1, axis)


def largest(x, axis=-1):
    """The largest finite size along `axis`, 1 where there is none."""
    size = np.where(np.isfinite(x), np.abs(x), 0.0).max(axis=axis, keepdims=True)
    return np.where(size > 0, size, 1.0)


def row_sum(x, order="lanes8", acc="float32"):
    """The sums of rows, as a column."""
    return accumulate(x, np.ones((x.shape[1], 1)), Recipe(order=order, acc=acc))


def whole(op, name, kind, why, result, inputs=ALL, truth=None):
    """A sum of products whose result(a, b, bias) holds the division of a mean and the bias too; the store makes the rest."""
    def run(call):
        a, b, bias, shape = PRODUCTS[op](call)
        with np.errstate(all="ignore"):
            return finish(result(a, b, bias), Recipe(), call.dtype).reshape(shape)

    return Kernel(name=f"h_{op}_{name}", op=op, kind=kind, why=why, run=run, words=truth or {}, inputs=inputs)


def under(prefix):
    """made, recipe, chain and whole for a table whose names begin with `prefix`."""
    def renamed(make):
        def of(*args, **more):
            kernel = make(*args, **more)
            return replace(kernel, name=prefix + kernel.name.removeprefix("h_"))

        return of

    return tuple(map(renamed, (made, recipe, chain, whole)))
