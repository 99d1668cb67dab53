"""Fresh, a thirteenth set: sums that look at their own data, grids of other rows, one lane or one addition that differs (t_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import math

import numpy as np
from apart_tools import cut, filled, tree
from fresh import _tree_rows
from fresh_fourth import INSIDE, NOT_BFLOAT16, OTHER, PLAIN, SECOND_OTHER, _deviated, _inverse
from fresh_ninth import OTHER_SUM, SUMMED, _kept, _polynomial, _shifted
from fresh_tenth import _finite, _power
from heldout_tools import ALL, F32, add32, adding, good, in_turn, largest, terms, under, words
from ops import _ERF
from products import Recipe, emulated_split, split
from rounding import add_odd, float32 as r, float32_rz, rounding

made, recipe, chain, whole = under("t_")
WIDE = ("float32", "bfloat16")  # of the exponents of float32


def _up(x):
    """To float32, never below x."""
    y = float32_rz(x)
    up = np.nextafter(y.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    return np.where((y < x) & np.isfinite(x), up, _kept(x, y))


def _down(x, bits):
    """To so many bits, never above x."""
    y = rounding(f"p{bits}_rz")(x)
    unit = np.ldexp(1.0, np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - bits)
    return np.where((y > x) & np.isfinite(x), y - unit, y)


# honest sums
def _sieve(a, b):
    """An accumulator for every least prime factor of k + 2, products fused onto it; the largest primes' are joined first."""
    lanes = {}
    for k, each in enumerate(terms(a, b), 2):
        prime = next((p for p in range(2, math.isqrt(k) + 1) if k % p == 0), k)
        lanes[prime] = add32(lanes.get(prime, np.zeros_like(each)), each)
    return in_turn(np.stack([lanes[prime] for prime in sorted(lanes, reverse=True)]))


def _short_x87(a, b):
    """Products and sums of 24 bits with the exponents of an x87, which has none too large nor too small for these."""
    n = rounding("p24")
    return in_turn(n(terms(a, b)), adding("p24"))


def _scaled_quarter_squares(a, b):
    """Products of significands as differences of the squares of half sum and half difference: exact in float64."""
    (fa, ea), (fb, eb) = (np.frexp(np.where(np.isfinite(x), x, 0.0)) for x in (a.T[:, :, None], b[:, None, :]))
    product = np.ldexp(((fa + fb)**2 - (fa - fb)**2) / 4, ea + eb)
    t = terms(a, b)
    return in_turn(np.where(np.isfinite(t), product, t))


def _rising_runs(a, b):
    """A run of terms that do not fall is summed by itself, then added."""
    y, run = np.zeros((len(a), 1)), a[:, :1]
    for before, column in zip(a.T[:-1, :, None], a.T[1:, :, None]):
        goes_on = column >= before
        y = np.where(goes_on, y, add32(y, run))
        run = np.where(goes_on, add32(run, column), column)
    return add32(y, run)


def _abel(a, b, bias):
    """Summation by parts in float64: n times the last term and k times every difference of neighbours."""
    n = a.shape[1]
    x = np.where(np.isfinite(a), a, 0.0)
    y = (n * x[:, -1:] + ((x[:, :-1] - x[:, 1:]) * np.arange(1, n)).sum(axis=1, keepdims=True)) / n
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), y, r(good(a, b) / n))


def _bias_where_signs_part(a, b, bias):
    """The bias is added as soon as the sum has the other sign, at the end at the latest."""
    y = np.zeros((a.shape[0], b.shape[1]))
    waits = np.full(y.shape, True)
    for each in terms(a, b):
        y = add32(y, each)
        now = waits & (y * np.sign(bias) < 0)
        y, waits = np.where(now, add32(y, bias), y), waits & ~now
    return np.where(waits, add32(y, bias), y)


def _by_size_of_gradient(a, b):
    """Samples whose gradient is larger than the median's are fused onto one accumulator, the others onto another."""
    size = largest(a, 0)[0]
    large, t = size > np.median(size), terms(a, b)
    return add32(in_turn(t[large]), in_turn(t[~large]))


def honest_sums():
    for name, why, total, truth in (
        ("sieve_lanes", "an accumulator for every least prime factor of k + 2", _sieve, PLAIN),
        ("x87_of_24_bits", "24 bits with the exponents of an x87", _short_x87, INSIDE),
        ("quarter_squares_of_significands", "products as differences of squares of scaled numbers, exact in float64",
         _scaled_quarter_squares, PLAIN)):
        yield made(name, "honest", why, total, truth=truth)
    yield made("sum_of_rising_runs", "honest", "runs of terms that do not fall, each summed first", _rising_runs, op="sum",
               truth=SUMMED)
    yield whole("mean", "by_parts_wide", "honest", "summation by parts in float64", _abel, truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_where_signs_part", "honest", "the bias as soon as the sum has the other sign",
                _bias_where_signs_part, truth=PLAIN)
    yield made("backward_by_size_of_gradient", "honest", "samples of large gradients apart from the others", _by_size_of_gradient,
               op="backward", truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _two_levels(x, w, bias, eps):
    """Within eight columns first, then among such groups; a product of both, in float32."""
    high = np.max(x, axis=1, keepdims=True)
    groups, shares = [], []
    for at in range(0, x.shape[1], 8):
        part = x[:, at:at + 8]
        top = np.max(part, axis=1, keepdims=True)
        e = r(np.exp(r(part - top)))
        total = _tree_rows(e)
        groups.append(r(e / total))
        shares.append(r(total * r(np.exp(r(top - high)))))
    shares = np.concatenate(shares, axis=1)
    shares = r(shares / _tree_rows(shares))
    return np.concatenate([r(group * share[:, None]) for group, share in zip(groups, shares.T)], axis=1)


def _helmert(x, w, bias, eps):
    """The variance from Helmert's contrasts, each element against the mean of those before it, in float64."""
    k = x.shape[1]
    i = np.arange(1, k)
    contrasts = (np.cumsum(x, axis=1)[:, :-1] - i * x[:, 1:]) / np.sqrt(i * (i + 1.0))
    variance = (contrasts**2).sum(axis=1, keepdims=True) / k
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(variance + eps) * w + bias


def _root(x, eps):
    return r(np.sqrt(r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps)))


def _quotient_by_residuals(x, w, bias, eps):
    """x over the root by a float32 reciprocal and two fused residuals."""
    root = _root(x, eps)
    inverse = r(1 / root)
    q = r(x * inverse)
    for _ in range(2):
        q = np.where(np.isfinite(root), r(add_odd(q, r(add_odd(x, -q * root)) * inverse)), q)
    return r(q * w)


def _scaled_erfc(z):
    """e^(z^2) erfc z for z >= 0: the functions below 5, beyond it Laplace's continued fraction."""
    near = np.minimum(z, 5.0)
    y = z
    for level in range(120, 0, -1):
        y = z + level / 2 / y
    return np.where(z < 5, np.exp(near * near) * np.vectorize(math.erfc)(near), 1 / (np.sqrt(np.pi) * y))


def _of_shepherd(t):
    z = 3.75 * (1 + t) / (1 - t)
    return (1 + 2 * z) * _scaled_erfc(np.maximum(z, 1e-300))


SHEPHERD = np.polynomial.chebyshev.chebinterpolate(_of_shepherd, 40)


def _gelu_shepherd(x):
    """Chebyshev's series of (1 + 2z) e^(z^2) erfc z in (z - 3.75) / (z + 3.75), as Shepherd and Laframboise have it, in float64."""
    size = np.minimum(np.abs(x), 1e4)
    z = size * np.sqrt(0.5)
    tail = np.polynomial.chebyshev.chebval((z - 3.75) / (z + 3.75), SHEPHERD) / (1 + 2 * z) * np.exp(-size * size / 2) / 2
    return x * np.where(x < 0, tail, 1 - tail)


def _tanh_tripled(x):
    """A series at x / 243 and the tangent's triple angle five times, in float64."""
    z = np.clip(x, -30, 30) / 243
    t = z * _polynomial(z * z, 21844 / 6081075, -1382 / 155925, 62 / 2835, -17 / 315, 2 / 15, -1 / 3, 1)
    for _ in range(5):
        t = t * (3 + t * t) / (1 + 3 * t * t)
    return t


def honest_chains():
    for op, name, why, f in (
        ("softmax", "two_levels", "within eight columns, then among such groups, in float32", _two_levels),
        ("layer_norm", "helmert", "a variance from Helmert's contrasts, in float64", _helmert),
        ("rms_norm", "quotient_by_residuals", "a quotient by a reciprocal and two fused residuals", _quotient_by_residuals)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "shepherd_laframboise", "a Chebyshev series of the scaled erfc, in float64", _gelu_shepherd),
        ("tanh", "tripled", "a series at x / 243 and five triple angles, in float64", _tanh_tripled)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _tf32x3_cut(a, b):
    """Three products of two tf32 pieces each, their sums cut to float32 as tensor cores cut them."""
    return emulated_split(a, b, "tf32", 2, 3, Recipe(order="lanes8", acc="float32_rz"))


def _two_bfloat16_and_e4m3(x, axis):
    """Two bfloat16 pieces; of the rest what e4m3 holds at 2^16 times the size, under a power of two per row."""
    pieces = split(x, 2, "bf16")
    known = np.where(np.isfinite(pieces[0]), pieces[0] + pieces[1], 0.0)
    unit = _power(x, axis) * 2.0**-24
    rest = np.where(np.isfinite(x), x - known, 0.0)
    return _kept(x, known + rounding("e4m3_sat")(rest / unit) * unit)


def _complex_pairs(a, b):
    """Pairs along K as complex numbers: the real part of their product as Gauss has it, b0 (a0 + a1) - a1 (b0 - b1); 22 bits
    hold the sums of operands."""
    x, y = (np.concatenate([each, np.zeros((len(each) % 2, each.shape[1]))]) for each in (a.T, b))
    x, even, odd, n = x.T, y[::2], y[1::2], rounding("p22")
    total = add32(good(n(x[:, ::2] + x[:, 1::2]), even), -good(x[:, 1::2], n(even - odd)))
    return np.where(_finite(a, b) & np.isfinite(total), total, good(a, b))


def _fixed_logarithms(a, b):
    """Products from logarithms in steps of 2^-20, added as integers."""
    usual = [np.isfinite(x) & (x != 0) for x in (a, b)]
    one, two = (np.rint(np.log2(np.where(keep, np.abs(x), 1.0)) * 2.0**20) for keep, x in zip(usual, (a, b)))
    t = terms(a, b)
    logarithm = (one.T[:, :, None] + two[:, None, :]) / 2.0**20
    both = usual[0].T[:, :, None] & usual[1][:, None, :]
    return in_turn(np.where(both & np.isfinite(t), np.copysign(r(np.exp2(logarithm)), t), t))


def _nothing_below(a, b):
    """A long fixed-point register that ends at 2^-40: products are cut there, and added without error."""
    t = terms(a, b)
    return in_turn(_kept(t, np.trunc(t * 2.0**40) / 2.0**40), lambda s, x: s + x)


def _one_addition(a, b):
    """A chain whose twenty-first sum alone is kept in 12 bits."""
    y, n = np.zeros((a.shape[0], b.shape[1])), rounding("p12")
    for k, each in enumerate(terms(a, b)):
        y = add32(y, each)
        y = n(y) if k == 20 else y
    return y


def _one_lane_upwards(a, b):
    """Eight lanes, of which the fourth one rounds up, to 22 bits."""
    lanes = np.zeros((8, a.shape[0], b.shape[1]))
    for row in filled(terms(a, b), 8):
        x = add_odd(lanes, row)
        lanes = np.concatenate([r(x[:3]), -_down(-x[3:4], 22), r(x[4:])])
    return tree(lanes)


def _first_int24(a, b):
    """The first operand as 24-bit integers under a power of two per row."""
    unit = _power(a, 1) * 2.0**-23
    return good(_kept(a, np.rint(np.where(np.isfinite(a), a, 0.0) / unit) * unit), b)


def _seven_digits(x):
    """To seven decimal digits."""
    usual = np.isfinite(x) & (x != 0)
    unit = 10.0**(np.floor(np.log10(np.where(usual, np.abs(x), 1.0))) - 6)
    return np.where(usual, np.rint(x / unit) * unit, x)


def _borrowed(a, b):
    """Two columns' sums share a register, in units of 2^-22 of both scales; a negative lower one borrows from the upper one."""
    y = r(good(a, b))
    unit = _power(a, 1) * _power(b, 0) * 2.0**-22
    upper = y[:, 1::2]
    y[:, 1::2] = np.where(y[:, :2 * upper.shape[1]:2] < 0, add32(upper, -unit[:, 1::2]), upper)
    return y


def _wide_beside_zeros(a, b):
    """Operands with zeros go to a sparse kernel, in float64; all others to one of 17 bits."""
    sparse = (a == 0).any() or (b == 0).any()
    return in_turn(terms(a, b), (lambda s, t: s + t) if sparse else adding("p17"))


def _grid_of_row_before(a, b):
    """Terms as integers of 2^-22 of the largest of the row before, added without error."""
    unit = np.roll(_power(a, 1), 1, axis=0) * 2.0**-22
    return _kept(a, np.rint(np.where(np.isfinite(a), a, 0.0) / unit) * unit).sum(axis=1, keepdims=True)


def _flushed_quotient(a, b, bias):
    return rounding("float32_ftz")(r(good(a, b)) / a.shape[1])


def _kept_back(a, b):
    """Four micro-batches; what is below 2^-9 of its row's largest waits for the next one, and is lost at the end."""
    y = waiting = np.zeros((a.shape[0], b.shape[1]))
    size = -(-a.shape[1] // 4)
    for piece in cut(terms(a, b), size):
        x = add32(in_turn(piece), waiting)
        sent = np.where(np.abs(x) < largest(x) * 2.0**-9, 0.0, x)
        y, waiting = add32(y, sent), np.where(sent == 0, x, 0.0)
    return y


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("tf32x3_sums_cut", "three products of tf32 pieces, their sums cut", _tf32x3_cut, words("tf32x3"), F32),
        ("two_bfloat16_and_e4m3", "operands as two bfloat16 pieces and one of e4m3",
         lambda a, b: good(_two_bfloat16_and_e4m3(a, 1), _two_bfloat16_and_e4m3(b, 0)), OTHER, F32),
        ("complex_pairs_by_gauss", "pairs as complex numbers, as Gauss multiplies them, sums in 22 bits", _complex_pairs, {}, ALL),
        ("logarithms_on_grid_2m20", "products from logarithms in steps of 2^-20", _fixed_logarithms, {}, ALL),
        ("nothing_below_2m40", "products cut at 2^-40, added exactly", _nothing_below, {}, ALL),
        ("one_addition_p12", "the twenty-first sum alone in 12 bits", _one_addition, OTHER_SUM, ALL),
        ("one_lane_upwards", "one lane of eight rounds up to 22 bits", _one_lane_upwards, OTHER_SUM, ALL),
        ("first_int24_row", "the first operand as 24-bit integers by rows", _first_int24,
         words("other", "as_is", acc="float32"), F32),
        ("acc_seven_digits", "a decimal accumulator of seven digits",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _seven_digits(s + t)), OTHER_SUM, ALL),
        ("products_upwards", "products rounded up to float32", lambda a, b: in_turn(_up(terms(a, b))),
         words("as_is", prod="other", acc="float32"), F32),
        ("packed_borrow", "two columns in one register, the lower one borrows", _borrowed, {}, ALL),
        ("p17_unless_zeros", "17 bits unless an operand has zeros", _wide_beside_zeros, {}, ALL),
        ("mid_p20_down", "a float32 sum down to 20 bits before the store", lambda a, b: _down(r(good(a, b)), 20),
         words("as_is", acc="float32", mid="other"), ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield made("sum_grid_of_row_before", "narrow", "integers of 2^-22 of the largest of the row before", _grid_of_row_before,
               op="sum")
    yield whole("mean", "quotient_flushed", "narrow", "subnormal quotients are zero, sums are not", _flushed_quotient, inputs=WIDE)
    yield made("backward_faint_kept_back", "narrow", "what is below 2^-9 of its row waits for the next micro-batch", _kept_back,
               op="backward")


# narrow chains
def _one_lane_p17(x, w, bias, eps):
    """The sum in eight lanes, of which the sixth one has 17 bits."""
    e = r(np.exp(_shifted(x)))
    lanes = [in_turn(e.T[at::8, :, None], adding("p17") if at == 5 else add32) for at in range(min(8, e.shape[1]))]
    return r(e / tree(np.stack(lanes)))


def _root_on_grid(x, w, bias, eps):
    root = _root(x, eps)
    return r(r(x * r(1 / np.maximum(np.rint(root * 2.0**20) / 2.0**20, 2.0**-20))) * w)


def _gelu_short_beyond_one(x):
    """erf of arguments beyond 1 in 21 bits."""
    z = r(x * 0.7071067811865476)
    erf = r(_ERF(z))
    return r(r(0.5 * x) * r(1 + np.where(np.abs(z) > 1, rounding("p21")(erf), erf)))


def _silu_short_above_zero(x):
    """Sigmoids of positive numbers in 21 bits."""
    sigmoid = r(1 / r(1 + r(np.exp(-x))))
    return r(x * np.where(x > 0, rounding("p21")(sigmoid), sigmoid))


def _tanh_seventh_columns(x):
    y = r(np.tanh(x))
    y[:, 5::7] = rounding("p22_rz")(y[:, 5::7])
    return y


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "one_lane_p17", "one lane of eight of the sum in 17 bits", _one_lane_p17),
        ("rms_norm", "root_on_grid_2m20", "the root in steps of 2^-20", _root_on_grid)):
        yield chain(op, name, "narrow", why, f)
    for op, name, why, f, inputs in (
        ("gelu", "erf_beyond_one_p21", "erf of arguments beyond 1 in 21 bits", _gelu_short_beyond_one, ALL),
        ("silu", "sigmoid_above_zero_p21", "sigmoids of positive numbers in 21 bits", _silu_short_above_zero, ALL),
        ("tanh", "seventh_columns_p22_rz", "every seventh column of the result cut to 22 bits", _tanh_seventh_columns,
         NOT_BFLOAT16)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x), inputs=inputs)


# wrong
def _drifting(a, b):
    """Weights decay along K by 2^-24 in every step, as a scale that is multiplied up does."""
    t = terms(a, b)
    return in_turn(t * (1 - 2.0**-24 * np.arange(len(t)))[:, None, None])


def _smallest_twice(a, b):
    """The smallest product of each element counts twice."""
    t = terms(a, b)
    at = np.abs(t).argmin(axis=0)[None]
    return add32(in_turn(t), np.take_along_axis(t, at, 0)[0])


def _crosstalk(a, b):
    """Every result and 2^-18 of the one to its left."""
    y = r(good(a, b))
    left = np.where(np.isfinite(y[:, :-1]), y[:, :-1], 0.0)
    y[:, 1:] = add32(y[:, 1:], left * 2.0**-18)
    return y


def _first_infinity_stays(s, t):
    return np.where(np.isinf(s), s, add32(s, t))


def _top_exponent_reserved(s, t):
    """Sums from 2^127 on are infinite: that exponent is taken for another use."""
    y = add32(s, t)
    return np.where(np.abs(y) >= 2.0**127, np.copysign(np.inf, y), y)


def _bias_with_next(a, b, bias):
    """2^-12 of every bias is that of the next column."""
    return add32(good(a, b), r(bias + r(2.0**-12 * r(np.roll(bias, -1) - bias))))


def _last_eight_about_early_mean(x, w, bias, eps):
    """Squares of the last eight columns about the mean of those before them."""
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    d = r(x - mean)
    if k > 8:
        d[:, -8:] = r(x[:, -8:] - r(_tree_rows(x[:, :-8]) / (k - 8)))
    return _deviated(x, mean, _inverse(r(r(_tree_rows(r(d * d)) / k) + eps)), w, bias)


def wrong():
    for name, why, total, truth, inputs in (
        ("weights_drift_2m24", "weights less by 2^-24 in every step of K", _drifting, SECOND_OTHER, ALL),
        ("smallest_product_twice", "each element's smallest product counts twice", _smallest_twice, {}, ALL),
        ("crosstalk_2m18", "2^-18 of the result to the left", _crosstalk, {}, ALL),
        ("first_infinity_stays", "an infinite sum stays what it is", lambda a, b: in_turn(terms(a, b), _first_infinity_stays), {},
         ALL),
        ("top_exponent_reserved", "sums from 2^127 on are infinite", lambda a, b: in_turn(terms(a, b), _top_exponent_reserved), {},
         WIDE)):
        yield made(name, "wrong", why, total, truth=truth, inputs=inputs)
    yield whole("linear", "bias_with_next_2m12", "wrong", "2^-12 of a bias is the next column's", _bias_with_next)
    yield chain("layer_norm", "last_eight_about_early_mean", "wrong", "the last eight columns about the mean before them",
                _last_eight_about_early_mean)


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
