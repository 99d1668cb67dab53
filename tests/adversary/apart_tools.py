"""Parts of the kernels that stand apart (a_...): the held-out tools under other names, and exact and compensated sums."""

import numpy as np
from heldout_tools import add32, under
from rounding import add_odd, float32 as r, rounding, to_odd, two_sum

ALL = ("float32", "bfloat16", "float16")
F32 = ("float32", )
HALF = ("bfloat16", "float16")

made, recipe, chain, whole = under("a_")


def once(summands):
    """The summands added exactly, rounded to odd."""
    head = tail = np.zeros(np.shape(summands[0]))
    for each in summands:
        head, error = two_sum(head, each)
        tail = tail + np.where(np.isfinite(head), error, 0.0)
    total, rest = two_sum(head, tail)
    return np.where(np.isfinite(head), to_odd(total, rest), head)


def cut(t, size):
    """t in pieces of `size` along its first axis."""
    return [t[at:at + size] for at in range(0, len(t), size)]


def filled(t, size):
    """t with zeros up to a whole number of `size`, as (steps, size, ...)."""
    t = np.concatenate([t, np.zeros((-len(t) % size, *t.shape[1:]))])
    return t.reshape(-1, size, *t.shape[1:])


def tree(t, add=add32):
    """Neighbours first."""
    while len(t) > 1:
        pairs = len(t) // 2 * 2
        t = np.concatenate([add(t[0:pairs:2], t[1:pairs:2]), t[pairs:]])
    return t[0]


def two_sum_in(a, b, n=r):
    """Knuth's two-sum with every step in a format; an error that is no number is 0."""
    s = n(add_odd(a, b))
    shown = n(s - a)
    error = n(n(a - n(s - shown)) + n(b - shown))
    return s, np.where(np.isfinite(error), error, 0.0)


def kahan(t):
    """Kahan's sum of t along its first axis."""
    total = lost = np.zeros(t.shape[1:])
    plain = total
    for each in t:
        y = r(each - lost)
        new = add32(total, y)
        lost, total, plain = r(r(new - total) - y), new, add32(plain, each)
    return np.where(np.isfinite(total), total, plain)


def parts_of(a, b, count, one):
    """`count` contiguous parts of K, each summed by one(a, b)."""
    return np.stack([one(a[:, at], b[at]) for at in np.array_split(np.arange(a.shape[1]), min(count, a.shape[1]))])


def shuffled(stack, seed):
    """The parts in an order of its own for every element."""
    return np.take_along_axis(stack, np.argsort(np.random.default_rng(seed).random(stack.shape), axis=0, kind="stable"), axis=0)


def drawn(name):
    """Stochastic rounding that leaves infinities and NaN alone; the draws are the same again."""
    return lambda x: np.where(np.isfinite(x), rounding(name)(x), x)
