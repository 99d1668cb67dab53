"""Fresh, a second set: honest orders of odd sizes, narrow steps of 17 to 23 bits, bugs in some elements alone (q_...)."""

import numpy as np
from apart_tools import cut, filled, parts_of, tree
from fresh import _norm, _rms, _softmax, _tree_rows
from heldout_tools import ALL, F32, HALF, add32, adding, blockwise, good, in_turn, largest, terms, under, words
from kernel import Kernel
from ops import PRODUCTS
from products import MORE_ORDERS, Recipe, accumulate, finish, _blocks, _lanes, _parts
from rounding import STORES, add_odd, bfloat16, float16, float32 as r, ranged, rounding

tf32 = rounding("tf32")
PLAIN = words("as_is", acc="float32")
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}
OTHER = words("other", acc="float32")
FIRST_OTHER = words("other", "as_is", acc="float32")
SECOND_OTHER = words("as_is", "other", acc="float32")


made, recipe, chain, whole = under("q_")


def _dp_pairs(k):
    """vdpbf16ps: 16 lanes of pairs, the odd element of a pair before the even one."""
    index = np.concatenate([np.arange(k), np.full(-k % 32, -1)]).reshape(-1, 16, 2)
    return index[:, :, ::-1].transpose(0, 2, 1).reshape(-1, 16)


MORE_ORDERS.update({
    "q_lanes3": (lambda k: _lanes(3, k), "sequential"),
    "q_blocked5": (lambda k: _blocks(5, k), "sequential"),
    "q_blocked48": (lambda k: _blocks(48, k), "tree"),
    "q_two_from_end": (lambda k: _lanes(2, k)[::-1, ::-1], "sequential"),
    "q_split7": (lambda k: _parts(7, k), "halves"),
    "q_split3": (lambda k: _parts(3, k)[:, ::-1], "sequential"),
    "q_tree_from_end": (lambda k: np.arange(k)[None, ::-1], "tree"),
    "q_pairs16": (_dp_pairs, "halves"),
    "q_lanes7_back": (lambda k: _lanes(7, k)[::-1], "tree"),
    "q_blocked12": (lambda k: _blocks(12, k)[::-1], "sequential"),
})


# honest
def _two_smallest(a, b):
    """Insertion: always the two smallest of what is left are added (Higham)."""
    t = r(terms(a, b))
    while len(t) > 1:
        at = np.argsort(np.abs(t), axis=0, kind="stable")
        t = np.take_along_axis(t, at, axis=0)
        t = np.concatenate([add32(t[0], t[1])[None], t[2:]])
    return t[0]


def _sorted_lanes(a, b):
    t = r(terms(a, b))
    t = np.take_along_axis(t, np.argsort(-np.abs(t), axis=0, kind="stable"), axis=0)
    return tree(in_turn(filled(t, 4)))


def _babuska(a, b):
    """Kahan, Babuska and Neumaier over sums of neighbours, fused."""
    pairs = np.stack([in_turn(piece) for piece in cut(terms(a, b), 2)])
    total = lost = np.zeros(pairs.shape[1:])
    for t in pairs:
        new = add32(total, t)
        left = np.where(np.abs(total) >= np.abs(t), r(r(total - new) + t), r(r(t - new) + total))
        total, lost = new, r(lost + np.where(np.isfinite(left), left, 0.0))
    return add32(total, lost)


def _pairs_across(a, b):
    """Neighbours' exact products rounded once as a pair, added into three float32 accumulators."""
    t = terms(a, b)
    pairs = np.stack([r(add_odd(piece[0], piece[1])) if len(piece) == 2 else r(piece[0]) for piece in cut(t, 2)])
    return in_turn(in_turn(filled(pairs, 3)))


def _difference_of_products(a, b):
    """Kahan's ab + cd with its error by a fused step, pairs added in turn."""
    parts = []
    for piece in cut(terms(a, b), 2):
        if len(piece) == 1:
            parts.append(r(piece[0]))
            continue
        w = r(piece[1])
        e = r(piece[1] - w)
        parts.append(add32(r(add_odd(piece[0], w)), np.where(np.isfinite(e), e, 0.0)))
    return in_turn(np.stack(parts))


def _starts_with_product(a, b):
    """The first product is multiplied, not added to 0: a zero keeps its sign."""
    t = terms(a, b)
    y = r(t[0])
    for each in t[1:]:
        y = add32(y, each)
    return y


def _tail_first(a, b):
    t = terms(a, b)
    left = len(t) % 8
    y = np.zeros(t.shape[1:])
    for each in t[:left]:
        y = add32(y, each)
    return add32(y, tree(in_turn(filled(t[left:], 8)))) if len(t) > left else y


def _lanes_divided(a, b, bias):
    lanes = in_turn(filled(terms(a, b), 3))
    return in_turn(r(lanes / a.shape[1]))


def _log2e_softmax(x, w, bias, eps):
    """exp2(fma(x, log2 e, -max log2 e)), as FlashAttention."""
    log2e = r(np.float64(1.4426950408889634))
    top = r(np.max(x, axis=1, keepdims=True) * log2e)
    e = r(np.exp2(r(add_odd(x * log2e, np.broadcast_to(-top, x.shape)))))
    return r(e * r(1 / _tree_rows(e)))


def honest():
    for name, why, more in (
        ("fma_blocked5", "fused, blocks of 5", {"order": "q_blocked5", "inputs": F32}),
        ("f32_blocked48", "blocks of 48, joined as a tree", {"order": "q_blocked48", "prod": "float32"}),
        ("fma_lanes3", "three fused accumulators", {"order": "q_lanes3"}),
        ("f32_two_from_end", "odd and even accumulators, from the end", {"order": "q_two_from_end", "prod": "float32"}),
        ("fma_split7", "split-K of 7, joined by halves", {"order": "q_split7"}),
        ("f32_split3", "split-K of 3, the last part first", {"order": "q_split3", "prod": "float32"}),
        ("f32_tree_from_end", "a tree from the end", {"order": "q_tree_from_end", "prod": "float32"}),
        ("fma_pairs16", "vdpbf16ps: 16 lanes, odd before even", {"order": "q_pairs16"}),
        ("acc_p24_rna", "float32 sums with ties away", {"acc": "p24_rna", "order": "q_lanes3", "accepted": True}),
        ("acc_p24_rod", "float32 sums to odd", {"acc": "p24_rod", "order": "q_blocked5", "accepted": True})):
        yield recipe(name, "narrow" if "accepted" in more else "honest", why, **more)
    for name, why, total, truth in (
        ("two_smallest", "always the two smallest are added", _two_smallest, PLAIN),
        ("sorted_lanes", "terms by falling size, in four lanes", _sorted_lanes, PLAIN),
        ("babuska", "Kahan-Babuska-Neumaier over pairs", _babuska, {}),
        ("pairs_across", "exact pairs in float32, three accumulators", _pairs_across, PLAIN),
        ("difference_of_products", "Kahan's ab + cd, pairs in turn", _difference_of_products, {}),
        ("starts_with_product", "the first product is not added to 0", _starts_with_product, PLAIN),
        ("tail_first", "the tail of 8 before the main loop", _tail_first, PLAIN)):
        yield made(name, "honest", why, total, truth=truth)
    yield recipe("sum_lanes7_back", "honest", "seven strides, from the end", op="sum", order="q_lanes7_back")
    yield whole("mean", "lanes_divided", "honest", "three lanes, each divided by n", _lanes_divided)
    yield recipe("linear_split3", "honest", "split-K of 3", op="linear", order="q_split3", prod="float32")
    yield recipe("backward_blocked12", "honest", "12 samples at once, backwards", op="backward", order="q_blocked12")
    yield chain("softmax", "fma_log2e", "honest", "exp2 of a fused step, as FlashAttention", _log2e_softmax)


# narrow
def _drawn4(call):
    a, b, _, shape = PRODUCTS["matmul"](call)
    with np.errstate(all="ignore"):
        y = good(a, b)
        p = STORES[call.dtype][1]
        unit = 2.0**(np.frexp(np.where(np.isfinite(y) & (y != 0), y, 1.0))[1] - p)
        draw = np.random.default_rng(5).integers(0, 16, y.shape) / 16
        y = np.where(np.isfinite(y), np.copysign(np.floor(np.abs(y) / unit + draw) * unit, y), y)
        return finish(y, Recipe(), call.dtype).reshape(shape)


def _spilled(name, every):
    n = rounding(name)
    return lambda a, b: _spill(terms(a, b), n, every)


def _spill(t, n, every):
    y = np.zeros(t.shape[1:])
    for at, piece in enumerate(cut(t, every)):
        y = n(y) if at else y
        for each in piece:
            y = add32(y, each)
    return y


def _last_three(name):
    def total(a, b):
        t, y = terms(a, b), np.zeros((a.shape[0], b.shape[1]))
        for at, each in enumerate(t):
            y = (adding(name) if at >= len(t) - 3 else add32)(y, each)
        return y

    return total


def _one_row(low):
    def total(a, b):
        y, at = good(a, b).copy(), min(5, len(a) - 1)
        y[at] = low(a[at:at + 1], b)[0]
        return y

    return total


def _one_column(low):
    def total(a, b):
        y, at = good(a, b).copy(), b.shape[1] // 2
        y[:, at:at + 1] = low(a, b[:, at:at + 1])
        return y

    return total


def _small_products(a, b):
    t = terms(a, b)
    return in_turn(np.where(np.abs(t) < 0.125, rounding("p16")(t), t))


def _int8_groups(a, b):
    """int8 of 12 neighbours along K under one bfloat16 scale, both operands."""
    def change(v):
        scale = bfloat16(largest(v) / 127.0)
        return np.where(np.isfinite(v), np.clip(np.rint(v / scale), -127, 127) * scale, v)

    return good(blockwise(a, 1, 12, change), blockwise(b, 0, 12, change))


def _weight_e4m3(a, b):
    def change(v):
        scale = float16(largest(v) / 448.0)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        return np.where(np.isfinite(v), ranged(4, low=-6)(np.clip(v / scale, -448, 448)) * scale, v)

    return good(a, blockwise(b, 0, 5, change))


def _two_bfloat16(x):
    high = bfloat16(x)
    low = bfloat16(np.where(np.isfinite(high), x - high, 0.0))
    return high, low


def _first_in_two(a, b):
    """The first operand as two bfloat16, the second as it is, sums apart."""
    high, low = _two_bfloat16(a)
    return add32(good(high, b), good(low, b))


def narrow():
    for name, why, more in (
        ("acc_p23_lanes3", "three accumulators of 23 bits", {"acc": "p23", "order": "q_lanes3"}),
        ("acc_p22_tree", "a tree in 22 bits", {"acc": "p22", "order": "q_tree_from_end"}),
        ("acc_p20_rna", "20 bits, ties away, blocks of 5", {"acc": "p20_rna", "order": "q_blocked5"}),
        ("acc_p23_rz", "cut to 23 bits", {"acc": "p23_rz", "order": "lanes8"}),
        ("acc_p19_rod", "19 bits to odd", {"acc": "p19_rod", "order": "q_blocked5"}),
        ("prod_p22", "products in 22 bits", {"prod": "p22", "order": "q_lanes3", "inputs": F32}),
        ("prod_p21_rz", "products cut to 21 bits", {"prod": "p21_rz", "order": "halves", "inputs": F32}),
        ("prod_p20_rod", "products to odd in 20 bits", {"prod": "p20_rod", "order": "q_split7", "inputs": F32}),
        ("in_p22_rna", "operands to 22 bits, ties away", {"a": "p22_rna", "b": "p22_rna", "order": "q_lanes3", "inputs": F32}),
        ("in_first_p20", "the first operand to 20 bits, fused", {"a": "p20", "order": "q_split7", "inputs": F32}),
        ("in_second_p18_rod", "the second operand to odd in 18 bits", {"b": "p18_rod", "order": "lanes16", "inputs": F32}),
        ("in_first_p23_sr", "the first operand drawn to 23 bits", {"a": "p23_sr", "order": "lanes8", "inputs": F32}),
        ("in_second_p17", "the second operand to 17 bits, products rounded", {"b": "p17", "prod": "float32", "order": "q_blocked48",
                                                                             "inputs": F32}),
        ("out_rna_lanes3", "float32 sums, the store rounds ties away", {"out": "rna", "order": "q_lanes3", "inputs": HALF}),
        ("out_ftz_split3", "float32 sums, the store flushes", {"out": "ftz", "order": "q_split3"}),
        ("mid_p13", "through 13 bits before the store", {"mid": "p13", "order": "q_split3"}),
        ("mid_p15_rna", "through 15 bits, ties away", {"mid": "p15_rna", "order": "lanes8"}),
        ("mid_p19_sr", "through 19 bits, stochastic", {"mid": "p19_sr", "order": "lanes16"}),
        ("mid_p20_rod", "to odd in 20 bits before the store", {"mid": "p20_rod", "order": "lanes8", "inputs": F32}),
        ("acc_p21_mid_p14", "21 bits, then 14", {"acc": "p21", "mid": "p14", "order": "q_lanes3"}),
        ("join_bfloat16", "three parts kept and added in bfloat16", {"combine": "bfloat16", "order": "q_split3"}),
        ("join_float16", "seven parts kept and added in float16", {"combine": "float16", "order": "q_split7"}),
        ("join_tf32", "seven parts kept and added in tf32", {"combine": "tf32", "order": "q_split7"})):
        yield recipe(name, "narrow", why, **more)
    yield Kernel(name="q_out_drawn4", op="matmul", kind="narrow", why="the store draws with four random bits", run=_drawn4,
                 words={**INSIDE, "acc": "float32", "prod": "exact", "out": "other"}, inputs=HALF)
    for name, why, total, truth, inputs in (
        ("spilled_tf32_24", "the sum spilled in tf32 between blocks of 24", _spilled("tf32", 24), INSIDE, ALL),
        ("spilled_p22_12", "the sum spilled in 22 bits between blocks of 12", _spilled("p22", 12), INSIDE, ALL),
        ("last_three_p16", "the last three additions in 16 bits", _last_three("p16"), INSIDE, ALL),
        ("row_five_p20", "one row from an accumulator of 20 bits", _one_row(
            lambda a, b: accumulate(a, b, Recipe(acc="p20"))), INSIDE, ALL),
        ("middle_column_p16", "one column of operands in 16 bits", _one_column(
            lambda a, b: good(rounding("p16")(a), rounding("p16")(b))), {}, F32),
        ("small_products_p16", "products below 1/8 in 16 bits", _small_products, INSIDE, F32),
        ("int8_groups", "int8, groups of 12, scales in bfloat16", _int8_groups, OTHER, ALL),
        ("weight_e4m3", "weights in e4m3, groups of 5, scales in float16", _weight_e4m3, SECOND_OTHER, F32),
        ("first_in_two_bfloat16", "the first operand as two bfloat16", _first_in_two, FIRST_OTHER, F32)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield recipe("sum_acc_p22", "narrow", "three sums of 22 bits", op="sum", acc="p22", order="q_lanes3")
    yield recipe("mean_acc_p21", "narrow", "21 bits, then divided", op="mean", acc="p21", order="lanes8")
    yield recipe("linear_acc_p20_rz", "narrow", "cut to 20 bits", op="linear", acc="p20_rz", order="q_split3")
    yield recipe("backward_in_x_p19", "narrow", "saved activations in 19 bits", op="backward", b="p19", order="lanes8", inputs=F32)
    yield whole("mean", "reciprocal_p16", "narrow", "times 1/n in 16 bits",
                lambda a, b, bias: r(good(a, b) * rounding("p16")(1 / a.shape[1])))
    for op, name, why, f in (
        ("softmax", "reciprocal_p16", "times a reciprocal of 16 bits", lambda x, w, bias, eps: _recip_softmax(x, "p16")),
        ("softmax", "exp_p20", "exponentials in 20 bits", _softmax(exp=lambda d: rounding("p20")(np.exp(d)))),
        ("layer_norm", "rstd_p19", "the inverse deviation in 19 bits", _norm(rsqrt=lambda v: rounding("p19")(1 / np.sqrt(v)))),
        ("rms_norm", "rstd_p17_rz", "the inverse root cut to 17 bits", _rms(rsqrt=lambda v: rounding("p17_rz")(1 / np.sqrt(v))))):
        yield chain(op, name, "narrow", why, f)
    yield chain("silu", "reciprocal_p17", "narrow", "x times a reciprocal of 17 bits",
                lambda x, w, bias, eps: r(x * rounding("p17")(1 / r(1 + r(np.exp(-x))))))


def _recip_softmax(x, name):
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    return r(e * rounding(name)(1 / _tree_rows(e)))


# wrong
def _dropped_some(a, b):
    t = terms(a, b)
    rows, columns = np.indices(t.shape[1:])
    t[min(2, len(t) - 1), (rows + columns) % 5 == 0] = 0.0
    return in_turn(t)


def _doubled_some(a, b):
    y = good(a, b).copy()
    at = min(1, b.shape[1] - 1)
    y[:, at] = add32(y[:, at], r(a[:, -1] * b[-1, at]))
    return y


def _half_stale_column(a, b):
    y = good(a, b).copy()
    if y.shape[1] > 5:
        y[len(y) // 2:, 5] = y[len(y) // 2:, 4]
    return y


def _swapped_k_tiles(a, b):
    """Columns from the ninth read the weight's first two tiles of 8 along K exchanged."""
    k = len(b)
    if k < 16:
        return good(a, b)
    other = np.concatenate([b[8:16], b[:8], b[16:]])
    late = np.arange(b.shape[1]) >= 8
    return good(a, b) if not late.any() else np.where(late, good(a, other), good(a, b))


def wrong():
    for name, why, total in (
        ("dropped_some", "the third term missing in every fifth element", _dropped_some),
        ("doubled_some", "the last term twice in one column", _doubled_some),
        ("half_stale_column", "half a column is its neighbour", _half_stale_column),
        ("swapped_k_tiles", "the weight's first tiles exchanged for late columns", _swapped_k_tiles)):
        yield made(name, "wrong", why, total)
    yield made("sum_dropped_some", "wrong", "the third term missing in every fifth row", _dropped_some, op="sum")
    yield whole("mean", "one_more_row", "wrong", "every seventh row divided by n + 1", lambda a, b, bias: r(
        good(a, b) / (a.shape[1] + (np.arange(len(a))[:, None] % 7 == 6))))
    yield chain("layer_norm", "count_n_plus_1", "wrong", "the variance divided by n + 1", _norm(count=lambda k: k + 1))
    yield chain("layer_norm", "eps_over_n", "wrong", "eps divided by n", lambda x, w, bias, eps: _norm(
        eps_of=lambda e: e / x.shape[1])(x, w, bias, eps))
    yield chain("softmax", "log2e_five_digits", "wrong", "exp2 with 1.4427", _softmax(exp=lambda d: r(np.exp2(r(d * 1.4427)))))
    yield chain("gelu", "tanh_five_digits", "wrong", "the tanh form with 0.79788 and 0.0447", lambda x, w, bias, eps: r(
        r(0.5 * x) * r(1 + r(np.tanh(r(0.79788 * r(x + r(0.0447 * r(x * r(x * x))))))))))


def table():
    for part in (honest, narrow, wrong):
        yield from part()
