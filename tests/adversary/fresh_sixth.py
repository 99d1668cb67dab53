"""Fresh, a sixth set: what libraries do in exponentials, inverse roots, sums and stores, rightly, in too few bits or not at all (k_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, parts_of, tree, two_sum_in
from fresh import _rms, _softmax, _tree_rows
from fresh_fifth import _gelu_exact, fma
from fresh_fourth import INSIDE, LOG2E, OTHER, PLAIN, _deviated, _inverse, _or_plain, _unit
from heldout_operands import _posit
from heldout_tools import ALL, F32, add32, good, in_turn, terms, under, words
from ops import _ERF
from rounding import bfloat16, float16, float32 as r, ranged, rounding

SUMMED = {"in": {"x": "as_is"}}
FNUZ, E4M3 = ranged(4, low=-7), ranged(4, low=-6)


made, recipe, chain, whole = under("k_")


def _finite(x):
    return np.where(np.isfinite(x), x, 0.0)


def _f32(text):
    """A constant as float32 code writes it."""
    return r(np.float64(text))


def _horner(x, coefficients, add=None):
    """A polynomial by rounded products and sums (by fused steps, if add is fma), the highest coefficient first."""
    y = np.full_like(x, r(np.float64(coefficients[0])))
    for c in coefficients[1:]:
        y = fma(y, x, _f32(c)) if add is fma else r(r(y * x) + _f32(c))
    return y


# honest sums
def _against_the_sum(a, b):
    """Products sorted; a sum above 0 takes the lowest one next, any other the highest one, so that signs cancel early."""
    t = np.sort(r(terms(a, b)), axis=0)
    low, high = np.zeros((1, *t.shape[1:]), int), np.full((1, *t.shape[1:]), len(t) - 1)
    y = np.zeros(t.shape[1:])
    for _ in range(len(t)):
        lowest = y[None] > 0
        y = add32(y, np.take_along_axis(t, np.where(lowest, low, high), axis=0)[0])
        low, high = low + lowest, high - ~lowest
    return y


def _two_sizes(a, b):
    """Products of at least 1 in one fused chain, all others in another."""
    t = terms(a, b)
    large = np.abs(t) >= 1
    return add32(in_turn(np.where(large, 0.0, t)), in_turn(np.where(large, t, 0.0)))


def _golden(t):
    """Recursive sections in the ratio of 38 to 62, down to four terms."""
    if len(t) <= 4:
        return in_turn(t)
    at = round(0.381966 * len(t))
    return add32(_golden(t[:at]), _golden(t[at:]))


def _tree_of_pairs(a, b):
    """A tree of neighbours whose nodes are sums with their errors beside them."""
    t = terms(a, b)
    s = r(t)
    lost = r(np.where(np.isfinite(s), t - s, 0.0))
    while len(s) > 1:
        pairs = len(s) // 2 * 2
        both, error = two_sum_in(s[0:pairs:2], s[1:pairs:2])
        beside = r(r(lost[0:pairs:2] + lost[1:pairs:2]) + error)
        s, lost = np.concatenate([both, s[pairs:]]), np.concatenate([beside, lost[pairs:]])
    return _or_plain(add32(s[0], lost[0]), a, b)


def _after_first_tile(a, b, bias):
    """The bias is added when the first 16 of K are done, by the wave that has it at hand."""
    y = add32(in_turn(terms(a[:, :16], b[:16])), bias)
    for each in terms(a[:, 16:], b[16:]):
        y = add32(y, each)
    return y


def _sorted_with_bias(a, b, bias):
    """The bias is one of the terms, which are added from the smallest to the largest."""
    t = r(terms(a, b))
    t = np.concatenate([t, np.broadcast_to(bias, (1, *t.shape[1:]))])
    return in_turn(np.take_along_axis(t, np.argsort(np.abs(t), axis=0, kind="stable"), axis=0))


def _corrected_mean(a, b, bias):
    """The sum times 1/n and one fused residual, as compilers divide by a known number."""
    s, k = r(good(a, b)), float(a.shape[1])
    y = r(s * r(1 / k))
    better = fma(fma(-y, k, s), r(1 / k), y)
    return np.where(np.isfinite(better), better, y)


def _root_blocks(a, b):
    """Blocks as long as there are many."""
    return in_turn(np.stack([in_turn(piece) for piece in cut(terms(a, b), int(np.ceil(np.sqrt(a.shape[1]))))]))


def _high_and_low(a, b):
    """The upper 12 bits of all terms in one sum, what they leave in another."""
    high = rounding("p12")(a)
    low = np.where(np.isfinite(high), a - _finite(high), 0.0)
    return add32(in_turn(terms(low, b)), in_turn(terms(high, b)))


def _two_trees(a, b):
    """NCCL's double tree: the lower half of the gradient by one tree of eight ranks, the upper half by the same, one rank on."""
    parts = parts_of(a, b, 8, lambda x, w: in_turn(terms(x, w)))
    lower = np.arange(a.shape[0])[:, None] < a.shape[0] // 2
    return np.where(lower, tree(parts), tree(np.roll(parts, 1, axis=0)))


def honest_sums():
    for name, why, total, truth in (
        ("against_the_sum", "sorted products, the next one of the other sign", _against_the_sum, PLAIN),
        ("two_sizes", "products of at least 1 in one chain, others in another", _two_sizes, PLAIN),
        ("golden_sections", "recursive sections in the golden ratio", lambda a, b: _golden(terms(a, b)), PLAIN),
        ("tree_of_pairs", "a tree of sums with their errors beside them", _tree_of_pairs, INSIDE)):
        yield made(name, "honest", why, total, truth=truth)
    yield recipe("acc_p25_sr", "honest", "25 bits, stochastic: never off by more than a float32's half unit", acc="p25_sr", order="lanes6")
    yield made("sum_root_blocks", "honest", "blocks as long as there are many", _root_blocks, op="sum",
               truth=words("as_is", acc="float32", op="sum"))
    yield made("sum_high_and_low", "honest", "upper 12 bits of the terms in one sum, the rest in another", _high_and_low, op="sum",
               truth=SUMMED)
    yield whole("mean", "corrected_quotient", "honest", "times 1/n, and one fused residual", _corrected_mean, truth=SUMMED)
    plain = words("as_is", acc="float32", op="linear")
    yield whole("linear", "bias_after_first_tile", "honest", "the bias added after 16 of K", _after_first_tile, truth=plain)
    yield whole("linear", "sorted_with_bias", "honest", "products and bias from the smallest on", _sorted_with_bias, truth=plain)
    yield made("backward_two_trees", "honest", "half of the gradient by another tree of ranks", _two_trees, op="backward",
               truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _by_logarithm_wide(x, w, bias, eps):
    d = x - np.max(x, axis=1, keepdims=True)
    return np.exp(d - np.log(np.exp(d).sum(axis=1, keepdims=True)))


def _pair_quotients(x, w, bias, eps):
    """1 / (the sum of e^(xj - xi)): n^2 exponentials, in float64."""
    x = x - np.max(x, axis=1, keepdims=True)  # an infinite element makes the whole row NaN, as it does elsewhere
    return 1 / np.exp(x[:, None, :] - x[:, :, None]).sum(axis=2)


def _fdlibm_exp(d):
    """expf: ln 2 in two parts, then 1 + 2 x / (2 - c - x) with x = hi - lo."""
    d = np.maximum(d, -160.0)
    n = np.where(np.abs(d) > 0.34657, np.trunc(r(r(d * _f32(1.4426950216e+00)) - 0.5)), 0.0)
    hi, lo = r(d - n * _f32(6.9314575195e-01)), r(n * _f32(1.4286067653e-06))
    x = r(hi - lo)
    z = r(x * x)
    c = r(x - r(z * r(_f32(1.6666625440e-1) + r(z * _f32(-2.7667332906e-3)))))
    return r(r(1 + r(r(r(r(x * c) / r(2 - c)) - lo) + hi)) * 2.0**n)


def _pair_sum(x):
    """(a float32 sum of a row, what it lacks) by two-sums."""
    s = lost = np.zeros((len(x), 1))
    for column in x.T:
        s, error = two_sum_in(s, r(column[:, None]))
        lost = r(lost + r(error + _finite(column[:, None] - r(column[:, None]))))
    return s, lost


def _two_float_statistics(x, w, bias, eps):
    """Sums, and the mean, as two float32 numbers."""
    k = x.shape[1]
    s, lost = _pair_sum(x)
    mean = r(s / k)
    low = r(r(fma(-mean, float(k), s) + lost) / k)
    d = r(r(x - mean) - low)
    squares = add32(*_pair_sum(d * d))
    return add32(r(r(d * _inverse(r(r(squares / k) + eps))) * w), bias)


def _youngs_cramer(x, w, bias, eps):
    """Youngs and Cramer: the running sum, and squares of j x_j less it over j (j - 1)."""
    total, squares = x[:, :1], np.zeros((len(x), 1))
    for j, column in enumerate(x.T[1:], 2):
        total = add32(total, column[:, None])
        e = r(r(j * column[:, None]) - total)
        squares = add32(squares, r(r(e * e) / (j * (j - 1))))
    k = x.shape[1]
    return _deviated(x, r(total / k), _inverse(r(r(squares / k) + eps)), w, bias)


def _by_largest(x, w, bias, eps):
    """The row over its largest element, eps over the square of that; rows of next to nothing are left as they are."""
    top = np.max(np.abs(x), axis=1, keepdims=True)
    top = np.where(np.isfinite(top) & (top > 2.0**-40), top, 1.0)
    u = r(x / top)
    v = r(_tree_rows(r(u * u)) / x.shape[1])
    return r(r(u * _inverse(r(v + r(r(eps / top) / top)))) * w)


_RA = (-9.8143291473e+00, -8.1287437439e+01, -1.8460508728e+02, -1.6239666748e+02, -6.2375331879e+01, -1.0558626175e+01,
       -6.9385856390e-01, -9.8649440333e-03)
_SA = (-6.0424413532e-02, 6.5702495575e+00, 1.0863500214e+02, 4.2900814819e+02, 6.4538726807e+02, 4.3456588745e+02, 1.3765776062e+02,
       1.9651271820e+01, 1.0)
_RB = (-4.8351919556e+02, -1.0250950928e+03, -6.3756646729e+02, -1.6063638306e+02, -1.7757955551e+01, -7.9928326607e-01,
       -9.8649431020e-03)
_SB = (-2.2440952301e+01, 4.7452853394e+02, 2.5530502930e+03, 3.1998581543e+03, 1.5367296143e+03, 3.2579251099e+02, 3.0338060379e+01,
       1.0)


def _fdlibm_erfc(z):
    """erfcf: beyond 1.25 the square of the first 12 bits of z goes into one exponential, what it leaves into another."""
    size = np.abs(z)
    far = np.where(size < 1.25, 1.25, np.minimum(size, 28.0))
    s = r(1 / r(far * far))
    near = far < 2.857143
    quotient = np.where(near, r(_horner(s, _RA) / _horner(s, _SA)), r(_horner(s, _RB) / _horner(s, _SB)))
    short = rounding("p12_rz")(far)
    tail = r(r(np.exp(r(r(-short * short) - 0.5625))) * r(np.exp(r(r(r(short - far) * r(short + far)) + quotient))))
    tail = r(tail / far)
    inner = r(1 - r(_ERF(np.where(size < 1.25, z, 0.0))))
    return np.where(size < 0.84375, inner, np.where(size < 1.25, _middle(z), np.where(z < 0, r(2 - tail), tail)))


_PA = (-2.1663755178e-03, 3.5478305072e-02, -1.1089469492e-01, 3.1834661961e-01, -3.7220788002e-01, 4.1485610604e-01, -2.3621185683e-03)
_QA = (1.1984500103e-02, 1.3637083583e-02, 1.2617121637e-01, 7.1828655899e-02, 5.4039794207e-01, 1.0642088205e-01, 1.0)


def _middle(z):
    """From 0.84375 to 1.25."""
    s = r(np.where(np.abs(z) < 1.25, np.abs(z), 1.0) - 1)
    quotient = r(_horner(s, _PA) / _horner(s, _QA))
    erx = _f32(8.4506291151e-01)
    return np.where(z < 0, r(1 + r(erx + quotient)), r(r(1 - erx) - quotient))


def _gelu_fdlibm(x):
    return r(r(0.5 * x) * _fdlibm_erfc(r(-x * 0.7071067811865476)))


def _gelu_laplace(x):
    """The tail as the density times a Laplace integral, by 64 points of Gauss and Legendre on each of three pieces, in float64."""
    size = np.minimum(np.abs(x), 40.0)
    ratio = np.zeros_like(size)
    at, weight = np.polynomial.legendre.leggauss(64)
    for low, high in ((0.0, 1.0), (1.0, 4.0), (4.0, 10.0)):
        t, share = low + (high - low) * (at + 1) / 2, weight * (high - low) / 2
        ratio += (np.exp(-size[..., None] * t - t * t / 2) * share).sum(axis=-1)
    tail = ratio * np.exp(-size * size / 2) * 0.3989422804014327
    return np.where(np.isneginf(x), x * 0, np.where(x > 0, x - _finite(x) * tail, _finite(x) * tail))


def _silu_markstein(x):
    """8 bits of a reciprocal, two fused steps, and a fused residual of the quotient."""
    below = r(1 + r(np.exp(-x)))
    usual = np.isfinite(x) & (below < 2.0**100)
    den, num = np.where(usual, below, 1.0), np.where(usual, x, 0.0)
    y = rounding("p8")(1 / den)
    for _ in range(2):
        y = fma(fma(-den, y, 1.0), y, y)
    q = r(num * y)
    return np.where(usual, fma(fma(-den, q, num), y, q), r(x / below))


def _quake_three(v):
    """The fast inverse root and three steps of Newton's, the half of v times y^2 as it is written in C."""
    usual = np.isfinite(v) & (v > 0)
    near = np.where(usual, v, 1.0).astype(np.float32)
    y = (np.int32(0x5f3759df) - (near.view(np.int32) >> 1)).view(np.float32).astype(np.float64)
    for _ in range(3):
        y = r(y * r(1.5 - r(r(r(0.5 * near.astype(np.float64)) * y) * y)))
    return np.where(usual, y, 1 / np.sqrt(v))


def _exp_taylor_6(d):
    """Taylor's polynomial of degree 6 for e^f, ln 2 in two parts."""
    d = np.clip(d, -160.0, 160.0)
    n = np.rint(r(d * LOG2E))
    f = r(r(d - n * 0.693359375) - r(n * _f32(-2.12194440e-4)))
    return r(_horner(f, (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0), fma) * 2.0**n)


def _silu_of(exp):
    return lambda x: r(x / r(1 + exp(-x)))


def _tanh_taylor(x):
    """Taylor's series about the nearest eighth, its coefficients from y' = 1 - y^2, in float64."""
    c = np.clip(np.rint(8 * np.where(np.isnan(x), 0.0, x)) / 8, -20, 20)
    a = [np.tanh(c)]
    for n in range(12):
        a.append(((n == 0) - sum(a[i] * a[n - i] for i in range(n + 1))) / (n + 1))
    h, y = np.where(np.abs(x) < 20, x - c, 0.0), np.zeros_like(c)
    for each in a[::-1]:
        y = y * h + each
    return np.where(np.isnan(x), x, y)


def _complement(x):
    """1 - 2 / (1 + e^2x), and two terms of a series below 2^-10; in float64."""
    return np.where(np.abs(x) < 2.0**-10, x - x * x * x / 3, 1 - 2 / (1 + np.exp(2 * x)))


def honest_chains():
    for op, name, why, f in (
        ("softmax", "by_logarithm_wide", "e to the log-softmax, in float64", _by_logarithm_wide),
        ("softmax", "fdlibm_exp", "fdlibm's expf", _softmax(exp=_fdlibm_exp)),
        ("softmax", "pair_quotients", "1 over the sum of e^(xj - xi), in float64", _pair_quotients),
        ("layer_norm", "two_float_statistics", "sums and mean as two float32 numbers", _two_float_statistics),
        ("layer_norm", "youngs_cramer", "Youngs and Cramer's recurrence", _youngs_cramer),
        ("rms_norm", "by_largest", "the row over its largest element, eps too", _by_largest),
        ("rms_norm", "quake_three", "the fast inverse root, 3 steps: as near as float32 comes", _rms(rsqrt=_quake_three))):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "fdlibm_erfc", "fdlibm's erfcf", _gelu_fdlibm),
        ("gelu", "laplace", "the tail as a Laplace integral, in float64", _gelu_laplace),
        ("silu", "markstein", "a reciprocal of 8 bits mended by fused steps, and the quotient too", _silu_markstein),
        ("silu", "taylor_6", "an exponential by Taylor's polynomial of degree 6, off by a unit at most", _silu_of(_exp_taylor_6)),
        ("silu", "softplus_wide", "x e^(-log1p(e^-x)), in float64", lambda x: x * np.exp(-np.log1p(np.exp(-x)))),
        ("tanh", "taylor_nearest", "a series about the nearest eighth", _tanh_taylor),
        ("tanh", "complement_wide", "1 - 2 / (1 + e^2x), in float64", _complement)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _at_2m20(a, b):
    """The accumulator is float32 at 2^-20 of the size, so that it never overflows: near the smallest numbers its bits are lost."""
    return in_turn(terms(a, b) * 2.0**-20) * 2.0**20


def _fnuz_tensor(a, b):
    """AMD's e4m3 with a bias of 8, one float32 scale per tensor."""
    s, t = (_unit(x.ravel(), 0, 240.0) for x in (a, b))
    return r(r(good(FNUZ(np.clip(r(a / s), -240, 240)), FNUZ(np.clip(r(b / t), -240, 240))) * s) * t)


def _e4m3_in_two(a, b):
    """Two pieces of e4m3, the second lifted by 16; three products, scales per row and column."""
    s, t = _unit(a, 1, 448.0), _unit(b, 0, 448.0)
    pieces = []
    for x in (r(a / s), r(b / t)):
        high = E4M3(np.clip(x, -448, 448))
        pieces.append((high, E4M3(np.clip(_finite(16 * (x - high)), -448, 448))))
    (x, dx), (w, dw) = pieces
    return r(r(add32(r(add32(good(dx, w), good(x, dw)) / 16), good(x, w)) * s) * t)


def _by_parts(a, b):
    """Abel's summation by parts: running sums of the first operand times differences of the second."""
    run = np.zeros(a.shape[0])
    y = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        run = add32(run, a[:, k])
        step = r(b[k] - b[k + 1]) if k + 1 < a.shape[1] else b[k]
        y = add32(y, run[:, None] * step[None, :])
    return y


def _parts_posit(a, b):
    """Four parts of K are kept as posits of 16 bits and added in float32."""
    return in_turn(_posit(16, 1)(parts_of(a, b, 4, good)))


def _prefix_difference(a, b):
    """One running sum over the whole tensor; a row's is the difference of two of its values."""
    ends = np.cumsum(a.astype(np.float32).ravel(), dtype=np.float32).astype(np.float64).reshape(a.shape)[:, -1]
    return r(ends - np.concatenate([[0.0], ends[:-1]]))[:, None]


def _float16_weights(a, b, bias):
    """Means of 32, merged by weights of float16."""
    k = a.shape[1]
    return in_turn(np.stack([r(r(good(a[:, at:at + 32], b[at:at + 32]) / min(32, k - at)) * float16(min(32, k - at) / k))
                             for at in range(0, k, 32)]))


def _meets_last_tile(a, b, bias):
    """The bias and the last 8 of K are added in a float16 epilogue, the rest joins in float32."""
    last = float16(add32(in_turn(terms(a[:, -8:], b[-8:])), bias))
    return add32(in_turn(terms(a[:, :-8], b[:-8])), last) if a.shape[1] > 8 else last


def _saved_int8(a, b):
    """Activations are saved as int8 with a scale per sample."""
    s = _unit(b, 1, 127.0)
    return good(a, np.where(np.isfinite(b), r(np.clip(np.rint(b / s), -127, 127) * s), b))


def narrow_sums():
    for name, why, more in (
        ("acc_p25_rz", "25 bits, cut: a bias of many steps", {"acc": "p25_rz"}),
        ("acc_p21_rod_split7", "seven parts of 21 bits to odd", {"acc": "p21_rod", "order": "split7"}),
        ("mid_p24_rod", "a float64 sum to odd in 24 bits before the store", {"acc": "float64", "mid": "p24_rod", "order": "lanes4"})):
        yield recipe(name, "narrow", why, **more)
    for name, why, more in (
        ("in_p15_rod_by_p15_rna", "15 bits to odd times 15 bits, ties away", {"a": "p15_rod", "b": "p15_rna", "order": "lanes8"}),
        ("in_second_p22_sr", "the second operand drawn to 22 bits", {"b": "p22_sr", "order": "blocked24"}),
        ("prod_p23_rna", "products to 23 bits, ties away", {"prod": "p23_rna", "order": "lanes12"})):
        yield recipe(name, "narrow", why, inputs=F32, **more)
    yield recipe("backward_g_p20_sr", "narrow", "the incoming gradient drawn to 20 bits", op="backward", inputs=F32, a="p20_sr",
                 order="lanes16")
    for name, why, total, truth, inputs in (
        ("acc_at_2m20", "a float32 sum kept at 2^-20 of its size", _at_2m20, INSIDE, F32),
        ("fnuz_tensor", "AMD's e4m3, a scale per tensor", _fnuz_tensor, OTHER, ALL),
        ("e4m3_in_two", "two pieces of e4m3, three products", _e4m3_in_two, OTHER, F32),
        ("by_parts", "Abel's summation by parts in float32", _by_parts, {}, ALL),
        ("parts_posit16", "four parts kept as posits of 16 bits", _parts_posit, INSIDE, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield made("sum_prefix_difference", "narrow", "the difference of two running sums over the tensor", _prefix_difference, op="sum",
               truth=SUMMED)
    yield whole("mean", "weights_float16", "narrow", "means of 32 merged by float16 weights", _float16_weights)
    yield whole("linear", "bias_in_last_tile_float16", "narrow", "the bias and the last 8 of K in float16", _meets_last_tile)
    yield made("backward_saved_int8", "narrow", "activations in int8 with a scale per sample", _saved_int8, op="backward",
               truth=words("as_is", "other", acc="float32", op="backward"))


# narrow chains
def _degree_4(d):
    """2^f by a polynomial of degree 4 through Chebyshev's points."""
    t = r(np.maximum(d, -160.0) * LOG2E)
    n = np.rint(_finite(t))
    return r(_horner(r(t - n), _QUARTIC, fma) * 2.0**n)


def _through(degree):
    """Coefficients of the polynomial that meets 2^f in Chebyshev's points of -1/2..1/2, the highest first."""
    points = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)) / 2
    return np.linalg.solve(np.vander(points), np.exp2(points))


_QUARTIC = _through(4)


def _scaled_first(x, w, bias, eps):
    """x log2 e and max log2 e are rounded by themselves, then subtracted: FlashAttention without its fused step."""
    e = r(np.exp2(r(r(x * LOG2E) - r(np.max(x, axis=1, keepdims=True) * LOG2E))))
    return r(e / _tree_rows(e))


def _weight_in_two(x, w, bias, eps):
    """The weight is held as two bfloat16 numbers."""
    high = bfloat16(w)
    k = x.shape[1]
    d = r(x - r(_tree_rows(x) / k))
    return add32(r(r(d * _inverse(r(r(_tree_rows(r(d * d)) / k) + eps))) * (high + bfloat16(w - high))), bias)


def _short_inverse_n(x, w, bias, eps):
    """The sum of squares times 1/n in bfloat16, which powers of two do not notice."""
    return r(r(x * _inverse(r(r(_tree_rows(r(x * x)) * bfloat16(np.float64(1 / x.shape[1]))) + eps))) * w)


def _sixteenth_power(x):
    """Abramowitz and Stegun 7.1.28: 1 / (1 + a1 z + ... + a6 z^6)^16 for the tail."""
    z = r(np.minimum(np.abs(x), 100.0) * 0.7071067811865476)
    p = _horner(z, (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0))
    for _ in range(4):
        p = r(p * p)
    tail = r(1 / p)
    return r(r(0.5 * x) * np.where(x < 0, tail, r(2 - tail)))


def _hermite(x):
    """Cubics between float32 values and slopes at multiples of 1/8, from -6 to 6."""
    at = np.arange(-48, 49) / 8
    value = _gelu_exact(at)
    slope = r(0.5 * (1 + _ERF(at * 0.7071067811865476)) + at * np.exp(-at * at / 2) * 0.3989422804014327)
    inside = np.abs(x) < 6
    near = np.where(inside, x, 0.0)
    left = np.minimum(np.floor(8 * near) + 48, 95).astype(int)
    t = r(8 * (near - at[left]))
    p, q, s, u = value[left], value[left + 1], r(slope[left] / 8), r(slope[left + 1] / 8)
    rise = r(q - p)
    cubic = fma(fma(fma(r(r(s + u) - r(2 * rise)), t, r(r(3 * rise) - r(r(2 * s) + u))), t, s), t, p)
    return np.where(inside, cubic, np.where(np.isnan(x), x, np.maximum(x, 0.0)))


def _exp_one_ln2(d):
    """e^f 2^n with ln 2 as one float32 number and no fused step."""
    d = np.clip(d, -160.0, 160.0)
    n = np.rint(r(d * LOG2E))
    return r(r(np.exp(r(d - r(n * _f32(0.6931471805599453))))) * 2.0**n)


def _magic_reciprocal(x):
    """x times a reciprocal by the bits of 0x7EF311C3 and two of Newton's steps."""
    below = r(1 + r(np.exp(-x)))
    usual = below < 2.0**100
    den = np.where(usual, below, 1.0)
    y = (np.int32(0x7EF311C3) - den.astype(np.float32).view(np.int32)).view(np.float32).astype(np.float64)
    for _ in range(2):
        y = r(y * r(2 - r(den * y)))
    return np.where(usual, r(x * y), r(x / below))


def _far_float16(x):
    """An operand beyond 2 in size is read as float16."""
    return r(np.tanh(np.where(np.abs(x) > 2, float16(x), x)))


def _two_over_ln2(constant):
    """1 - 2 / (1 + 2^(c |x|)) beyond 1/4, c being 2 / ln 2 in too few digits."""
    def result(x):
        size = np.abs(x)
        far = r(1 - r(2 / r(1 + r(np.exp2(r(np.minimum(size, 60.0) * constant))))))
        return np.where(size < 0.25, r(np.tanh(x)), np.where(np.isnan(x), x, np.copysign(far, x)))

    return result


def narrow_chains():
    for op, name, why, f, inputs in (
        ("softmax", "exp2_degree_4", "2^f by a polynomial of degree 4", _softmax(exp=_degree_4), ALL),
        ("softmax", "scaled_then_subtracted", "x log2 e and max log2 e rounded each, then subtracted", _scaled_first, ALL),
        ("layer_norm", "weight_two_bfloat16", "the weight as two bfloat16 numbers", _weight_in_two, F32),
        ("rms_norm", "inverse_n_bfloat16", "1/n in bfloat16", _short_inverse_n, ALL),
        ("tanh", "beyond_two_read_float16", "x beyond 2 read as float16", lambda x, *others: _far_float16(x), F32)):
        yield chain(op, name, "narrow", why, f, inputs)
    for op, name, why, f in (
        ("gelu", "sixteenth_power", "Abramowitz and Stegun's sixteenth power", _sixteenth_power),
        ("gelu", "hermite_eighths", "cubics between float32 values at eighths", _hermite),
        ("silu", "ln2_in_one", "an exponential with ln 2 in one piece", _silu_of(_exp_one_ln2)),
        ("silu", "magic_reciprocal", "a reciprocal by a magic number and two steps", _magic_reciprocal),
        ("tanh", "two_log2e_float16", "2^(c |x|), c = 2/ln 2 in float16", _two_over_ln2(float16(np.float64(2.8853900817779268)))),
        ("tanh", "two_log2e_five_digits", "2^(2.8854 |x|)", _two_over_ln2(_f32(2.8854)))):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _index_wraps(a, b):
    """The index into the first operand has 6 bits."""
    return good(a[:, np.arange(a.shape[1]) & 63], b)


def _upper_half_larger(a, b):
    """The second half of K times 1 + 2^-18: the scale of another tile."""
    t = terms(a, b)
    t[len(t) // 2:] *= 1 + 2.0**-18
    return in_turn(r(t))


def _row_before_leaks(a, b):
    """2^-12 of the gradient of the row before is added: a momentum that reads the wrong slot."""
    y = good(a, b)
    return add32(y, np.concatenate([np.zeros((1, y.shape[1])), y[:-1] * 2.0**-12]))


def _padding_of_minus_10(x, w, bias, eps):
    """Columns up to a multiple of 32 are filled with -10, which was thought to be as good as minus infinity."""
    filled = np.pad(x, ((0, 0), (0, -x.shape[1] % 32)), constant_values=-10.0)
    e = r(np.exp(r(filled - np.max(x, axis=1, keepdims=True))))
    return r(e / _tree_rows(e))[:, :x.shape[1]]


def _last_square_half(x, w, bias, eps):
    """The last square counts half, as in a trapezoidal rule."""
    squares = r(x * x)
    squares[:, -1] *= 0.5
    return r(r(x * _inverse(r(r(_tree_rows(squares) / x.shape[1]) + eps))) * w)


def wrong():
    yield made("index_wraps_at_64", "wrong", "a 6-bit index into the first operand", _index_wraps)
    yield made("second_half_1_2m18", "wrong", "the second half of K times 1 + 2^-18", _upper_half_larger)
    yield whole("linear", "bias_less_2m9", "wrong", "the bias times 1 - 2^-9", lambda a, b, bias: add32(
        r(good(a, b)), r(bias * (1 - 2.0**-9))))
    yield made("backward_row_before_leaks", "wrong", "2^-12 of the row before is added", _row_before_leaks, op="backward")
    yield chain("softmax", "padding_minus_10", "wrong", "columns filled with -10 counted", _padding_of_minus_10)
    yield chain("rms_norm", "last_square_half", "wrong", "the last square counts half", _last_square_half)
    yield chain("gelu", "x_beyond_four", "wrong", "x itself beyond 4", lambda x, w, bias, eps: np.where(x > 4, x, _gelu_exact(x)))
    yield chain("silu", "x_beyond_twelve", "wrong", "x itself beyond 12", lambda x, w, bias, eps: np.where(
        x > 12, x, r(x / r(1 + r(np.exp(-x))))))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
