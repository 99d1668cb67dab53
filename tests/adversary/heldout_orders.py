"""Held out: honest sums in orders that no list has, and sums that are better than float32 in some other way."""

import numpy as np
from heldout_tools import F32, HALF, add32, good, in_turn, made, recipe, terms, words
from products import MORE_ORDERS, Recipe, accumulate, _blocks, _lanes, _parts
from rounding import float32, to_odd, two_sum


def _column(order):
    return np.asarray(order, int)[:, None]


def _hilbert(k):
    """A walk along Hilbert's curve through a square of indices, row by row."""
    side = 1
    while side * side < k:
        side *= 2
    walk = []
    for distance in range(side * side):
        x, y, rest, size = 0, 0, distance, 1
        while size < side:
            right, up = 1 & (rest // 2), 1 & (rest ^ (rest // 2))
            if not up:
                if right:
                    x, y = size - 1 - x, size - 1 - y
                x, y = y, x
            x, y, rest, size = x + size * right, y + size * up, rest // 4, size * 2
        if y * side + x < k:
            walk.append(y * side + x)
    return _column(walk)


def _bit_reversed(k):
    bits = max(k - 1, 1).bit_length()
    return _column([i for i in (int(f"{n:0{bits}b}"[::-1], 2) for n in range(1 << bits)) if i < k])


def _gray(k):
    return _column([n ^ (n >> 1) for n in range(1 << max(k - 1, 1).bit_length()) if n ^ (n >> 1) < k])


def _outside_in(k):
    return _column([n // 2 if n % 2 == 0 else k - 1 - n // 2 for n in range(k)])


def _strided(k):
    step = max(int(k**0.5), 1)
    return _column([i for start in range(step) for i in range(start, k, step)])


def _from_the_middle(k):
    return _column([*range(k // 2, k), *range(k // 2)])


def _steps_of_seven(k):
    step = next(s for s in (7, 11, 13, 1) if k % s or s == 1)
    return _column([n * step % k for n in range(k)])


def _growing(k):
    """Parts of 1, 2, 3, ... terms, one per lane."""
    parts, start, size = [], 0, 1
    while start < k:
        parts.append(list(range(start, min(start + size, k))))
        start, size = start + size, size + 1
    longest = max(map(len, parts))
    return np.array([part + [-1] * (longest - len(part)) for part in parts]).T


def _drawn_lanes(k):
    """Terms fall into five lanes at random."""
    lanes = [np.flatnonzero(np.random.default_rng(k).integers(0, 5, k) == lane) for lane in range(5)]
    longest = max(map(len, lanes))
    return np.array([[*lane, *[-1] * (longest - len(lane))] for lane in lanes]).T


def _nested(k):
    """Four parts of K, each in six lanes."""
    part = -(-k // 4)
    pieces = [_lanes(6, part) for _ in range(4)]
    columns = [np.where((piece >= 0) & (piece + start < k), piece + start, -1) for piece, start in zip(pieces,
                                                                                                      range(0, 4 * part, part))]
    return np.concatenate(columns, axis=1)


def _peeled(k):
    """The remainder beside eight lanes comes first, in a lane of its own."""
    rest = k % 8
    main = np.arange(rest, k).reshape(-1, 8)
    steps = max(len(main), rest)
    index = np.full((steps, 9), -1)
    index[:len(main), 1:] = main
    index[:rest, 0] = np.arange(rest)
    return index


MORE_ORDERS.update({
    "lanes6": (lambda k: _lanes(6, k), "sequential"),
    "lanes12": (lambda k: _lanes(12, k), "tree"),
    "lanes24": (lambda k: _lanes(24, k), "halves"),
    "lanes5": (lambda k: _lanes(5, k), "random"),
    "hilbert": (_hilbert, "tree"),
    "bit_reversed": (_bit_reversed, "tree"),
    "gray": (_gray, "tree"),
    "outside_in": (_outside_in, "tree"),
    "strided": (_strided, "tree"),
    "from_the_middle": (_from_the_middle, "tree"),
    "steps_of_seven": (_steps_of_seven, "tree"),
    "growing": (_growing, "sequential"),
    "drawn_lanes": (_drawn_lanes, "sequential"),
    "nested": (_nested, "tree"),
    "peeled": (_peeled, "halves"),
    "split3": (lambda k: _parts(3, k), "sequential"),
    "split7": (lambda k: _parts(7, k), "random"),
    "blocked24": (lambda k: _blocks(24, k), "sequential"),
})


def _sorted(key, reverse=False):
    """In turn, in an order of its own for every element."""
    def total(a, b):
        t = float32(terms(a, b))
        at = np.argsort(key(t), axis=0, kind="stable")
        return in_turn(np.take_along_axis(t, at[::-1] if reverse else at, axis=0))

    return total


def _signs_apart(a, b):
    t = float32(terms(a, b))
    return add32(in_turn(np.where(t < 0, 0.0, t)), in_turn(np.where(t < 0, t, 0.0)))


def _rotated(a, b):
    t = terms(a, b)
    k, m, n = t.shape
    start = np.arange(m)[:, None] * 3 + np.arange(n)[None, :]
    return in_turn(np.take_along_axis(t, (np.arange(k)[:, None, None] + start) % k, axis=0))


def _doubled(a, b):
    """Double-double: two float64 numbers hold the sum."""
    high = low = np.zeros((a.shape[0], b.shape[1]))
    for t in terms(a, b):
        s, rest = two_sum(high, t)
        high, low = two_sum(s, np.where(np.isfinite(s), low + rest, 0.0))
        low = np.where(np.isfinite(high), low, 0.0)
    return to_odd(high, low)


def _extended(a, b):
    """An accumulator of 64 bits, as x87 has it."""
    high = low = np.zeros((a.shape[0], b.shape[1]))
    for t in terms(a, b):
        s, rest = two_sum(high, t)
        high, low = two_sum(s, np.where(np.isfinite(s), low + rest, 0.0))
        quantum = np.ldexp(1.0, np.maximum(np.frexp(high)[1] - 64, -1070))
        low = np.where(np.isfinite(high), np.rint(low / quantum) * quantum, 0.0)
    return to_odd(high, low)


def _tree(t):
    while len(t) > 1:
        pairs = len(t) // 2 * 2
        t = np.concatenate([add32(t[0:pairs:2], t[1:pairs:2]), t[pairs:]])
    return t[0]


def _trees_in_f64(a, b):
    t = float32(terms(a, b))
    return in_turn(np.stack([_tree(t[at:at + 16]) for at in range(0, len(t), 16)]), lambda s, u: s + u)


def _f64_in_f32(a, b):
    t = terms(a, b)
    return in_turn(np.stack([t[at:at + 12].sum(axis=0) for at in range(0, len(t), 12)]))


def _kahan(a, b):
    total = lost = np.zeros((a.shape[0], b.shape[1]))
    plain = total
    for t in float32(terms(a, b)):
        y = float32(t - lost)
        new = add32(total, y)
        lost, total, plain = float32(float32(new - total) - y), new, add32(plain, t)
    return np.where(np.isfinite(total), total, plain)


def _neumaier(a, b):
    total = lost = np.zeros((a.shape[0], b.shape[1]))
    plain = total
    for t in float32(terms(a, b)):
        new = add32(total, t)
        total_first = np.abs(total) >= np.abs(t)
        rest = np.where(total_first, float32(float32(total - new) + t), float32(float32(t - new) + total))
        lost, total, plain = add32(lost, rest), new, add32(plain, t)
    total = add32(total, lost)
    return np.where(np.isfinite(total), total, plain)


def _by_fours(a, b):
    """acc + ((p0 + p1) + (p2 + p3))."""
    t = float32(terms(a, b))
    return in_turn(np.stack([_tree(t[at:at + 4]) for at in range(0, len(t), 4)]))


def _pairs(a, b):
    """Each pair of products by one rounded product and one fused step, then added."""
    t = terms(a, b)
    t = np.concatenate([t, np.zeros((len(t) % 2, *t.shape[1:]))])
    return in_turn(add32(float32(t[0::2]), t[1::2]))


def _two_orders(a, b):
    """Eight rows in lanes, the rest in turn, fused at the edge alone."""
    y = accumulate(a, b, Recipe(order="lanes16", prod="float32"))
    y[8:] = accumulate(a[8:], b, Recipe(order="reversed"))
    return y


def _columns_differ(a, b):
    orders = ("hilbert", "lanes12", "split3", "gray", "peeled")
    return np.concatenate([accumulate(a, b[:, at:at + 1], Recipe(order=orders[at % 5])) for at in range(b.shape[1])], axis=1)


def _payload(a, b):
    y = good(a, b)
    return np.where(np.isnan(y), np.uint64(0xFFFC_0000_2000_0000).view(np.float64), y)


def table():
    for order in MORE_ORDERS:
        yield recipe(f"f32_{order}", "honest", f"float32 multiply and add, {order}", order=order, prod="float32")
    for order in ("lanes6", "lanes12", "lanes24", "split3", "hilbert", "nested"):
        yield recipe(f"fma_{order}", "honest", f"float32 fused multiply-add, {order}", order=order, inputs=F32)
    plain = words("as_is", acc="float32")
    for name, why, total, truth in (
        ("sorted_up", "float32, the smallest products first", _sorted(np.abs), plain),
        ("sorted_down", "float32, the largest products first", _sorted(np.abs, True), plain),
        ("sorted_signed", "float32, from the most negative product up", _sorted(lambda t: t), plain),
        ("signs_apart", "float32, positive and negative products apart", _signs_apart, plain),
        ("permuted_each", "float32, an order drawn for every element",
         _sorted(lambda t: np.random.default_rng(5).random(t.shape)), plain),
        ("rotated", "float32, every element begins elsewhere", _rotated, plain),
        ("doubled", "double-double", _doubled, {}),
        ("extended", "an accumulator of 64 bits", _extended, {}),
        ("trees_in_f64", "float32 trees of 16, added in float64", _trees_in_f64, {}),
        ("f64_in_f32", "float64 sums of 12, added in float32", _f64_in_f32, {}),
        ("kahan", "Kahan's sum of float32 products", _kahan, {}),
        ("neumaier", "Neumaier's sum of float32 products", _neumaier, {}),
        ("by_fours", "float32, trees of four in turn", _by_fours, plain),
        ("pairs", "float32, fused pairs in turn", _pairs, plain),
        ("two_orders", "float32, two orders in one result", _two_orders, plain),
        ("columns_differ", "float32, five orders, column by column", _columns_differ, plain),
        ("nan_payload", "float32, NaN with a payload and a sign", _payload, plain)):
        yield made(name, "honest", why, total, truth=truth)
    for acc in ("p25", "p32", "p40", "p26_rz", "p32_rz", "p28_sr"):
        yield recipe(f"acc_{acc}", "honest", f"an accumulator of {acc}", acc=acc, order="lanes6")
    yield recipe("parts3_float64", "honest", "three float32 parts added in float64", order="split3", combine="float64")
    yield recipe("parts7_p32", "honest", "seven float32 parts added in 32 bits", order="split7", combine="p32", inputs=HALF)
    for op, orders in (("sum", ("lanes6", "hilbert", "split3", "growing")), ("mean", ("lanes12", "outside_in")),
                       ("linear", ("lanes24", "strided", "split7")), ("backward", ("lanes6", "drawn_lanes"))):
        for order in orders:
            yield recipe(f"{op}_{order}", "honest", f"float32, {order}", op=op, order=order, prod="float32")
    yield made("sum_sorted_up", "honest", "the smallest first", _sorted(np.abs), op="sum", truth=words("as_is", acc="float32", op="sum"))
    yield made("sum_kahan", "honest", "Kahan's sum", _kahan, op="sum")
    yield made("mean_extended", "honest", "an accumulator of 64 bits", _extended, op="mean")
