"""Sums of products with every rounding named: operands, products, accumulator, combination of partial sums, result.

An order is a matrix of indices, one row per step and one column per lane (-1: nothing), and the way in which the lanes are
combined. Steps are walked one by one, vectorised over lanes and outputs.
"""

from dataclasses import dataclass, replace

import numpy as np
from rounding import add_odd, bfloat16, ranged, rounding, store, to_odd, two_sum


@dataclass(frozen=True)
class Recipe:
    """How a product is computed; the words are those of rounding.rounding and of ORDERS."""
    a: str = "as_is"
    b: str = "as_is"
    prod: str = "exact"
    order: str = "sequential"
    acc: str = "float32"
    combine: str = ""  # of lanes; "" as acc
    mid: str = "none"
    out: str = "rne"


def _lanes(count, k):
    return np.concatenate([np.arange(k), np.full(-k % count, -1)]).reshape(-1, count)


def _parts(count, k):
    """`count` contiguous parts, one per lane."""
    steps = -(-k // count)
    return np.concatenate([np.arange(k), np.full(steps * count - k, -1)]).reshape(count, steps).T


def _blocks(size, k):
    return _parts(-(-k // size), k) if k > size else np.arange(k)[:, None]


def _shuffled(k):
    return np.random.default_rng(k).permutation(k)


# name -> (k -> indices, how the lanes are combined: tree, halves, sequential, random).
ORDERS = {
    "sequential": (lambda k: np.arange(k)[:, None], "tree"),
    "reversed": (lambda k: np.arange(k)[::-1, None], "tree"),
    "shuffled": (lambda k: _shuffled(k)[:, None], "tree"),
    "pairwise": (lambda k: np.arange(k)[None, :], "tree"),
    "halves": (lambda k: np.arange(k)[None, :], "halves"),
    "random_tree": (lambda k: _shuffled(k)[None, :], "random"),
    "interleaved2": (lambda k: _lanes(2, k), "sequential"),
    "odd_first": (lambda k: np.concatenate([np.arange(1, k, 2), np.arange(0, k, 2)])[:, None], "tree"),
    "lanes4": (lambda k: _lanes(4, k), "tree"),
    "lanes8": (lambda k: _lanes(8, k), "halves"),
    "lanes16": (lambda k: _lanes(16, k), "tree"),
    "lanes32": (lambda k: _lanes(32, k), "halves"),
    "blocked16": (lambda k: _blocks(16, k), "sequential"),
    "blocked64": (lambda k: _blocks(64, k), "sequential"),
    "blocked256": (lambda k: _blocks(256, k), "sequential"),
    "split2": (lambda k: _parts(2, k), "sequential"),
    "split4": (lambda k: _parts(4, k), "sequential"),
    "split8": (lambda k: _parts(8, k), "tree"),
}


# Further orders, of the same form, that are not among those by which a result is classed.
MORE_ORDERS = {}


def adder(name):
    """(s, t) -> s + t rounded once by `name`."""
    if name == "float64":
        return lambda s, t: s + t
    rounded = rounding(name)
    return lambda s, t: rounded(add_odd(s, t))


def combined(lanes, how, add):
    """The lanes (along axis 0) as one."""
    rng = np.random.default_rng(len(lanes))
    while len(lanes) > 1:
        count = len(lanes)
        if how == "sequential":
            total = lanes[0]
            for lane in lanes[1:]:
                total = add(total, lane)
            return total
        if how == "random":
            lanes = lanes[rng.permutation(count)]
            pairs = int(rng.integers(1, count // 2 + 1)) if count < 64 else count // 2
        else:
            pairs = count // 2
        if how == "halves":
            summed, rest = add(lanes[:pairs], lanes[count - pairs:]), lanes[pairs:count - pairs]
        else:
            summed, rest = add(lanes[0:2 * pairs:2], lanes[1:2 * pairs:2]), lanes[2 * pairs:]
        lanes = np.concatenate([summed, rest]) if len(rest) else summed
    return lanes[0]


def exact_sum(a, b):
    """a @ b as a float64 head and tail (error about 2^-100 of the sum of sizes), special values as float64 has them."""
    head = np.zeros((a.shape[0], b.shape[1]))
    tail = np.zeros_like(head)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            head, error = two_sum(head, a[:, k, None] * b[None, k, :])
            tail = tail + error
        plain = head
        total, rest = two_sum(head, tail)
        finite = np.isfinite(plain) & np.isfinite(tail)
    return np.where(finite, total, plain), np.where(finite, rest, 0.0)


def exact(a, b):
    """a @ b rounded to odd: any format of at most 50 bits can be rounded to from there."""
    return to_odd(*exact_sum(a, b))


def _compensated(a, b):
    """A compensated dot product in float32 (Ogita, Rump, Oishi): the errors of products and sums are carried along."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    lost, plain = total, total
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            whole = a[:, k, None] * b[None, k, :]
            term = whole.astype(np.float32)
            rest = (whole - term).astype(np.float32)
            new = total + term
            shown = new - total
            lost = lost + (((total - (new - shown)) + (term - shown)) + rest)
            total, plain = new, plain + term
        total = total + lost
    return np.where(np.isfinite(total), total, plain).astype(np.float64)


def _plain32(a, b, index, how):
    """Float32 multiply and add, in NumPy's own float32."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    lanes = np.zeros((index.shape[1], a.shape[0], b.shape[1]), np.float32)
    for row in index:
        kept = row >= 0
        term = a.T[row][:, :, None] * b[row][:, None, :]
        lanes = lanes + (term if kept.all() else np.where(kept[:, None, None], term, np.float32(0)))
    return combined(lanes, how, lambda s, t: s + t).astype(np.float64)


def accumulate(a, b, recipe):
    """The sum before mid and out. a and b are float64 arrays of at most 24 bits, rounded already."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"{a.shape} and {b.shape} have no product")
    if recipe.acc == "exact":
        return exact(a, b)
    if recipe.acc == "compensated":
        return _compensated(a, b)
    indices, how = (ORDERS if recipe.order in ORDERS else MORE_ORDERS)[recipe.order]
    index = indices(a.shape[1])
    with np.errstate(all="ignore"):
        if (recipe.acc, recipe.prod) == ("float32", "float32") and recipe.combine in ("", "float32"):
            return _plain32(a, b, index, how)
        product, add = rounding(recipe.prod), adder(recipe.acc)
        lanes = np.zeros((index.shape[1], a.shape[0], b.shape[1]))
        for row in index:
            kept = row >= 0
            term = product(a.T[row][:, :, None] * b[row][:, None, :])
            if not kept.all():
                term = np.where(kept[:, None, None], term, 0.0)
            lanes = add(lanes, term)
        if recipe.combine:
            # Partial sums are stored in the format in which they are added.
            lanes = rounding(recipe.combine)(lanes) if index.shape[1] > 1 else lanes
            add = adder(recipe.combine)
        return combined(lanes, how, add)


def split(x, parts, kind):
    """x as `parts` numbers of a narrow format, the largest first."""
    narrow = bfloat16 if kind == "bf16" else ranged(11)
    pieces = []
    for _ in range(parts):
        pieces.append(narrow(x))
        with np.errstate(all="ignore"):
            x = np.where(np.isfinite(pieces[-1]), x - pieces[-1], 0.0)
    return pieces


def emulated_split(a, b, kind, parts, terms, recipe):
    """bf16x2, x3, x6, x9 and tf32x3: the leading `terms` products of the pieces, each summed in float32, small ones first."""
    a, b = split(a, parts, kind), split(b, parts, kind)
    pairs = sorted(((i, j) for i in range(parts) for j in range(parts)), key=lambda ij: (ij[0] + ij[1], ij))[:terms]
    total = None
    for i, j in reversed(pairs):
        one = accumulate(a[i], b[j], recipe)
        total = one if total is None else rounding("float32")(add_odd(total, one))
    return total


def block_sum(a, b, n, fraction, mode, acc="float32"):
    """n products and the addend aligned to the largest exponent, cut at `fraction` bits below it, added, rounded."""
    total = np.zeros((a.shape[0], b.shape[1]))
    final = rounding(acc if mode == "rne" else f"{acc}_rz")
    with np.errstate(all="ignore"):
        for start in range(0, a.shape[1], n):
            terms = np.concatenate([total[None], (a.T[start:start + n][:, :, None] * b[start:start + n][:, None, :])])
            # Zero has no exponent: an empty running sum aligns nothing.
            counted = np.isfinite(terms) & (terms != 0)
            largest = np.where(counted, np.frexp(np.where(counted, terms, 1.0))[1] - 1, -1000).max(axis=0)
            quantum = np.ldexp(1.0, np.maximum(largest - fraction, -1000))
            cut = np.trunc(terms / quantum) if mode != "rne_all" else np.rint(terms / quantum)
            total = np.where(np.isfinite(terms).all(axis=0), final(cut.sum(axis=0) * quantum), terms.sum(axis=0))
    return total


def finish(x, recipe, dtype):
    return store(rounding(recipe.mid)(x), dtype, recipe.out)


def product(a, b, recipe, dtype):
    """The whole of it: a and b as they came, the result as it is stored."""
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    return finish(accumulate(rounding(recipe.a)(a), rounding(recipe.b)(b), recipe), recipe, dtype)


# The orders that are taken for honest when a cell is classed: any float32 sum, fused or not, or better.
HONEST = [Recipe(order=order, prod=prod) for order in ORDERS for prod in ("exact", "float32")] + [
    Recipe(acc="float64"),
    Recipe(acc="exact"),
    Recipe(acc="compensated")
]

__all__ = ["HONEST", "MORE_ORDERS", "ORDERS", "Recipe", "accumulate", "add_odd", "block_sum", "emulated_split", "exact_sum", "finish",
           "product", "replace"]
