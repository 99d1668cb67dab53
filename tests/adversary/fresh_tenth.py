"""Fresh, a tenth set: bits by themselves, adders with latency, lattices, tapered numbers, stale and missing pieces (m_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

from dataclasses import replace
from math import factorial

import numpy as np
from apart_tools import cut, filled, once, parts_of, tree, two_sum_in
from fresh import _norm, _tree_rows
from fresh_fifth import fma
from fresh_fourth import E2M1, FIRST_OTHER, INSIDE, OTHER, PLAIN, SECOND_OTHER, _deviated, _inverse
from fresh_ninth import LN2, OTHER_SUM, SUMMED, _kept, _polynomial, _shifted
from heldout_operands import _posit, _scaled
from heldout_tools import ALL, F32, HALF, add32, blockwise, good, in_turn, largest, terms, under, words
from ops import _ERFC, PRODUCTS
from products import Recipe, finish
from rounding import STORES, float16, float32 as r, ranged, rounding

made, recipe, chain, whole = under("m_")


def _finite(a, b):
    """Which results have no operand that is infinite or NaN."""
    return np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)


def _digits(x):
    """(sign, 24-bit integer, exponent of its lowest bit) of finite float32 numbers, 0 elsewhere."""
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.sign(fraction), (np.abs(fraction) * 2.0**24).astype(np.int64), exponent - 24


# honest sums
def _power(x, axis):
    return np.ldexp(1.0, np.frexp(largest(x, axis))[1])


def _bit_planes(a, b):
    """The second operand bit by bit: 24 sums of elements of the first, added in float32 from the lowest bits' on."""
    s, t = _power(a, 1), _power(b, 0)
    sign, integer, unit = _digits(b / t)
    x, y = np.where(np.isfinite(a), a, 0.0) / s, np.zeros((a.shape[0], b.shape[1]))
    for bit in range(24):
        y = add32(y, r(x @ (sign * np.ldexp((integer >> bit & 1).astype(float), unit + bit))))
    return np.where(_finite(a, b), y * (s * t), good(a, b))


def _karatsuba(a, b):
    """Operands as two numbers of 12 bits, three float64 products: that of the sums less the other two is the middle one."""
    def halves(x):
        sign, integer, unit = _digits(x)
        return sign * np.ldexp((integer >> 12).astype(float), unit), sign * np.ldexp((integer & 4095).astype(float), unit)

    (high, low), (top, faint) = halves(a), halves(b)
    upper, lower = high @ top, low @ faint
    middle = (high + low) @ (top + faint) - upper - lower
    return np.where(_finite(a, b), upper * 2.0**24 + middle * 2.0**12 + lower, good(a, b))


def _carry_save(a, b):
    """Integers of 2^-46 of the largest product; a sum and a carry word, between which no carry runs until the end."""
    t = terms(a, b)
    unit = np.ldexp(1.0, np.frexp(largest(t, 0))[1] - 46)
    one = two = np.zeros(t.shape[1:], np.int64)
    for each in np.rint(np.where(np.isfinite(t), t, 0.0) / unit).astype(np.int64):
        one, two = one ^ two ^ each, (one & two | one & each | two & each) << 1
    return np.where(np.isfinite(t).all(axis=0), (one + two) * unit[0], good(a, b))


def _adder_of_five(a, b):
    """One float32 adder that takes five cycles: a product arrives in each, and the two that have waited longest are added."""
    t = r(terms(a, b))
    waiting, inside, cycle = [], [], 0
    while cycle < len(t) or inside or len(waiting) > 1:
        waiting += [t[cycle]] if cycle < len(t) else []
        if inside and inside[0][0] == cycle:
            waiting.append(inside.pop(0)[1])
        if len(waiting) > 1:
            inside.append((cycle + 5, add32(waiting.pop(0), waiting.pop(0))))
        cycle += 1
    return waiting[0]


def _logarithms(a, b):
    """Products as 2^(log2 |a| + log2 |b|), all of it in float64; their sum in float32."""
    def logarithm(x):
        return np.log2(np.where(np.isfinite(x) & (x != 0), np.abs(x), 1.0))

    t = terms(a, b)
    usual = np.isfinite(t) & (t != 0)
    return in_turn(np.where(usual, np.copysign(np.exp2(logarithm(a).T[:, :, None] + logarithm(b)[:, None, :]), t), t))


def _sparse_rows(a, b):
    """Nonzero elements of a row go to three fused accumulators by turns; a 0 is skipped if the weights beside it are finite."""
    y = []
    calm = np.isfinite(b).all(axis=1)
    for row in a:
        kept = np.flatnonzero((row != 0) | ~calm)
        t = terms(row[None, kept], b[kept])
        y.append(tree(in_turn(filled(t, 3))) if len(t) else np.zeros((1, b.shape[1])))
    return np.concatenate(y)


def _histogram(a, b):
    """Equal terms are counted; each value times its count, from the lowest value on."""
    def row_of(row):
        values, counts = np.unique(row[~np.isnan(row)], return_counts=True)
        return in_turn(r(values * counts)[:, None])

    return np.where(np.isnan(a).any(axis=1, keepdims=True), np.nan, np.stack([row_of(row) for row in a]))


def _mean_from_first(a, b, bias):
    """The first term and the mean of what the others differ from it by, in float64."""
    y = a[:, :1] + (a - a[:, :1]).sum(axis=1, keepdims=True) / a.shape[1]
    return np.where(np.isfinite(y), y, r(good(a, b) / a.shape[1]))


def _bias_to_nearest_lane(a, b, bias):
    """Four fused accumulators; the bias joins the one that is nearest to it in size."""
    lanes = in_turn(filled(terms(a, b), 4))
    nearest = np.abs(np.abs(lanes) - np.abs(bias)).argmin(axis=0)
    return tree(np.where(np.arange(4)[:, None, None] == nearest, add32(lanes, bias), lanes))


def _switches_of_five(a, b):
    """25 ranks; a switch of the network adds what comes from five ports exactly and rounds once."""
    parts = parts_of(a, b, 25, lambda x, w: in_turn(terms(x, w)))
    while len(parts) > 1:
        parts = np.stack([r(once(list(piece))) for piece in cut(parts, 5)])
    return parts[0]


def honest_sums():
    for name, why, total, truth in (
        ("bit_planes", "24 planes of weights' bits, their sums added from the lowest", _bit_planes, INSIDE),
        ("karatsuba_wide", "halves of 12 bits, three float64 products, as Karatsuba", _karatsuba, INSIDE),
        ("carry_save", "integers of 2^-46 of the largest product, a sum and a carry word", _carry_save, INSIDE),
        ("adder_of_five_cycles", "one adder with a latency of five, fed by what waits", _adder_of_five, PLAIN),
        ("logarithms_wide", "products by float64 logarithms, a float32 sum", _logarithms, PLAIN),
        ("sparse_rows", "zeros skipped, the rest to three accumulators by turns", _sparse_rows, PLAIN)):
        yield made(name, "honest", why, total, truth=truth)
    yield made("sum_histogram", "honest", "equal terms counted, values times counts from the lowest", _histogram, op="sum",
               truth=SUMMED)
    yield whole("mean", "from_first", "honest", "the first term and the mean difference from it, in float64", _mean_from_first,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_to_nearest_lane", "honest", "the bias joins that of four accumulators whose size is nearest",
                _bias_to_nearest_lane, truth=PLAIN)
    yield made("backward_switches_of_five", "honest", "25 ranks, five at once in a switch, rounded once", _switches_of_five,
               op="backward", truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _difference_in_two(x, w, bias, eps):
    """x - max as two float32 numbers; the exponential of the first is moved by the second."""
    d, rest = two_sum_in(x, np.broadcast_to(-np.max(x, axis=1, keepdims=True), x.shape))
    e = r(np.exp(d))
    e = fma(e, rest, e)
    return r(e / _tree_rows(e))


def _total_in_int64(x, w, bias, eps):
    """Exponentials as integers of 2^-46, added in 64 bits: the same whatever the threads do."""
    e = r(np.exp(_shifted(x)))
    integers = np.rint(np.where(np.isfinite(e), e, 0.0) * 2.0**46).astype(np.int64)
    return r(e / r(np.where(np.isfinite(e), integers, e).sum(axis=1, keepdims=True) / 2.0**46))


def _sigmoid_tree(x, w, bias, eps):
    """A binary tree over the row: a probability is the product of the sigmoids when computing it, in float64."""
    def split(d):
        if d.shape[1] == 1:
            return d, d * 0.0 + 1
        (left, p), (right, q) = split(d[:, :d.shape[1] // 2]), split(d[:, d.shape[1] // 2:])
        return np.logaddexp(left, right), np.concatenate([p / (1 + np.exp(right - left)), q / (1 + np.exp(left - right))], axis=1)

    return split(np.maximum(x - np.max(x, axis=1, keepdims=True), -10000.0))[1]


def _centring_matrix(x, w, bias, eps):
    """Deviations as the product of the row and I - 1/n, in float64."""
    n = x.shape[1]
    d = x @ (np.eye(n) - 1 / n)
    return d / np.sqrt((d * d).sum(axis=1, keepdims=True) / n + eps) * w + bias


def _moler_morrison(x, w, bias, eps):
    """The root of the sum of squares and n eps by Moler and Morrison's steps from one number to the next, in float64."""
    p = np.full((len(x), 1), np.sqrt(x.shape[1] * eps))
    for column in np.abs(x.T):
        p, q = np.maximum(p, column[:, None]), np.minimum(p, column[:, None])
        for _ in range(4):
            ratio = (q / np.where(p > 0, p, 1.0))**2
            s = ratio / (4 + ratio)
            p, q = p + 2 * s * p, q * s
    plain = r(r(x * r(1 / r(np.sqrt(r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps))))) * w)
    return np.where(np.isfinite(x).all(axis=1, keepdims=True), x / (p / np.sqrt(x.shape[1])) * w, plain)


def _gelu_trapezoids(x):
    """erfc as a sum of trapezoids of width 1/2 with a term for the pole (Matsuta and Ohta), a series below 1/2, in float64."""
    size = np.clip(np.abs(x) * 0.7071067811865476, 0, 40)
    z = np.maximum(size, 0.5)
    total = 1 / z**2 + 2 * sum(np.exp(-n * n / 4) / (n * n / 4 + z * z) for n in range(1, 14))
    pole = 2 / np.expm1(np.minimum(4 * np.pi * z, 700))
    erfc = z / (2 * np.pi) * np.exp(-z * z) * total - np.where(z < 2 * np.pi, pole, 0.0)
    near = np.minimum(size, 0.5)
    series = sum((-1)**n * near**(2 * n + 1) / (factorial(n) * (2 * n + 1)) for n in range(14)) * (2 / np.sqrt(np.pi))
    tail = np.where(size < 0.5, 1 - series, erfc) / 2
    return np.where(np.isnan(x), x, np.where(x > 0, x * (1 - tail), x * tail))


def _silu_doubled(x):
    """The sigmoid of x / 2^14 by a series, its argument doubled 14 times, in float64."""
    u = np.clip(x, -800, 800) / 2.0**15
    s = 0.5 + u * _polynomial(u * u, 62 / 2835, -17 / 315, 2 / 15, -1 / 3, 1.0) / 2
    for _ in range(14):
        s = s * s / (s * s + (1 - s)**2)
    return x * s


def _tanh_briggs(x):
    """e^2|x| as a product of numbers 1 + 2^-k, as Briggs made his tables, in float64; below 2^-6 a series."""
    size = np.clip(np.abs(x), 0, 30)
    n = np.floor(2 * size / LN2)
    rest, q = 2 * size - n * LN2, np.exp2(n)
    for k in range(1, 50):
        taken = rest >= np.log1p(2.0**-k)
        rest, q = np.where(taken, rest - np.log1p(2.0**-k), rest), np.where(taken, q + q * 2.0**-k, q)
    q = q + q * rest
    y = np.where(size < 2.0**-6, size - size**3 / 3 + 2 * size**5 / 15, (q - 1) / (q + 1))
    return np.where(np.isnan(x), x, np.copysign(y, x))


def honest_chains():
    for op, name, why, f in (
        ("softmax", "difference_in_two", "x - max as two float32 numbers", _difference_in_two),
        ("softmax", "total_int64", "exponentials in the sum as integers of 2^-46", _total_in_int64),
        ("softmax", "tree_of_sigmoids", "products of sigmoids down a binary tree, in float64", _sigmoid_tree),
        ("layer_norm", "centring_matrix", "deviations as a float64 product with I - 1/n", _centring_matrix),
        ("rms_norm", "moler_morrison", "a norm by Moler and Morrison's steps in float64", _moler_morrison)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "trapezoids", "erfc as a sum of trapezoids, in float64", _gelu_trapezoids),
        ("silu", "sigmoid_doubled", "a sigmoid doubled 14 times, in float64", _silu_doubled),
        ("tanh", "briggs", "an exponential by factors 1 + 2^-k, in float64", _tanh_briggs)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _takum16(x):
    """Linear takums of 16 bits: 12 significant bits next to 1, one less with every doubling of the exponent."""
    fraction, exponent = np.frexp(np.where(np.isfinite(x) & (x != 0), x, 1.0))
    c = exponent - 1
    regime = np.frexp(np.where(c >= 0, c + 1, -c))[1] - 1
    unit = np.ldexp(1.0, c - (11 - regime))
    return np.where(np.isfinite(x) & (x != 0), r(np.rint(x / unit) * unit), x)


def _spectra(a, b):
    """Parseval: spectra of rows and columns, each number of them in 18 bits, multiplied and added in float32."""
    n = rounding("p18")

    def spectrum(x, axis):
        y = np.fft.rfft(x, axis=axis)
        return n(y.real), n(y.imag)

    (c, s), (p, q) = spectrum(a, 1), spectrum(b, 0)
    k = a.shape[1]
    twice = np.where((np.arange(c.shape[1]) == 0) | (2 * np.arange(c.shape[1]) == k), 1.0, 2.0)
    return r(good(np.concatenate([c * twice, s * twice], axis=1), np.concatenate([p, q])) / k)


def _super_blocks(x, axis, rows, change):
    """change(blocks of 256 along `axis`, each as so many rows)."""
    def of(blocks):
        return change(blocks.reshape(*blocks.shape[:-1], rows, -1)).reshape(blocks.shape)

    return _kept(x, r(blockwise(np.where(np.isfinite(x), x, 0.0), axis, 256, of)))


def _over(x, scale):
    return x / np.where(scale > 0, scale, 1.0)


def _q4_k(blocks):
    """llama.cpp's Q4_K: 4 bits, for each 32 a scale and an offset of 6 bits, of these one float16 scale each per 256."""
    low = np.minimum(blocks.min(axis=-1, keepdims=True), 0.0)
    step = (blocks.max(axis=-1, keepdims=True) - low) / 15

    def six(x):
        unit = float16(x.max(axis=-2, keepdims=True) / 63)
        return unit * np.clip(np.rint(_over(x, unit)), 0, 63)

    step, low = six(step), six(-low)
    return step * np.clip(np.rint(_over(blocks + low, step)), 0, 15) - low


def _q6_k(blocks):
    """llama.cpp's Q6_K: 6 bits, for each 16 a scale of 8 bits, of these one float16 scale per 256."""
    scale = np.abs(blocks).max(axis=-1, keepdims=True) / 31
    unit = float16(scale.max(axis=-2, keepdims=True) / 127)
    scale = unit * np.clip(np.rint(_over(scale, unit)), 0, 127)
    return scale * np.clip(np.rint(_over(blocks, scale)), -32, 31)


def _drum(x):
    """The leading 12 bits, the last of them set: a multiplier that is short but unbiased. A number of no more than 12 bits is kept."""
    cut_ = rounding("p11_rz")(x)
    unit = np.ldexp(1.0, np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 12)
    return np.where(np.isfinite(x) & (x != cut_), cut_ + np.copysign(unit, x), x)


def _mu_law(x):
    """mu-law of 16 bits on the largest of a row."""
    top = largest(x, 1)
    code = np.rint(32767 * np.log1p(255 * np.abs(np.where(np.isfinite(x), x, 0.0)) / top) / np.log(256))
    return _kept(x, r(np.copysign(np.expm1(code / 32767 * np.log(256)) / 255 * top, x)))


def _residues_short(a, b):
    """Ozaki's second scheme with moduli enough for 17 bits: integers of 2^-16 of a row's or column's largest, summed exactly."""
    def integers(x, axis):
        unit = np.ldexp(1.0, np.frexp(largest(x, axis))[1] - 16)
        return np.rint(np.where(np.isfinite(x), x, 0.0) / unit), unit

    (x, s), (w, t) = integers(a, 1), integers(b, 0)
    return np.where(_finite(a, b), r(x @ w * (s * t)), good(a, b))


def _converter(a, b):
    """An analog crossbar of 64 rows: each sum of 64 terms through a converter of 14 bits, which none exceeds."""
    unit = 64 * largest(a, 1) * largest(b, 0) / 2.0**13
    sums = [good(a[:, at:at + 64], b[at:at + 64]) for at in range(0, a.shape[1], 64)]
    return in_turn(np.stack([_kept(each, r(np.rint(each / unit) * unit)) for each in sums]))


def _saved_as_differences(a, b):
    """After each 32 terms the sum is saved as its float16 difference from what was saved before."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for piece in cut(terms(a, b), 32):
        y = add32(y, float16(r(in_turn(np.concatenate([y[None], piece])) - y)))
    return y


def _seven_digits(x):
    """As a text of seven decimal digits has it."""
    finite = np.where(np.isfinite(x) & (x != 0), x, 1.0)
    unit = 10.0**(np.floor(np.log10(np.abs(finite))) - 6)
    return np.where(np.isfinite(x) & (x != 0), r(np.rint(finite / unit) * unit), x)


def _lattice(x):
    """Eight at once along K to the nearest point of the lattice E8, at an eighth of the column's largest (QuIP#)."""
    def even(v):
        y = np.rint(v)
        odd = y.sum(axis=-1, keepdims=True) % 2 != 0
        worst = np.arange(8) == np.abs(v - y).argmax(axis=-1)[..., None]
        return np.where(odd & worst, y + np.where(v > y, 1.0, -1.0), y)

    def nearest(v):
        one, two = even(v), even(v - 0.5) + 0.5
        far = [((v - each)**2).sum(axis=-1, keepdims=True) for each in (one, two)]
        return np.where(far[0] <= far[1], one, two)

    unit = largest(x, 0) / 8
    return _kept(x, r(blockwise(np.where(np.isfinite(x), x, 0.0) / unit, 0, 8, nearest) * unit))


def _exponent_bins(a, b):
    """Terms of the same exponent share a bucket of 12 bits; the buckets in float32 from the largest."""
    n, y = rounding("p12"), np.zeros((len(a), 1))
    exponents = np.frexp(np.where(np.isfinite(a), a, np.inf))[1]
    for exponent in np.unique(exponents)[::-1]:
        t = terms(np.where(exponents == exponent, a, 0.0), b)
        y = add32(y, in_turn(t, lambda s, v: n(s + v)))
    return y


def _reciprocal_on_grid(a, b, bias):
    """Times 1/n in steps of 2^-20."""
    return r(r(good(a, b)) * (np.rint(2.0**20 / a.shape[1]) / 2.0**20))


def _turned_mxfp4(a, b):
    """Both operands with signs drawn and a Hadamard matrix per 32 samples, then MXFP4, as one trains in 4 bits."""
    k, more = a.shape[1], -a.shape[1] % 32
    signs = np.random.default_rng(32).choice([-1.0, 1.0], 32)
    turn = np.ones((1, 1))
    while len(turn) < 32:
        turn = np.block([[turn, turn], [turn, -turn]])

    def turned(x):
        blocks = np.concatenate([x, np.zeros((len(x), more))], axis=1).reshape(len(x), -1, 32)
        return r(blocks @ (turn * signs[:, None]) / np.sqrt(32)).reshape(len(x), k + more)

    return good(_scaled(E2M1, 6.0, 1, 32)(turned(a)), _scaled(E2M1, 6.0, 0, 32)(turned(b.T).T))


def narrow_sums():
    posit32, e6, e5 = _posit(32, 2), ranged(24, low=-30, high=31), ranged(24, low=-14, high=15)
    largest16 = float(np.float32(65535.99))

    def range16(x):
        return _kept(x, e5(np.clip(x, -largest16, largest16)))

    for name, why, total, truth, inputs in (
        ("in_posit32", "posits of 32 bits, of fewer than 24 significant ones beyond 2^20",
         lambda a, b: good(posit32(a), posit32(b)), OTHER, F32),
        ("in_takum16", "takums of 16 bits", lambda a, b: good(_takum16(a), _takum16(b)), OTHER, F32),
        ("spectra_p18", "by spectra of rows and columns in 18 bits", _spectra, {}, F32),
        ("weight_q4_k", "weights in Q4_K", lambda a, b: good(a, _super_blocks(b, 0, 8, _q4_k)), SECOND_OTHER, F32),
        ("in_drum12", "12 leading bits, the last one set, as DRUM multiplies", lambda a, b: good(_drum(a), _drum(b)), OTHER, F32),
        ("first_mu_law_16", "the first operand by mu-law in 16 bits", lambda a, b: good(_mu_law(a), b), FIRST_OTHER, F32),
        ("residues_of_17_bits", "17-bit integers modulo small numbers, as Ozaki's second scheme cut short", _residues_short,
         {"in": OTHER["in"]}, F32),
        ("crossbar_converter_14", "sums of 64 terms through a converter of 14 bits", _converter, OTHER_SUM, ALL),
        ("acc_of_6_exponent_bits", "a sum of 24 bits with exponents from -30 to 31",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _kept(s + t, e6(s + t))), OTHER_SUM, ("float32", "bfloat16")),
        ("in_range_of_float16", "operands of 24 bits with the exponents of float16, saturating",
         lambda a, b: good(range16(a), range16(b)), OTHER, F32),
        ("saved_as_float16_differences", "the sum saved after each 32 terms by its float16 difference", _saved_as_differences,
         OTHER_SUM, ALL),
        ("stored_in_seven_digits", "results through a text of seven digits", lambda a, b: _seven_digits(r(good(a, b))),
         words("as_is", acc="float32", mid="other"), F32),
        ("weight_e8_lattice", "weights on the lattice E8, eight at once", lambda a, b: good(a, _lattice(b)), SECOND_OTHER, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield recipe("acc_p23_sr_lanes4", "narrow", "four sums of 23 bits, stochastic", acc="p23_sr", order="lanes4")
    yield recipe("in_p18_rz_by_bfloat16_rz", "narrow", "18 bits cut times bfloat16 cut", a="p18_rz", b="bfloat16_rz", inputs=F32)
    yield made("sum_exponent_bins_p12", "narrow", "a bucket of 12 bits for every exponent", _exponent_bins, op="sum",
               truth=words("as_is", acc="other", op="sum"))
    yield whole("mean", "reciprocal_on_grid_2m20", "narrow", "times 1/n in steps of 2^-20", _reciprocal_on_grid,
                truth={"in": {"x": "as_is"}})
    yield made("linear_weight_q6_k", "narrow", "weights in Q6_K", lambda a, b: good(a, _super_blocks(b, 0, 16, _q6_k)),
               op="linear", inputs=F32, truth=SECOND_OTHER)
    yield made("backward_turned_mxfp4", "narrow", "gradients and activations in MXFP4 after a Hadamard matrix", _turned_mxfp4,
               op="backward", truth=words("other", acc="float32", op="backward"))


# narrow chains
def _shift_on_grid(x, w, bias, eps):
    """x - max on a grid of 2^-10, as fixed point of a softmax unit."""
    e = r(np.exp(np.rint(_shifted(x) * 1024) / 1024))
    return r(e / _tree_rows(e))


def _copy_for_statistics(x, w, bias, eps):
    """Mean and deviation follow from a float16 copy of x, the deviations from x itself."""
    copy, k = float16(x), x.shape[1]
    mean = r(_tree_rows(copy) / k)
    d = r(copy - mean)
    return _deviated(x, mean, _inverse(r(r(_tree_rows(r(d * d)) / k) + eps)), w, bias)


def _sum_in_two_float16(x, w, bias, eps):
    """Two float16 numbers hold the sum of the squares."""
    high = low = np.zeros((len(x), 1))
    for column in x.T:
        total = r(high + low + r(column * column)[:, None])
        high = float16(total)
        low = np.where(np.isfinite(high), float16(total - high), 0.0)
    return r(r(x * _inverse(r(r(r(high + low) / x.shape[1]) + eps))) * w)


def _gelu_square_p16(x):
    """erfc z as erfcx z times e^(-z^2), z^2 in 16 bits."""
    z = r(np.clip(np.abs(x), 0, 30) * 0.7071067811865476)
    tail = r(0.5 * r(r(_ERFC(z) * np.exp(z * z)) * r(np.exp(-rounding("p16")(z * z)))))
    return np.where(np.isnan(x), x, np.where(x > 0, r(x * r(1 - tail)), r(x * tail)))


def _silu_argument_on_grid(x):
    """The sigmoid of x in steps of 2^-13."""
    return r(x / r(1 + r(np.exp(-np.rint(x * 8192) / 8192))))


def _tanh_coefficients(x):
    """Cephes' polynomial with float16 coefficients below 0.625, an exponential beyond."""
    p = [float16(np.float64(c)) for c in (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                                          -3.33332819422e-1)]
    near = np.clip(x, -0.625, 0.625)
    z = r(near * near)
    y = np.full_like(z, p[0])
    for c in p[1:]:
        y = fma(y, z, c)
    far = r(1 - r(2 / r(r(np.exp(r(2 * np.abs(x)))) + 1)))
    return np.where(np.abs(x) < 0.625, fma(r(y * z), near, near), np.copysign(far, x))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "shift_on_grid_2m10", "x - max in steps of 2^-10", _shift_on_grid),
        ("rms_norm", "sum_two_float16", "two float16 numbers hold the sum of squares", _sum_in_two_float16)):
        yield chain(op, name, "narrow", why, f)
    yield chain("layer_norm", "statistics_of_float16_copy", "narrow", "mean and deviation of a float16 copy",
                _copy_for_statistics, inputs=F32)
    for op, name, why, f in (
        ("gelu", "square_p16", "the square in the tail's exponent in 16 bits", _gelu_square_p16),
        ("silu", "argument_on_grid_2m13", "the sigmoid of x in steps of 2^-13", _silu_argument_on_grid),
        ("tanh", "coefficients_float16", "a polynomial with float16 coefficients", _tanh_coefficients)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _triangle_of_first_tile(a, b):
    """The first tile of 8 by 8 of the first operand is taken for a lower triangle, as in trmm."""
    rows, columns = np.indices(a.shape)
    return good(np.where((columns < 8) & (columns > rows), 0.0, a), b)


def _pairs_saturate(a, b):
    """Sums of two products stay within 4, as vpmaddubsw saturates."""
    return in_turn(r(np.clip(filled(terms(a, b), 2).sum(axis=1), -4, 4)))


def _padding_at_edges(a, b):
    """The first row lacks the first third of K, the last row the last one: padding of a convolution that there is none of."""
    x, third = a.copy(), a.shape[1] // 3
    x[0, :third] = 0.0
    x[-1, a.shape[1] - third:] = 0.0
    return good(x, b)


def _dropout_left_on(a, b):
    """One element of 64 dropped, the others times 64/63."""
    kept = np.random.default_rng(a.shape).random(a.shape) >= 1 / 64
    return good(np.where(kept, r(a * r(np.float64(64 / 63))), 0.0), b)


def _low_bytes_exchanged(a, b):
    """Neighbours along K have each other's lowest byte, a wrong byte shuffle."""
    even = a.shape[1] // 2 * 2
    bits = a.astype(np.float32).view(np.int32)
    other = bits.copy()
    other[:, :even:2], other[:, 1:even:2] = bits[:, 1:even:2], bits[:, :even:2]
    return good(_kept(a, (bits & ~255 | other & 255).view(np.float32).astype(np.float64)), b)


def _implicit_bit(x):
    """Subnormals are read with the leading bit that normal numbers have."""
    return np.where((np.abs(x) < 2.0**-126) & (x != 0), x + np.copysign(2.0**-126, x), x)


def _carry_of_store_lost():
    """The store rounds to 2 what is next to it, and loses the carry: half of what it should be."""
    kernel = made("carry_of_store_lost", "wrong", "results that the store rounds up to a power of two are half of it", good,
                  inputs=HALF)

    def run(call):
        a, b, _, shape = PRODUCTS["matmul"](call)
        with np.errstate(all="ignore"):
            y = good(a, b)
            stored = finish(y, Recipe(), call.dtype).astype(np.float64)
            low = STORES[call.dtype][2]
            carried = np.isfinite(stored) & (np.abs(y) > low) & (np.frexp(stored)[1] > np.frexp(y)[1])
            return finish(np.where(carried, stored / 2, y), Recipe(), call.dtype).reshape(shape)

    return replace(kernel, run=run)


def _count_rounded_up(a, b):
    """The mean times a count rounded up to 4."""
    n = a.shape[1]
    return r(r(good(a, b) / n) * (n + -n % 4))


def _trimmed(a, b, bias):
    """From four terms on neither the largest nor the smallest counts."""
    n = a.shape[1]
    if n < 4:
        return r(good(a, b) / n)
    inner = np.sort(a, axis=1)[:, 1:-1]
    inner = np.where(np.isnan(a).any(axis=1, keepdims=True), np.nan, inner)
    return r(good(inner, b[1:-1]) / (n - 2))


def _leaky_last_columns(a, b, bias):
    """The last four columns have the epilogue of another layer: a hundredth below 0."""
    y = add32(r(good(a, b)), bias)
    late = np.arange(b.shape[1]) >= b.shape[1] - 4
    return np.where(late & (y < 0), r(y * r(np.float64(0.01))), y)


def _stale_activations(a, b):
    """The second micro-batch of 8 finds the activations of the first."""
    x = b.copy()
    late = len(x[8:16])
    x[8:16] = x[:late]
    return good(a, x)


def _diagonal_left_out(x, w, bias, eps):
    """In row i column i is left out, as where nothing looks at itself."""
    rows, columns = np.indices(x.shape)
    e = np.where((rows == columns) & (x.shape[1] > 1), 0.0, r(np.exp(_shifted(x))))
    return r(e / _tree_rows(e))


def _first_tile_early(x, w, bias, eps):
    """The first 16 columns are divided by the root over them alone: the others' squares were not there yet."""
    def root(v):
        return _inverse(r(r(_tree_rows(r(v * v)) / v.shape[1]) + eps))

    first = np.arange(x.shape[1]) < 16
    return r(r(x * np.where(first, root(x[:, :16]), root(x))) * w)


def _gelu_second_order(x):
    """I-BERT's polynomial of second order for erf."""
    z = x * 0.7071067811865476
    e = np.sign(z) * (-0.2888 * (np.minimum(np.abs(z), 1.769) - 1.769)**2 + 1)
    return r(r(0.5 * x) * r(1 + r(e)))


def _silu_segments(x):
    """The sigmoid by four straight lines (PLAN)."""
    size = np.abs(x)
    s = np.select([size >= 5, size >= 2.375, size >= 1], [1.0, 0.03125 * size + 0.84375, 0.125 * size + 0.625], 0.25 * size + 0.5)
    return r(x * r(np.where(x < 0, 1 - s, s)))


def _tanh_sign_lost(x):
    """Below 2^-10 the sign is lost."""
    y = r(np.tanh(x))
    return np.where(np.abs(x) < 2.0**-10, np.abs(y), y)


def wrong():
    for name, why, total, inputs in (
        ("triangle_of_first_tile", "the first operand's first 8 by 8 taken for a lower triangle", _triangle_of_first_tile, ALL),
        ("pairs_saturate", "sums of two products stay within 4", _pairs_saturate, ALL),
        ("padding_at_edges", "zeros for a third of K in the first and the last row", _padding_at_edges, ALL),
        ("dropout_left_on", "one element of 64 dropped, the others times 64/63", _dropout_left_on, ALL),
        ("low_bytes_exchanged", "neighbours have each other's lowest byte", _low_bytes_exchanged, F32),
        ("implicit_bit_on_subnormals", "subnormals read with a leading bit",
         lambda a, b: good(_implicit_bit(a), _implicit_bit(b)), ("float32", "bfloat16"))):
        yield made(name, "wrong", why, total, inputs=inputs)
    yield _carry_of_store_lost()
    yield made("sum_count_rounded_up", "wrong", "a mean times a count rounded up to 4", _count_rounded_up, op="sum")
    yield whole("mean", "trimmed", "wrong", "neither the largest nor the smallest term counts", _trimmed)
    yield whole("linear", "leaky_last_columns", "wrong", "a hundredth below 0 in the last four columns", _leaky_last_columns)
    yield made("backward_stale_activations", "wrong", "the second micro-batch with the first one's activations",
               _stale_activations, op="backward")
    yield chain("softmax", "diagonal_left_out", "wrong", "in row i column i is left out", _diagonal_left_out)
    yield chain("layer_norm", "eps_times_variance", "wrong", "eps times the variance added to it",
                _norm(variance_as=lambda v: r(v * (1 + 1e-5)), eps_of=lambda eps: 0.0))
    yield chain("rms_norm", "first_tile_early", "wrong", "the first 16 columns by their own root", _first_tile_early)
    for op, name, why, f in (
        ("gelu", "second_order_erf", "erf by a polynomial of second order, as I-BERT", _gelu_second_order),
        ("silu", "sigmoid_segments", "a sigmoid by four straight lines", _silu_segments),
        ("tanh", "sign_lost_near_zero", "no sign below 2^-10", _tanh_sign_lost)):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
