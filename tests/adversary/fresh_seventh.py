"""Fresh, a seventh set: honest sums of unusual form, and too few bits in few places: after a tile, by sign, by gap, by length (l_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, filled, kahan, once, tree, two_sum_in
from fresh import _norm, _rms, _silu, _softmax, _tree_rows
from fresh_fifth import fma
from fresh_fourth import INSIDE, PLAIN, _deviated, _inverse, _or_plain
from heldout_tools import ALL, F32, add32, adding, good, in_turn, terms, under, words
from ops import _ERFC
from rounding import add_odd, bfloat16, float32 as r, rounding

SUMMED = {"in": {"x": "as_is"}}


made, recipe, chain, whole = under("l_")


def _finite(x):
    return np.where(np.isfinite(x), x, 0.0)


# honest sums
def _join_pairs(one, two):
    """Two numbers, each with what it lacks, as one such pair."""
    s, error = two_sum_in(one[0], two[0])
    error = r(error + r(one[1] + two[1]))
    high = add32(s, error)
    return high, _finite(r(error - r(high - s)))


def _double_single_lanes(a, b):
    """Four lanes of normalised pairs of float32 numbers, joined as pairs."""
    t = filled(terms(a, b), 4)
    total = (np.zeros(t.shape[1:]), np.zeros(t.shape[1:]))
    for each in t:
        head = r(each)
        total = _join_pairs(total, (head, r(_finite(each - head))))
    lanes = [(total[0][lane], total[1][lane]) for lane in range(4)]
    high, low = _join_pairs(_join_pairs(lanes[0], lanes[2]), _join_pairs(lanes[1], lanes[3]))
    return _or_plain(add32(high, low), a, b)


def _units_of_four(a, b):
    """Four products, rounded once; the units joined by threes, rounded once, as a tree of three-input adders."""
    t = [r(once(list(piece))) for piece in cut(terms(a, b), 4)]
    while len(t) > 1:
        t = [r(once(t[at:at + 3])) for at in range(0, len(t), 3)]
    return t[0]


def _pairs_fused(a, b):
    """A rounded product, its neighbour fused onto it, the pair added to the sum."""
    t = filled(terms(a, b), 2)
    return in_turn(r(add_odd(r(t[:, 0]), t[:, 1])))


def _slices_of_six(a, b):
    """Operands in four slices of 6 bits, all sixteen products, the faintest first."""
    n = rounding("p6")
    usual = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)[None, :]
    pieces = []
    for x in (_finite(a), _finite(b)):
        pieces.append([])
        for _ in range(4):
            pieces[-1].append(n(x))
            x = x - pieces[-1][-1]
    y = np.zeros((a.shape[0], b.shape[1]))
    for i, j in sorted(((i, j) for i in range(4) for j in range(4)), key=lambda ij: (-sum(ij), ij)):
        y = add32(y, good(pieces[0][i], pieces[1][j]))
    return np.where(usual & np.isfinite(y), y, good(a, b))


def _through(name):
    """Every sum is first rounded by `name`, then to float32."""
    first = rounding(name)
    return lambda a, b: in_turn(terms(a, b), lambda s, t: r(first(add_odd(s, t))))


def _cascade(a, b):
    """Four two-sums, one after the other, take up each other's errors; a fifth sum the rest; joined from the faintest."""
    t = terms(a, b)
    sums = [np.zeros(t.shape[1:]) for _ in range(5)]
    for x in t:
        for level in range(4):
            sums[level], x = two_sum_in(sums[level], x)
        sums[4] = add32(sums[4], x)
    return _or_plain(in_turn(np.stack(sums[::-1])), a, b)


def _wide_reciprocal(a, b, bias):
    """The float32 sum times 1/n in float64, rounded once."""
    return r(r(good(a, b)) * (1 / a.shape[1]))


def _kahan_from_bias(a, b, bias):
    """Kahan's sum of products, begun with the bias."""
    t = r(terms(a, b))
    return kahan(np.concatenate([np.broadcast_to(bias, (1, *t.shape[1:])), t]))


def _by_largest_gradient(a, b):
    """Samples by their largest gradients, the faintest sample first."""
    order = np.argsort(np.abs(a).max(axis=0), kind="stable")
    return in_turn(terms(a[:, order], b[order]))


def honest_sums():
    for name, why, total, truth, inputs in (
        ("double_single_lanes", "four lanes of normalised pairs of float32", _double_single_lanes, INSIDE, ALL),
        ("units_of_four", "a tree of three-input adders over units of four products", _units_of_four, PLAIN, ALL),
        ("pairs_fused", "a product, its neighbour fused onto it, then the sum", _pairs_fused, INSIDE, ALL),
        ("slices_of_six", "four slices of 6 bits, sixteen products", _slices_of_six, INSIDE, F32),
        ("acc_through_p26", "every sum through 26 bits to float32, rounded twice", _through("p26"), INSIDE, ALL)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    yield made("sum_cascade", "honest", "four two-sums in a row and a fifth sum", _cascade, op="sum", truth=SUMMED)
    yield whole("mean", "wide_reciprocal", "honest", "times 1/n in float64", _wide_reciprocal, truth=SUMMED)
    yield whole("linear", "kahan_from_bias", "honest", "Kahan's sum, begun with the bias", _kahan_from_bias, truth=INSIDE)
    yield made("backward_by_largest", "honest", "samples by their largest gradients", _by_largest_gradient, op="backward",
               truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _two_part_total(x, w, bias, eps):
    """Kahan's sum of a row; its reciprocal as two float32 numbers, fused."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    total = kahan(e.T[:, :, None])
    high = r(1 / total)
    low = r(fma(-high, total, 1.0) * high)
    return fma(e, high, r(e * low))


def _mean_twice(x, w, bias, eps):
    """The mean of the deviations is taken off again."""
    k = x.shape[1]
    d = r(x - r(_tree_rows(x) / k))
    d = r(d - r(_tree_rows(d) / k))
    return _deviated(d, 0.0, _inverse(r(r(_tree_rows(r(d * d)) / k) + eps)), w, bias)


def _blue(x, w, bias, eps):
    """Blue's three sums of squares: large ones at 2^-60, small ones at 2^60, the others as they are."""
    k, size = x.shape[1], np.abs(x)
    large, small = size > 2.0**50, size < 2.0**-50
    many = _tree_rows(r(np.where(large, x * 2.0**-60, 0.0)**2))
    few = _tree_rows(r(np.where(small, x * 2.0**60, 0.0)**2))
    usual = _tree_rows(r(np.where(large | small, 0.0, x)**2))
    at = np.where(many > 0, 2.0**-60, 1.0)
    squares = np.where(many > 0, add32(many, r(usual * 2.0**-120)), add32(usual, r(few * 2.0**-120)))
    return r(r(r(x * at) * _inverse(r(r(squares / k) + r(eps * at * at)))) * w)


def _gelu_series(x):
    """1/2 and the density times x + x^3/3 + x^5/15 + ... below 5, erfc beyond; in float64."""
    near = np.where(np.abs(x) < 5, x, 0.0)
    term = total = near
    for i in range(1, 100):
        term = term * near * near / (2 * i + 1)
        total = total + term
    inner = x * (0.5 + 0.3989422804014327 * np.exp(-near * near / 2) * total)
    return np.where(np.abs(x) < 5, inner, 0.5 * x * _ERFC(-x * 0.7071067811865476))


def _half_angle(x):
    """x e^(x/2) / (2 cosh (x/2)), in float64."""
    h = np.clip(x, -700, 700) / 2
    return np.where(np.isneginf(x), x * 0, x * (np.exp(h) / (2 * np.cosh(h))))


def _doubled_eight_times(x):
    """Five terms of the series at x / 256, then eight times 2 t / (1 + t^2); in float64."""
    y = np.clip(x, -20, 20) / 256
    z = y * y
    t = y * (1 + z * (-1 / 3 + z * (2 / 15 + z * (-17 / 315 + z * 62 / 2835))))
    for _ in range(8):
        t = 2 * t / (1 + t * t)
    return t


def honest_chains():
    for op, name, why, f in (
        ("softmax", "two_part_total", "Kahan's sum, its reciprocal as two float32 numbers", _two_part_total),
        ("layer_norm", "mean_twice", "the mean of the deviations taken off again", _mean_twice),
        ("rms_norm", "blue", "Blue's three sums of squares", _blue)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "series", "the distribution by its odd series, in float64", _gelu_series),
        ("silu", "half_angle", "x e^(x/2) / (2 cosh (x/2)), in float64", _half_angle),
        ("tanh", "doubled_eight_times", "a series at x / 256, doubled eight times, in float64", _doubled_eight_times)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _when_cancelled(a, b):
    """A sum of less than a quarter of what it was keeps 16 bits: a normalisation shift that does not fill up."""
    n = rounding("p16")

    def add(s, t):
        exact = add_odd(s, t)
        return r(np.where(np.abs(exact) < np.abs(s) / 4, n(exact), exact))

    return in_turn(terms(a, b), add)


def _gap_of_19(a, b):
    """If the exponents of two summands are 19 or more apart, the smaller summand is left out: a shifter of 5 bits less."""
    def add(s, t):
        apart = np.frexp(_finite(s))[1] - np.frexp(_finite(t))[1]
        usual = np.isfinite(s) & np.isfinite(t) & (s != 0) & (t != 0)
        return r(np.where(usual & (apart >= 19), s, np.where(usual & (apart <= -19), t, add_odd(s, t))))

    return in_turn(terms(a, b), add)


def _odd_length_p17(a, b):
    """17 bits where K is odd, the unaligned path; float32 otherwise."""
    return in_turn(terms(a, b), adding("p17") if a.shape[1] % 2 else add32)


def _negative_rows_p19(a, b):
    """Rows of the first operand whose sum is negative are added in 19 bits."""
    t = terms(a, b)
    return np.where(a.sum(axis=1)[:, None] < 0, in_turn(t, adding("p19")), in_turn(t))


def _from_second_tile_p20(a, b):
    """The first 32 of K are added in float32, all others in 20 bits."""
    y = in_turn(terms(a[:, :32], b[:32]))
    for each in terms(a[:, 32:], b[32:]):
        y = adding("p20")(y, each)
    return y


def _even_lanes_p23(a, b):
    """Eight lanes, of which every other one lacks one bit."""
    t = filled(terms(a, b), 8)
    even, n = (np.arange(8) % 2 == 0)[:, None, None], rounding("p23")
    y = np.zeros(t.shape[1:])
    for each in t:
        s = add_odd(y, each)
        y = np.where(even, n(s), r(s))
    return tree(y)


def _bit_less_each_64(a, b):
    """The accumulator of 23 bits loses one after every 64 terms, down to 12."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at, piece in enumerate(cut(terms(a, b), 64)):
        y = in_turn(np.concatenate([y[None], piece]), adding(f"p{max(12, 23 - at)}"))
    return y


def _negative_terms_p18(a, b):
    """Negative products lose what is beyond 18 bits, others nothing."""
    t = terms(a, b)
    return in_turn(np.where(t < 0, rounding("p18_rz")(t), t))


def _positive_rows_p20(a, b):
    """Rows that begin with a positive number are added in 20 bits."""
    t = terms(a, b)
    return np.where(a[:, :1] > 0, in_turn(t, adding("p20")), in_turn(t))


def _reciprocal_p22(a, b, bias):
    """The sum times 1/n in 22 bits, which powers of two do not notice."""
    return r(r(good(a, b)) * rounding("p22")(np.float64(1 / a.shape[1])))


def _last_samples_bfloat16(a, b):
    """The gradients of the last four samples come as bfloat16."""
    last = np.arange(a.shape[1]) >= a.shape[1] - 4
    return good(np.where(last, bfloat16(a), a), b)


def narrow_sums():
    for name, why, total, truth in (
        ("when_cancelled_p16", "16 bits of a sum that cancelled to less than a quarter", _when_cancelled, INSIDE),
        ("gap_of_19", "the fainter summand left out from a gap of 19 exponents on", _gap_of_19, INSIDE),
        ("odd_length_p17", "17 bits where K is odd", _odd_length_p17, INSIDE),
        ("negative_rows_p19", "rows of negative sum in 19 bits", _negative_rows_p19, INSIDE),
        ("from_second_tile_p20", "20 bits from the second 32 of K on", _from_second_tile_p20, INSIDE),
        ("even_lanes_p23", "every other lane one bit short", _even_lanes_p23, INSIDE),
        ("bit_less_each_64", "23 bits, one less after every 64 terms", _bit_less_each_64, INSIDE),
        ("negative_terms_p18", "negative products cut to 18 bits", _negative_terms_p18, {})):
        yield made(name, "narrow", why, total, truth=truth)
    yield made("guard_bit_alone", "narrow", "float32 sums rounded by one guard bit, no sticky bit", _through("p25_rz"), truth=INSIDE,
               accepted=True)
    yield recipe("acc_p23_rna", "narrow", "23 bits, ties away", acc="p23_rna", order="lanes8")
    yield recipe("acc_p22_rod_split4", "narrow", "four parts of 22 bits to odd", acc="p22_rod", order="split4")
    yield recipe("prod_p23_rz", "narrow", "products cut one bit short", prod="p23_rz", order="blocked16", inputs=F32)
    yield made("linear_bias_p21", "narrow", "the bias in 21 bits", good, op="linear", bias_as="p21", inputs=F32, truth=INSIDE)
    yield made("sum_positive_rows_p20", "narrow", "rows that begin above 0 in 20 bits", _positive_rows_p20, op="sum", truth=SUMMED)
    yield whole("mean", "reciprocal_p22", "narrow", "times 1/n in 22 bits", _reciprocal_p22)
    yield made("backward_last_samples_bfloat16", "narrow", "gradients of the last four samples in bfloat16", _last_samples_bfloat16,
               op="backward", inputs=F32)


# narrow chains
def narrow_chains():
    for op, name, why, f in (
        ("softmax", "exp_p22", "exponentials in 22 bits", _softmax(exp=lambda d: rounding("p22")(np.exp(d)))),
        ("layer_norm", "rstd_p22_rz", "the inverse deviation cut to 22 bits", _norm(
            rsqrt=lambda v: rounding("p22_rz")(1 / np.sqrt(v)))),
        ("layer_norm", "negative_deviations_p20", "deviations below 0 in 20 bits", _norm(
            d_as=lambda d: np.where(d < 0, rounding("p20")(d), r(d)))),
        ("rms_norm", "mean_p21_rz", "the mean square cut to 21 bits", _rms(mean_as=rounding("p21_rz"))),
        ("silu", "below_p22_rz", "1 + e^-x cut to 22 bits", lambda x, *others: _silu(below=rounding("p22_rz"))(x))):
        yield chain(op, name, "narrow", why, f)


# wrong
def _small_bias(a, b, bias):
    """If the product is negative, the bias counts 1 - 2^-11 times."""
    y = r(good(a, b))
    return add32(y, np.where(y < 0, r(bias * (1 - 2.0**-11)), bias))


def _odd_length_last(a, b):
    """If K is not a multiple of four, the last term counts 1 + 2^-14 times."""
    t = terms(a, b)
    if len(t) % 4:
        t[-1] *= 1 + 2.0**-14
    return in_turn(t)


def wrong():
    yield whole("linear", "bias_2m11_below_zero", "wrong", "beside negative products the bias times 1 - 2^-11", _small_bias)
    yield made("backward_last_1_2m14", "wrong", "an uneven last sample counts 1 + 2^-14 times", _odd_length_last, op="backward")


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
