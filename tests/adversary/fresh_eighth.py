"""Fresh, an eighth set: sums along heaps, classes and late corrections; too few bits by sign pairs, carries and alignment (d_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, drawn, tree, two_sum_in
from fresh import _norm, _rms, _tree_rows
from fresh_fifth import fma
from fresh_fourth import FIRST_OTHER, INSIDE, PLAIN, SECOND_OTHER, _deviated, _inverse, _or_plain
from heldout_tools import ALL, F32, add32, adding, good, in_turn, terms, under, words
from ops import _ERF, _ERFC
from rounding import add_odd, bfloat16, float32 as r, rounding

SUMMED = words("as_is", acc="float32", op="sum")


made, recipe, chain, whole = under("d_")


def _finite(x):
    return np.where(np.isfinite(x), x, 0.0)


# honest sums
def _heap(a, b):
    """Every term has the sums of its two children in an implicit binary heap fused onto it, from the leaves up."""
    t = list(terms(a, b))
    for at in range(len(t) - 1, 0, -1):
        parent = (at - 1) // 2
        t[parent] = add32(t[parent], r(t[at]))
    return r(t[0])


def _rotating_lanes(a, b):
    """Tiles of 11 are dealt to seven accumulators, each tile from one further on; the accumulators in turn from the last."""
    t = terms(a, b)
    lanes = np.zeros((7, *t.shape[1:]))
    for at, each in enumerate(t):
        lane = (at // 11 + at % 11) % 7
        lanes[lane] = add32(lanes[lane], each)
    return in_turn(lanes[::-1])


def _end_to_middle(a, b):
    """One fused chain: from the end to the middle, then from the beginning to the middle."""
    t = terms(a, b)
    half = len(t) // 2
    return in_turn(np.concatenate([t[half:][::-1], t[:half]]))


def _exponent_parity(a, b):
    """Products of even exponent in one chain, those of odd exponent in another."""
    t = r(terms(a, b))
    odd = np.frexp(_finite(t))[1] % 2 != 0
    return add32(in_turn(np.where(odd, 0.0, t)), in_turn(np.where(odd, t, 0.0)))


def _two_steps_late(a, b):
    """The error of each addition joins the term after the next one; the last two come at the end."""
    waiting = [0.0, 0.0]
    y = np.zeros((a.shape[0], b.shape[1]))
    for each in r(terms(a, b)):
        y, error = two_sum_in(y, add32(each, np.broadcast_to(waiting.pop(0), each.shape)))
        waiting.append(error)
    return _or_plain(add32(y, add32(*waiting)), a, b)


def _weyl_tree(a, b):
    """A tree of float32 products in the order of the fractional parts of multiples of the golden ratio."""
    return tree(r(terms(a, b))[np.argsort(np.arange(a.shape[1]) * 0.6180339887498949 % 1)])


def _square_blocks(a, b):
    """Blocks of 1, 4, 9, 16 ... terms, the longest first."""
    t, sums, at, size = terms(a, b), [], 0, 1
    while at < len(t):
        sums.append(in_turn(t[at:at + size * size]))
        at, size = at + size * size, size + 1
    return in_turn(np.stack(sums[::-1]))


def _pair_over_n(a, b, bias):
    """A sum and its gathered errors, both divided by n: the quotient, its fused residual and the errors' share."""
    n, total, lost = a.shape[1], np.zeros((len(a), 1)), np.zeros((len(a), 1))
    for column in a.T:
        total, error = two_sum_in(total, column[:, None])
        lost = add32(lost, error)
    y = r(total / n)
    mended = add32(y, r(add32(fma(-y, n, total), lost) / n))
    return np.where(np.isfinite(mended), mended, r(good(a, b) / n))


def _babuska_bias_last(a, b, bias):
    """Neumaier's sum of float32 products; the bias is its last term, the correction comes after it."""
    t = np.concatenate([r(terms(a, b)), np.broadcast_to(bias, (1, a.shape[0], b.shape[1]))])
    y, lost = t[0], np.zeros_like(t[0])
    for each in t[1:]:
        new = add32(y, each)
        large = np.abs(y) >= np.abs(each)
        lost = add32(lost, np.where(large, add32(r(y - new), each), add32(r(each - new), y)))
        y = new
    mended = add32(y, lost)
    return np.where(np.isfinite(mended), mended, add32(r(good(a, b)), bias))


def _doubling_batches(a, b):
    """Micro-batches of 1, 2, 4, 8 ... samples, each a gradient of its own, added from the largest batch down."""
    t, sums, at, size = terms(a, b), [], 0, 1
    while at < len(t):
        sums.append(in_turn(t[at:at + size]))
        at, size = at + size, size * 2
    return in_turn(np.stack(sums[::-1]))


def honest_sums():
    for name, why, total, truth, inputs in (
        ("heap_upwards", "children fused onto their parents in a binary heap", _heap, PLAIN, ALL),
        ("rotating_lanes", "tiles of 11 to seven accumulators, each from one further on", _rotating_lanes, PLAIN, ALL),
        ("end_to_middle", "fused from the end to the middle, then from the beginning", _end_to_middle, PLAIN, ALL),
        ("exponent_parity", "even exponents in one chain, odd ones in another", _exponent_parity, PLAIN, ALL),
        ("errors_two_steps_late", "each error joins the term after the next", _two_steps_late, INSIDE, ALL),
        ("weyl_tree", "a tree in the order of the golden ratio's multiples", _weyl_tree, PLAIN, ALL)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    yield made("sum_square_blocks", "honest", "blocks of 1, 4, 9, 16 terms, the longest first", _square_blocks, op="sum",
               truth=SUMMED)
    yield whole("mean", "pair_over_n", "honest", "a sum and its errors, both over n", _pair_over_n, truth={"in": {"x": "as_is"}})
    yield whole("linear", "babuska_bias_last", "honest", "Neumaier's sum, the bias last, then the correction", _babuska_bias_last,
                truth=INSIDE)
    yield made("backward_doubling_batches", "honest", "micro-batches of 1, 2, 4, 8 samples, the largest first", _doubling_batches,
               op="backward", truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _bands(x, w, bias, eps):
    """Exponentials less the maximum of their band of 5 columns are kept; a second pass brings every band to the row's maximum."""
    top, bands = np.max(x, axis=1, keepdims=True), []
    for at in range(0, x.shape[1], 5):
        high = np.max(x[:, at:at + 5], axis=1, keepdims=True)
        bands.append(r(r(np.exp(r(x[:, at:at + 5] - high))) * r(np.exp(r(high - top)))))
    total = in_turn(np.stack([_tree_rows(band) for band in bands]))
    return r(np.concatenate(bands, axis=1) / total)


def _rising(x, w, bias, eps):
    """Exponentials added from the smallest on, divided in float64."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    return e / in_turn(np.sort(e, axis=1).T[:, :, None])


def _merged(x):
    """(count, mean, sum of squared deviations) of rows, by halves, as Chan merges them."""
    n = x.shape[1]
    if n == 1:
        return 1, x, np.zeros_like(x)
    (m, one, s), (k, two, t) = _merged(x[:, :n // 2]), _merged(x[:, n // 2:])
    apart = r(two - one)
    return n, fma(apart, r(np.float64(k / n)), one), add32(add32(s, t), r(r(apart * apart) * r(np.float64(m * k / n))))


def _chan_tree(x, w, bias, eps):
    n, mean, squares = _merged(x)
    return _deviated(r(x - mean), 0.0, _inverse(r(r(squares / n) + eps)), w, bias)


def _root_of_quotient(x, w, bias, eps):
    """Five fused chains of squares from the end; the root of n over their sum and n eps."""
    k = x.shape[1]
    chains = np.zeros((5, len(x), 1))
    for at in range(k - 1, -1, -1):
        chains[at % 5] = fma(x[:, at:at + 1], x[:, at:at + 1], chains[at % 5])
    return r(r(x * r(np.sqrt(r(k / add32(in_turn(chains), r(np.float64(k * eps))))))) * w)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def _gauss_legendre(x):
    """1/2 and 40 points of Gauss and Legendre below 5, erfc beyond; in float64."""
    near = np.where(np.abs(x) < 5, x, 0.0)[..., None]
    area = (np.exp(-(near * (NODES + 1) / 2)**2 / 2) * WEIGHTS).sum(axis=-1) * near[..., 0] / 2 * 0.3989422804014327
    return np.where(np.abs(x) < 5, x * (0.5 + area), 0.5 * x * _ERFC(-x * 0.7071067811865476))


def _pade_squared(x):
    """e^-x by Pade's quotient of degree 3 at x / 2^12, squared twelve times; in float64."""
    z = np.clip(-x, -700, 700) / 2**12
    e = (120 + z * (60 + z * (12 + z))) / (120 - z * (60 - z * (12 - z)))
    for _ in range(12):
        e = e * e
    return np.where(np.isneginf(x), x * 0, x / (1 + e))


COSINES = np.cos(np.pi * (np.arange(24) + 0.5) / 24)
SERIES = np.polynomial.chebyshev.chebfit(COSINES, np.tanh(np.sqrt((COSINES + 1) / 2)) / np.sqrt((COSINES + 1) / 2), 20)


def _chebyshev(x):
    """Below 1 x times a Chebyshev series in x^2, by Clenshaw, beyond it expm1; in float64."""
    near = np.where(np.abs(x) < 1, x, 0.0)
    e = np.expm1(-2 * np.abs(x))
    series = near * np.polynomial.chebyshev.chebval(2 * near * near - 1, SERIES)
    return np.where(np.abs(x) < 1, series, np.copysign(-e / (2 + e), x))


def honest_chains():
    for op, name, why, f in (
        ("softmax", "bands_of_five", "bands less their own maxima, brought to the row's in a second pass", _bands),
        ("softmax", "rising_wide_quotient", "exponentials from the smallest on, divided in float64", _rising),
        ("layer_norm", "chan_tree", "means and deviations merged by halves from single elements", _chan_tree),
        ("rms_norm", "root_of_quotient", "the root of n over the sum and n eps", _root_of_quotient)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "gauss_legendre", "the density by 40 points of Gauss and Legendre, in float64", _gauss_legendre),
        ("silu", "pade_squared", "Pade's quotient at x / 4096, squared twelve times, in float64", _pade_squared),
        ("tanh", "chebyshev", "a Chebyshev series in x^2, in float64", _chebyshev)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _last_quarter(a, b):
    """The first operand in 13 bits in the last quarter of K."""
    last = np.arange(a.shape[1]) >= a.shape[1] - -(-a.shape[1] // 4)
    return good(np.where(last, rounding("p13")(a), a), b)


def _third_columns(a, b):
    """Every third column of the second operand in 18 bits."""
    return good(a, np.where(np.arange(b.shape[1]) % 3 == 2, rounding("p18")(b), b))


def _second_carry(a, b):
    """The sum is carried from tile to tile of 20; every other carry has 17 bits, ties away."""
    y, n = np.zeros((a.shape[0], b.shape[1])), rounding("p17_rna")
    for at, piece in enumerate(cut(terms(a, b), 20)):
        y = in_turn(np.concatenate([(n(y) if at % 2 else y)[None], piece]))
    return y


def _both_negative(a, b):
    """Products of two negative numbers in 16 bits."""
    t = terms(a, b)
    both = (a.T < 0)[:, :, None] & (b < 0)[:, None, :]
    return in_turn(np.where(both, rounding("p16")(t), t))


def _grid_below(a, b):
    """Sums below 1/16 lie on a grid of 2^-16, as a float of few exponents has them."""
    def add(s, t):
        exact = add_odd(s, t)
        return r(np.where(np.abs(exact) < 2.0**-4, np.rint(exact * 2.0**16) * 2.0**-16, exact))

    return in_turn(terms(a, b), add)


def _sixteenth_drawn(a, b):
    """Every 16th addition is drawn to 12 bits."""
    y, n = np.zeros((a.shape[0], b.shape[1])), drawn("p12_sr")
    for at, each in enumerate(terms(a, b)):
        s = add_odd(y, each)
        y = r(n(s)) if at % 16 == 15 else r(s)
    return y


def _carry_out(a, b):
    """A sum that is of a higher exponent than both its summands keeps 18 bits: the shifter to the right is short."""
    n = rounding("p18_rz")

    def add(s, t):
        exact = add_odd(s, t)
        before = np.maximum(np.frexp(_finite(s))[1], np.frexp(_finite(t))[1])
        grown = (s != 0) & (t != 0) & (np.frexp(_finite(exact))[1] > before)
        return r(np.where(grown, n(exact), exact))

    return in_turn(terms(a, b), add)


def _outer_rows(a, b):
    """The first and the last row from an accumulator of 21 bits."""
    t, rows = terms(a, b), np.arange(a.shape[0])[:, None]
    return np.where((rows == 0) | (rows == a.shape[0] - 1), in_turn(t, adding("p21")), in_turn(t))


def _aligned_tf32(a, b):
    """Both operands in tf32 where K is a multiple of 4, as an aligned path has them; as they are elsewhere."""
    n = rounding("tf32" if a.shape[1] % 4 == 0 else "as_is")
    return good(n(a), n(b))


def _equal_signs(a, b):
    """Sums of two numbers of equal sign keep 19 bits, differences all."""
    n = rounding("p19")
    return in_turn(terms(a, b), lambda s, t: r(np.where(s * t > 0, n(add_odd(s, t)), add_odd(s, t))))


def _small_gradients(a, b):
    """Gradients below 1/4 in 12 bits."""
    return good(np.where(np.abs(a) < 0.25, rounding("p12")(a), a), b)


def _large_bias(a, b, bias):
    """Biases of at least 1 in 7 bits."""
    return add32(r(good(a, b)), np.where(np.abs(bias) >= 1, rounding("p7")(bias), bias))


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("last_quarter_p13", "the first operand in 13 bits in the last quarter of K", _last_quarter, FIRST_OTHER, F32),
        ("third_columns_p18", "every third column of the second operand in 18 bits", _third_columns, SECOND_OTHER, F32),
        ("second_carry_p17_rna", "every other carry between tiles of 20 in 17 bits", _second_carry, INSIDE, ALL),
        ("both_negative_p16", "products of two negative numbers in 16 bits", _both_negative, {}, F32),
        ("grid_2m16_below_2m4", "sums below 1/16 on a grid of 2^-16", _grid_below, INSIDE, ALL),
        ("sixteenth_drawn_p12", "every 16th addition drawn to 12 bits", _sixteenth_drawn, INSIDE, ALL),
        ("carry_out_p18", "sums that grow beyond both summands' exponents cut to 18 bits", _carry_out, INSIDE, ALL),
        ("outer_rows_p21", "the first and the last row in 21 bits", _outer_rows, INSIDE, ALL),
        ("aligned_tf32", "tf32 where K is a multiple of 4", _aligned_tf32, {}, F32)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield recipe("join_p14_rod", "narrow", "four parts kept and added to odd in 14 bits", combine="p14_rod", order="split4")
    yield recipe("acc_p21_rz_split8", "narrow", "eight parts cut to 21 bits", acc="p21_rz", order="split8")
    yield recipe("in_p21_rod_by_p19_rz", "narrow", "21 bits to odd times 19 bits cut", a="p21_rod", b="p19_rz", order="lanes4",
                 inputs=F32)
    yield recipe("prod_p19_rod", "narrow", "products to odd in 19 bits", prod="p19_rod", order="lanes16", inputs=F32)
    yield recipe("mid_p22_rz", "narrow", "a float64 sum cut to 22 bits before the store", acc="float64", mid="p22_rz", inputs=F32)
    yield made("sum_equal_signs_p19", "narrow", "sums of equal signs in 19 bits", _equal_signs, op="sum",
               truth={"in": {"x": "as_is"}})
    yield recipe("mean_quotient_p20_rna", "narrow", "the quotient through 20 bits, ties away", op="mean", mid="p20_rna",
                 order="lanes8", inputs=F32)
    yield whole("linear", "large_bias_p7", "narrow", "biases of at least 1 in 7 bits", _large_bias, truth=INSIDE)
    yield made("backward_small_gradients_p12", "narrow", "gradients below 1/4 in 12 bits", _small_gradients, op="backward",
               inputs=F32, truth=words("other", "as_is", acc="float32", op="backward"))


# narrow chains
def _softmax_below_minus_3(x, w, bias, eps):
    d = r(x - np.max(x, axis=1, keepdims=True))
    e = np.exp(d)
    e = np.where(d < -3, rounding("p12")(e), r(e))
    return r(e / _tree_rows(e))


def _softmax_late_sum(x, w, bias, eps):
    """Exponentials beyond the 16th column are added in 18 bits."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    y = in_turn(e.T[:16, :, None])
    for column in e.T[16:, :, None]:
        y = adding("p18")(y, column)
    return r(e / y)


def _gain_beyond_one(x, w, bias, eps):
    """If the gain is larger than 1, the product with it is bfloat16."""
    y = r(x * _inverse(r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps)))
    return np.where(np.abs(w) > 1, bfloat16(y * w), r(y * w))


def _gelu_positive(x):
    """Above 0 erf has 18 bits."""
    e = _ERF(r(x * 0.7071067811865476))
    return r(r(0.5 * x) * r(1 + np.where(x > 0, rounding("p18_rz")(e), r(e))))


def _silu_negative(x):
    """Below 0, where e^-x is large, it has 14 bits."""
    e = np.exp(-x)
    return r(x / r(1 + np.where(x < 0, rounding("p14")(e), r(e))))


def _tanh_between(x):
    """From 1 to 2 the result is cut to 19 bits."""
    y, size = np.tanh(x), np.abs(x)
    return np.where((size >= 1) & (size < 2), rounding("p19_rz")(y), r(y))


def narrow_chains():
    for op, name, why, f, inputs in (
        ("softmax", "exp_below_minus_3_p12", "exponentials of arguments below -3 in 12 bits", _softmax_below_minus_3, ALL),
        ("softmax", "late_sum_p18", "the sum beyond the 16th column in 18 bits", _softmax_late_sum, ALL),
        ("layer_norm", "mean_p19_rod", "the mean to odd in 19 bits", _norm(mean_of=lambda s, k: rounding("p19_rod")(s / k)), ALL),
        ("layer_norm", "bias_added_p19_rz", "the sum with the bias cut to 19 bits", _norm(
            affine=lambda y, w, bias: rounding("p19_rz")(add_odd(*np.broadcast_arrays(r(y * w), bias)))), F32),
        ("rms_norm", "gain_beyond_one_bfloat16", "products with gains above 1 in bfloat16", _gain_beyond_one, ALL)):
        yield chain(op, name, "narrow", why, f, inputs=inputs)
    for op, name, why, f in (
        ("gelu", "positive_erf_p18_rz", "erf above 0 cut to 18 bits", _gelu_positive),
        ("silu", "negative_exp_p14", "the exponential below 0 in 14 bits", _silu_negative),
        ("tanh", "between_1_and_2_p19_rz", "results from 1 to 2 cut to 19 bits", _tanh_between)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _tile_less(a, b):
    """Rows and columns 4 to 7 times 1 - 2^-12."""
    y = good(a, b)
    y[4:8, 4:8] *= 1 - 2.0**-12
    return y


def _third_twice(a, b):
    """In odd columns the term at a third of K counts twice."""
    t = terms(a, b)
    t[len(t) // 3, :, 1::2] *= 2
    return in_turn(t)


def _tail_of_five(a, b):
    """Terms beyond the last whole group of five count half."""
    t = terms(a, b)
    t[len(t) // 5 * 5:] /= 2
    return in_turn(t)


def _bias_capped(a, b, bias):
    """If the product is beyond 4, no bias is added."""
    y = r(good(a, b))
    return np.where(np.abs(y) > 4, y, add32(y, bias))


def _late_less(x, w, bias, eps):
    """Columns beyond the 24th count 1 - 2^-9 times in the sum."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    return r(e / _tree_rows(r(e * np.where(np.arange(x.shape[1]) >= 24, 1 - 2.0**-9, 1.0))))


def _no_denominator(x):
    """Below -3 the denominator of x e^x / (1 + e^x) is left out."""
    return np.where(x < -3, r(x * r(np.exp(x))), r(x / r(1 + r(np.exp(-x)))))


def wrong():
    yield made("tile_less_2m12", "wrong", "one tile times 1 - 2^-12", _tile_less)
    yield made("third_twice_in_odd_columns", "wrong", "one term counts twice in odd columns", _third_twice)
    yield made("sum_tail_of_five_half", "wrong", "what 5 leaves over counts half", _tail_of_five, op="sum")
    yield whole("mean", "n_of_three_bits", "wrong", "divided by n in 3 bits",
                lambda a, b, bias: r(r(good(a, b)) / rounding("p3")(np.array([float(a.shape[1])]))))
    yield whole("linear", "no_bias_beyond_4", "wrong", "no bias beside products beyond 4", _bias_capped)
    yield chain("softmax", "late_columns_less", "wrong", "columns beyond the 24th count 1 - 2^-9 times in the sum", _late_less)
    yield chain("rms_norm", "eps_squared", "wrong", "eps squared", _rms(eps_of=lambda eps: eps * eps))
    yield chain("silu", "no_denominator_below_3", "wrong", "below -3 no denominator", lambda x, w, bias, eps: _no_denominator(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
