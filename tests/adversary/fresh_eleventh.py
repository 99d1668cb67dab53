"""Fresh, an eleventh set: other radices, intervals, checksums, devices, tables by octave, caches and early ends (o_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import filled, parts_of, two_sum_in
from fresh import _tree_rows
from fresh_fifth import fma
from fresh_fourth import FIRST_OTHER, INSIDE, OTHER, PLAIN, SECOND_OTHER, _deviated, _inverse
from fresh_ninth import LN2, OTHER_SUM, SUMMED, _kept, _polynomial, _shifted
from fresh_tenth import _finite
from heldout_tools import ALL, F32, add32, adding, good, in_turn, largest, terms, under, words
from ops import _ERFC
from products import combined
from rounding import add_odd, bfloat16, float16, float32 as r, rounding

made, recipe, chain, whole = under("o_")
ROOT_HALF = 0.7071067811865476


def _directed(x, up):
    """x in float32, upwards where `up`, downwards elsewhere."""
    y = x.astype(np.float32)
    back = np.where(up, y < x, y > x) & np.isfinite(x)
    return np.where(back, np.nextafter(y, np.where(up, np.inf, -np.inf).astype(np.float32)), y).astype(np.float64)


def _hexadecimal(digits):
    """Cut to so many hexadecimal digits: four binary ones fewer at once where the first digit is small."""
    def of(x):
        finite = np.where(np.isfinite(x), x, 0.0)
        unit = np.ldexp(1.0, 4 * (-(-np.frexp(finite)[1] // 4) - digits))
        return _kept(x, np.trunc(finite / unit) * unit)

    return of


# honest sums
def _interval_midpoint(a, b):
    """One chain of 32 bits rounds up, one down; the result lies half-way between them."""
    def chain_of(up):
        def add(s, v):
            x = add_odd(s, v)
            y = rounding("p32_rz")(x)
            unit = np.ldexp(1.0, np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 32)
            return np.where((x != y) & ((x > 0) == up) & np.isfinite(x), y + np.copysign(unit, x), y)

        return in_turn(terms(a, b), add)

    return chain_of(False) / 2 + chain_of(True) / 2


def _fourteen_digits(x):
    finite = np.where(np.isfinite(x) & (x != 0), x, 1.0)
    unit = 10.0**(np.floor(np.log10(np.abs(finite))) - 13)
    return np.where(np.isfinite(x) & (x != 0), np.rint(finite / unit) * unit, x)


def _two_orders_averaged(a, b):
    """The middle of a chain from the first term and one from the last."""
    t = terms(a, b)
    one, two = in_turn(t), in_turn(t[::-1])
    return np.where(np.isfinite(one) & np.isfinite(two), one / 2 + two / 2, one)


def _lanes_of_two_widths(a, b):
    """Four lanes, the even ones float32, the odd ones float64; joined in float64."""
    t = filled(terms(a, b), 4)
    short, wide = in_turn(t[:, 0::2]), in_turn(t[:, 1::2], lambda s, v: s + v)
    return (short[0] + wide[0]) + (short[1] + wide[1])


def _integer_and_fraction(a, b):
    """The integers within the first operand's elements in one chain, the fractions in another."""
    integer = np.trunc(np.where(np.isfinite(a), a, 0.0))
    rest = np.where(np.isfinite(a), a, 0.0) - integer
    return np.where(_finite(a, b), add32(in_turn(terms(integer, b)), in_turn(terms(rest, b))), in_turn(terms(a, b)))


def _largest_first(a, b):
    """The largest product begins the chain, the others follow in their order."""
    t = terms(a, b)
    first = np.abs(t).argmax(axis=0)[None]
    at = np.arange(len(t))[:, None, None] == first
    return in_turn(np.concatenate([np.take_along_axis(t, first, 0), np.where(at, 0.0, t)]))


def _cascade(a, b):
    """A float32 accumulator for every exponent; a sum that outgrows its own goes on to that of its new exponent (Wolfe)."""
    x = np.where(np.isfinite(a), a, 0.0)
    rows, kept = np.arange(len(x)), np.zeros((len(x), 400))
    for column in x.T:
        carried = column.copy()
        while carried.any():
            at = np.frexp(carried)[1] + 200
            total = add32(kept[rows, at], carried)
            grown = (np.frexp(total)[1] + 200 > at) & np.isfinite(total)
            kept[rows, at] = np.where(grown, 0.0, total)
            carried = np.where(grown, total, 0.0)
    used = kept.T[kept.any(axis=0)]
    y = in_turn(used[:, :, None]) if len(used) else np.zeros((len(x), 1))
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), y, good(a, b))


def _fused_shares(a, b, bias):
    """Every term times 1/n is fused onto the mean so far; what 1/n lost is put right at the end."""
    n, y = a.shape[1], np.zeros((len(a), 1))
    share = r(np.float64(1 / n))
    for column in a.T:
        y = fma(column[:, None], share, y)
    return np.where(np.isfinite(y), y + y * ((1 / n - share) * n), y)


def _bias_in_correction(a, b, bias):
    """Neumaier's sum whose correction begins as the bias."""
    total = np.zeros((a.shape[0], b.shape[1]))
    lost = np.broadcast_to(bias, total.shape)
    for each in r(terms(a, b)):
        total, error = two_sum_in(total, each)
        lost = add32(lost, error)
    return add32(total, lost)


def _bias_where_it_fits(a, b, bias):
    """The bias is added as soon as the sum is as large as it is, at the end otherwise."""
    y = np.zeros((a.shape[0], b.shape[1]))
    waiting = np.full(y.shape, True)
    for each in terms(a, b):
        y = add32(y, each)
        now = waiting & (np.abs(y) >= np.abs(bias))
        y, waiting = np.where(now, add32(y, bias), y), waiting & ~now
    return np.where(waiting, add32(y, bias), y)


def _folded_ranks(a, b):
    """Seven ranks: three fold onto the first ones, the four halve their distances."""
    parts = list(parts_of(a, b, 7, lambda x, w: in_turn(terms(x, w))))
    power = 1 << (len(parts).bit_length() - 1)
    for rank in range(power, len(parts)):
        parts[rank - power] = add32(parts[rank - power], parts[rank])
    return combined(np.stack(parts[:power]), "halves", add32)


def _wide_gradient(a, b):
    """Micro-batches of three in float32 onto a float64 gradient."""
    return in_turn(in_turn(np.moveaxis(filled(terms(a, b), 3), 1, 0)), lambda s, t: s + t)


def honest_sums():
    decimal, long = (lambda s, t: _fourteen_digits(s + t)), _hexadecimal(12)
    for name, why, total, truth in (
        ("interval_midpoint", "half-way between 32-bit chains, one rounded up and one down", _interval_midpoint, INSIDE),
        ("decimal_14", "a decimal accumulator of 14 digits", lambda a, b: in_turn(terms(a, b), decimal), INSIDE),
        ("two_orders_averaged", "the middle of the chains from both ends", _two_orders_averaged, INSIDE),
        ("lanes_of_two_widths", "float32 and float64 lanes by turns", _lanes_of_two_widths, INSIDE),
        ("hexadecimal_12", "an accumulator of 12 hexadecimal digits, cut",
         lambda a, b: in_turn(terms(a, b), lambda s, t: long(add_odd(s, t))), INSIDE),
        ("integer_and_fraction", "integers within the first operand and fractions summed apart", _integer_and_fraction, PLAIN),
        ("largest_first", "the largest product begins the chain", _largest_first, PLAIN)):
        yield made(name, "honest", why, total, truth=truth)
    yield made("sum_cascade_of_exponents", "honest", "an accumulator per exponent; what outgrows it goes on", _cascade, op="sum",
               truth=SUMMED)
    yield whole("mean", "fused_shares", "honest", "terms times 1/n fused onto the mean, 1/n put right at the end", _fused_shares,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_in_correction", "honest", "Neumaier's correction begins as the bias", _bias_in_correction,
                truth={"in": {"x": "as_is", "w": "as_is"}})
    yield whole("linear", "bias_where_it_fits", "honest", "the bias added once the sum is as large", _bias_where_it_fits,
                truth=PLAIN)
    yield made("backward_folded_ranks", "honest", "three of seven ranks fold onto others, then halving distances", _folded_ranks,
               op="backward", truth=words("as_is", acc="float32", op="backward"))
    yield made("backward_wide_gradient", "honest", "micro-batches of three in float32 onto a float64 gradient", _wide_gradient,
               op="backward", truth=words("as_is", op="backward"))


# honest chains
def _newton_normaliser(x, w, bias, eps):
    """The number whose removal from all x makes the exponentials sum to 1, by Newton's steps, in float64."""
    d = x - np.max(x, axis=1, keepdims=True)
    level = np.zeros((len(x), 1))
    for _ in range(40):
        level = level + 1 - 1 / np.exp(d - level).sum(axis=1, keepdims=True)
    return np.exp(d - level)


def _exp_by_tanh(x, w, bias, eps):
    """e^d as 2^n (1 + t) / (1 - t), t being tanh of half of what is left, in float64."""
    d = np.maximum(x - np.max(x, axis=1, keepdims=True), -740.0)
    n = np.rint(d / LN2)
    t = np.tanh((d - n * LN2) / 2)
    e = (1 + t) / (1 - t) * np.exp2(n)
    return e / e.sum(axis=1, keepdims=True)


def _householder(x, w, bias, eps):
    """A reflection takes the direction of the ones to the first axis, where the mean is erased, and back again, in float64."""
    n = x.shape[1]
    u = np.ones(n)
    u[0] += np.sqrt(n)
    unit = 2 / (u @ u)
    y = x - (x @ u)[:, None] * unit * u
    y[:, 0] = 0.0
    d = y - (y @ u)[:, None] * unit * u
    result = d / np.sqrt((y * y).sum(axis=1, keepdims=True) / n + eps) * w + bias
    return np.where(np.isfinite(x).all(axis=1, keepdims=True), result, np.nan)


def _log_domain(x, w, bias, eps):
    """Squares, their sum and the quotient as natural logarithms, in float64."""
    logarithm = np.log(np.abs(x))
    top = np.max(logarithm, axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    square = np.exp(2 * top) * np.exp(2 * (logarithm - top)).sum(axis=1, keepdims=True) / x.shape[1]
    y = np.copysign(np.exp(logarithm - np.log(square + eps) / 2), x) * w
    plain = r(r(x * _inverse(r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps))) * w)
    return np.where(np.isfinite(x).all(axis=1, keepdims=True), y, plain)


def _eps_begins(x, w, bias, eps):
    """A chain of fused squares that begins as n eps."""
    total = np.full((len(x), 1), r(np.float64(x.shape[1] * eps)))
    for column in x.T[:, :, None]:
        total = fma(column, column, total)
    return r(r(x * _inverse(r(total / x.shape[1]))) * w)


def _weideman(size=40):
    """Coefficients of Weideman's rational series for w(z), with its scale."""
    m = 2 * size
    scale = np.sqrt(size / np.sqrt(2))
    t = scale * np.tan(np.arange(1 - m, m) * np.pi / m / 2)
    f = np.concatenate([[0.0], np.exp(-t * t) * (scale**2 + t * t)])
    return scale, np.real(np.fft.fft(np.fft.fftshift(f)))[1:size + 1][::-1] / (2 * m)


SCALE, SERIES = _weideman()


def _gelu_weideman(x):
    """erfcx by Weideman's rational series along the imaginary axis, in float64."""
    z = np.clip(np.abs(x) * ROOT_HALF, 0, 40)
    below = 1 / (SCALE + z)
    erfcx = 2 * _polynomial((SCALE - z) * below, *SERIES) * below**2 + below / np.sqrt(np.pi)
    tail = erfcx * np.exp(-z * z) / 2
    return np.where(np.isnan(x), x, np.where(x > 0, x * (1 - tail), x * tail))


def _silu_addition(x):
    """The sigmoid of the nearest eighth and that of the rest, by the addition theorem, in float64."""
    u = np.clip(x, -800, 800)
    n = np.rint(u * 8) / 8
    rest = u - n
    s, left = 1 / (1 + np.exp(-n)), 1 / (1 + np.exp(n))
    t = 0.5 + rest * _polynomial(rest * rest, -17 / 80640, 1 / 480, -1 / 48, 1 / 4)
    return x * (s * t / (s * t + left * (1 - t)))


def _tanh_runge_kutta(x):
    """y' = 1 - y^2 by 50 steps of Runge and Kutta to x/64, then six doublings, in float64."""
    h, y = np.clip(x, -32, 32) / 64 / 50, np.zeros_like(x)
    for _ in range(50):
        one = 1 - y * y
        two = 1 - (y + h * one / 2)**2
        three = 1 - (y + h * two / 2)**2
        y = y + h * (one + 2 * two + 2 * three + 1 - (y + h * three)**2) / 6
    for _ in range(6):
        y = 2 * y / (1 + y * y)
    return np.copysign(y, x)


def honest_chains():
    for op, name, why, f in (
        ("softmax", "newton_normaliser", "a normaliser by Newton's steps in float64", _newton_normaliser),
        ("softmax", "exp_by_tanh", "exponentials as quotients of 1 + t and 1 - t, in float64", _exp_by_tanh),
        ("layer_norm", "householder", "a reflection there and back, in float64", _householder),
        ("rms_norm", "log_domain", "squares and quotients as logarithms, in float64", _log_domain),
        ("rms_norm", "eps_begins", "fused squares onto n eps", _eps_begins)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "weideman", "erfcx by Weideman's rational series, in float64", _gelu_weideman),
        ("silu", "addition", "a sigmoid by the addition theorem, in float64", _silu_addition),
        ("tanh", "runge_kutta", "a differential equation by Runge and Kutta, in float64", _tanh_runge_kutta)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _recovered(a, b):
    """The first column was lost; it is what the row's checksum has beyond the other columns."""
    y = r(good(a, b))
    if y.shape[1] > 1:
        y[:, :1] = add32(good(a, r(b.sum(axis=1, keepdims=True))), -_tree_rows(y[:, 1:]))
    return y


def _logarithmic(x):
    """On a grid of 2^-18 of logarithms to base 2."""
    usual = np.isfinite(x) & (x != 0)
    code = np.rint(np.log2(np.where(usual, np.abs(x), 1.0)) * 2.0**18)
    return np.where(usual, np.copysign(np.exp2(code / 2.0**18), x), x)


def _quantiles(b):
    """Weights as the means of 64 equally large groups of them, sorted by value."""
    y, places = b.copy(), np.flatnonzero(np.isfinite(b))
    values = b.flat[places]
    order = np.argsort(values, kind="stable")
    for group in np.array_split(order, min(64, len(order) // 2 + 1)):
        if len(group):
            y.flat[places[group]] = r(values[group].sum() / len(group))
    return y


def _toom(a, b):
    """K in thirds as coefficients of two polynomials: values at 1, -1, 0 and infinity give the middle coefficient of the product."""
    def three(x):
        third = -(-len(x) // 3)
        x = np.concatenate([x, np.zeros((3 * third - len(x), *x.shape[1:]))])
        return x[:third], x[third:2 * third], x[2 * third:]

    (p, q, s), (u, v, w) = (each.T for each in three(a.T)), three(b)
    outer, inner = add32(p, s), add32(u, w)
    ends = add32(good(p, w), good(s, u))
    both = add32(good(add32(outer, q), add32(inner, v)), good(add32(outer, -q), add32(inner, -v)))
    return add32(both / 2, -ends)


def _base_and_delta(b):
    """Every column as the first one and a bfloat16 difference from it."""
    base = np.where(np.isfinite(b[:, :1]), b[:, :1], 0.0)
    return _kept(b, add32(base, bfloat16(r(b - base))))


def _tile_exponent(a, b):
    """After each 8 terms the 4 by 4 results of a tile share the exponent of the largest, at 20 bits."""
    def aligned(y):
        m, n = y.shape
        full = np.pad(np.where(np.isfinite(y), np.abs(y), 0.0), ((0, -m % 4), (0, -n % 4)))
        top = full.reshape(full.shape[0] // 4, 4, -1, 4).max(axis=(1, 3))
        unit = np.ldexp(1.0, np.frexp(top)[1] - 20).repeat(4, axis=0).repeat(4, axis=1)[:m, :n]
        return _kept(y, np.rint(y / unit) * unit)

    y, t = np.zeros((a.shape[0], b.shape[1])), terms(a, b)
    for at in range(0, len(t), 8):
        y = aligned(in_turn(np.concatenate([y[None], t[at:at + 8]])))
    return y


def _shot_noise(a, b):
    """Every product comes with noise of 2^-13 of its size, the same draws again."""
    noise = np.random.default_rng([a.shape[0], *b.shape]).standard_normal((a.shape[0], b.shape[1]))
    return _kept(good(a, b), good(a, b) + 2.0**-13 * noise * np.sqrt((a * a) @ (b * b)))


def _subtractive_dither(a):
    """On a grid of 2^-12 of the row's largest after a draw is added, which is taken off again."""
    unit = np.ldexp(1.0, np.frexp(largest(a, 1))[1] - 12)
    draw = np.random.default_rng(a.shape).random(a.shape) - 0.5
    return _kept(a, r((np.rint(a / unit + draw) - draw) * unit))


def _worst_case_register(a, b):
    """A register of 28 bits for the largest sum that K terms of the largest elements could have."""
    worst = a.shape[1] * largest(a, None).item() * largest(b, None).item()
    unit = np.ldexp(1.0, int(np.frexp(worst)[1]) - 27)
    t = terms(a, b)
    return _kept(t, np.rint(t / unit) * unit).sum(axis=0)


def _jammed(x):
    """21 bits cut and a 22nd that is always set."""
    usual = np.isfinite(x) & (x != 0)
    unit = np.ldexp(1.0, np.frexp(np.where(usual, x, 1.0))[1] - 22)
    return np.where(usual, rounding("p21_rz")(x) + np.copysign(unit, x), x)


def _saved_once(a, b):
    """Half-way the sums are saved in 17 bits, once."""
    t = terms(a, b)
    half = len(t) // 2
    return in_turn(np.concatenate([rounding("p17")(in_turn(t[:half]))[None], t[half:]]))


def _tf32_by_turns(a, b):
    """The first operand of even terms is tf32, the second one of odd terms."""
    n, even = rounding("tf32"), np.arange(a.shape[1]) % 2 == 0
    return good(np.where(even, n(a), a), np.where(even[:, None], b, n(b)))


def _float16_unless_overflow(a, b):
    """A float16 sum, and a float32 one where that is not finite."""
    short = in_turn(terms(a, b), adding("float16"))
    return np.where(np.isfinite(short), short, good(a, b))


def _fewer_and_fewer(a, b):
    """24 bits for the first 8 terms, one less after each 8 down to 12."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for k, each in enumerate(terms(a, b)):
        y = add32(y, each) if k < 8 else adding(f"p{max(12, 24 - k // 8)}")(y, each)
    return y


def _faint_products(a, b):
    """A product below 2^-5 of the sum so far has 6 bits."""
    y, n = np.zeros((a.shape[0], b.shape[1])), rounding("p6")
    for each in terms(a, b):
        y = add32(y, np.where(np.abs(each) < 2.0**-5 * np.abs(y), n(each), each))
    return y


def _stops_early(a, b):
    """No more is added once all that is left comes to less than 2^-10 of the sum."""
    t = terms(a, b)
    left = np.cumsum(np.abs(t)[::-1], axis=0)[::-1]
    y = np.zeros(t.shape[1:])
    done = np.full(y.shape, False)
    for each, rest in zip(t, left):
        done = done | (rest < 2.0**-10 * np.abs(y))
        y = np.where(done, y, add32(y, each))
    return y


def _rest_in_bfloat16(a, b):
    """The upper 12 bits in a float32 sum, the rest in a bfloat16 one."""
    high = rounding("p12_rz")(a)
    rest = np.where(np.isfinite(a), a - high, 0.0)
    return add32(in_turn(terms(high, b)), in_turn(terms(rest, b), adding("bfloat16")))


def _thirds_of_bias(a, b, bias):
    """Three devices with a part of K and a third of the bias, in float16, each."""
    parts = parts_of(a, b, 3, lambda x, w: in_turn(terms(x, w)))
    for _ in range(3 - len(parts)):
        parts = np.concatenate([parts, np.zeros((1, *parts.shape[1:]))])
    return in_turn(add32(parts, float16(bias / 3)))


def _mean_of_float16_deviations(a, b, bias):
    """The first term and the mean of float16 deviations from it."""
    first = np.where(np.isfinite(a[:, :1]), a[:, :1], 0.0)
    return add32(first, r(good(float16(r(a - first)), b) / a.shape[1]))


def narrow_sums():
    short = _hexadecimal(6)
    for name, why, total, truth, inputs in (
        ("acc_hexadecimal_6", "a sum of 6 hexadecimal digits, cut, as System/360 had it",
         lambda a, b: in_turn(terms(a, b), lambda s, t: short(add_odd(s, t))), OTHER_SUM, ALL),
        ("first_column_from_checksum", "a lost column from the rows' checksums", _recovered, {}, ALL),
        ("acc_logarithms_18", "a sum kept as its logarithm of 18 fraction bits",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _logarithmic(s + t)), OTHER_SUM, ALL),
        ("weight_64_quantiles", "weights as means of 64 equally large groups", lambda a, b: good(a, _quantiles(b)), SECOND_OTHER,
         ALL),
        ("toom_thirds", "K in thirds, from values of two polynomials, in float32", _toom, {}, ALL),
        ("weight_base_and_delta", "weights as the first column and bfloat16 differences", lambda a, b: good(a, _base_and_delta(b)),
         SECOND_OTHER, ALL),
        ("tile_exponent_20", "an exponent for 4 by 4 sums after each 8 terms", _tile_exponent, OTHER_SUM, ALL),
        ("shot_noise_2m13", "noise of 2^-13 of every product's size, as of analog light", _shot_noise, {}, ALL),
        ("first_subtractive_dither", "the first operand on a grid of 2^-12 with a draw added and taken off",
         lambda a, b: good(_subtractive_dither(a), b), FIRST_OTHER, ALL),
        ("acc_float32_away", "float32 sums rounded away from zero",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _directed(add_odd(s, t), s + t > 0)), OTHER_SUM, ALL),
        ("register_of_28_bits", "a fixed point of 28 bits for the worst that K terms could sum to", _worst_case_register,
         {"in": {"x": "as_is", "w": "as_is"}}, ALL),
        ("acc_p22_jammed", "22 bits, the last one always set", lambda a, b: in_turn(terms(a, b), lambda s, t: _jammed(s + t)),
         OTHER_SUM, ALL),
        ("saved_once_p17", "sums saved in 17 bits once, half-way", _saved_once, OTHER_SUM, ALL),
        ("operands_tf32_by_turns", "tf32 for the first operand in even terms, for the second in odd ones", _tf32_by_turns, OTHER,
         F32),
        ("float16_unless_overflow", "a float16 sum, float32 where that overflows", _float16_unless_overflow, OTHER_SUM, ALL),
        ("fewer_bits_along_k", "a bit less after each 8 terms, down to 12", _fewer_and_fewer, OTHER_SUM, ALL),
        ("faint_products_p6", "products below 2^-5 of the sum in 6 bits", _faint_products, {"in": {"x": "as_is", "w": "as_is"}}, ALL),
        ("stops_early_2m10", "the rest left out where it is below 2^-10 of the sum", _stops_early, {}, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield made("sum_rest_in_bfloat16", "narrow", "upper 12 bits in a float32 sum, the rest in a bfloat16 one", _rest_in_bfloat16,
               op="sum", inputs=F32, truth=words("as_is", acc="other", op="sum"))
    yield whole("mean", "float16_deviations", "narrow", "the first term and a mean of float16 deviations from it",
                _mean_of_float16_deviations)
    yield whole("linear", "thirds_of_bias_float16", "narrow", "three devices add a float16 third of the bias each",
                _thirds_of_bias, truth=PLAIN)
    yield made("backward_unscaled_float16", "narrow", "gradients times 1000, the result times a float16 thousandth",
               lambda a, b: r(r(good(r(a * 1000), b)) * float16(np.float64(0.001))), op="backward")


# narrow chains
def _last_as_rest(x, w, bias, eps):
    """The last probability is 1 less the others."""
    e = r(np.exp(_shifted(x)))
    p = r(e / _tree_rows(e))
    if p.shape[1] > 1:
        p[:, -1:] = r(1 - _tree_rows(p[:, :-1]))
    return p


def _spilled_columns(x, w, bias, eps):
    """Beyond the fourth column x is read again from a bfloat16 spill when the statistics are known."""
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    d = r(x - mean)
    rstd = _inverse(r(r(_tree_rows(r(d * d)) / k) + eps))
    return _deviated(np.where(np.arange(k) >= 4, bfloat16(x), x), mean, rstd, w, bias)


def _shards(x, w, bias, eps):
    """Four devices hold columns each; their sums of squares are reduced in bfloat16."""
    sums = [_tree_rows(r(each * each)) for each in np.array_split(x, min(4, x.shape[1]), axis=1)]
    total = bfloat16(in_turn(np.stack(sums), adding("bfloat16")))
    return r(r(x * _inverse(r(r(total / x.shape[1]) + eps))) * w)


def _gelu_symmetry(x):
    """Below 0 it is x and the value at -x."""
    size = np.abs(x)
    y = r(size * r(1 - r(0.5 * r(_ERFC(size * ROOT_HALF)))))
    return np.where(x < 0, add32(x, y), np.where(np.isnan(x), x, y))


def _silu_octaves(x):
    """Straight lines between 64 points of every octave."""
    def exact(v):
        return v / (1 + np.exp(-v))

    low = rounding("p7_rz")(x)
    unit = np.copysign(np.ldexp(1.0, np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 7), x)
    one, two = r(exact(low)), exact(low + unit)
    return _kept(x, np.where(x == 0, x, one + (two - one) * ((x - low) / unit))) + 0.0 * exact(x)


def _tanh_catmull_rom(x):
    """Catmull and Rom's splines through sixteenths."""
    at = np.clip(x, -20, 20) * 16
    n = np.floor(at)
    t = at - n
    p, q, s, u = (r(np.tanh((n + i) / 16)) for i in (-1, 0, 1, 2))
    return r(q + 0.5 * t * ((s - p) + t * ((2 * p - 5 * q + 4 * s - u) + t * (3 * (q - s) + u - p))))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "last_as_rest", "the last probability as 1 less the others", _last_as_rest),
        ("rms_norm", "shards_bfloat16", "sums of squares of four devices reduced in bfloat16", _shards)):
        yield chain(op, name, "narrow", why, f)
    yield chain("layer_norm", "spilled_columns_bfloat16", "narrow", "x beyond the fourth column from a bfloat16 spill",
                _spilled_columns, inputs=("float32", "float16"))
    for op, name, why, f in (
        ("gelu", "by_symmetry", "below 0 as x and the value at -x", _gelu_symmetry),
        ("silu", "octave_lines", "straight lines between 64 points of an octave", _silu_octaves),
        ("tanh", "catmull_rom", "splines through sixteenths", _tanh_catmull_rom)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _complex_rows(a, b):
    """Pairs of rows as complex numbers times real columns: what is not finite in one makes NaN of the other."""
    bad = ~np.isfinite(a).all(axis=1)
    partner = np.arange(len(a)) ^ 1
    spoilt = np.append(bad, False)[np.minimum(partner, len(a))]
    return np.where(spoilt[:, None], np.nan, good(a, b))


def _alternative_half(x):
    """No infinities or NaN: their codes go on where the finite ones end, as in ARM's alternative format."""
    return np.where(np.isnan(x), 98304.0, np.where(np.isinf(x), np.copysign(65536.0, x), x))


def _one_bit_flipped(b):
    """A bit of one element is turned."""
    bits = b.astype(np.float32)
    at = b.shape[0] // 2, b.shape[1] // 2
    if np.isfinite(bits[at]):
        bits.view(np.int32)[at] ^= 1 << 16
    return bits.astype(np.float64)


def _memo(a):
    """Elements of a row that agree in 7 bits are all taken for the first of them."""
    def row(x):
        _, first, which = np.unique(rounding("p7_rz")(x), return_index=True, return_inverse=True)
        return x[first][which.reshape(-1)]

    return np.stack([row(x) for x in a])


def _low_of_row_before(a, b):
    """Two tf32 pieces of the first operand, the low ones those of the row before."""
    n = rounding("tf32")
    high = n(a)
    low = n(np.where(np.isfinite(high), a - high, 0.0))
    low[1:] = low[:-1].copy()
    return add32(good(high, b), good(low, b))


def _lands_in_neighbour(a, b):
    """The last product of every eighth column is added to the column before."""
    t = terms(a, b)
    columns = np.arange(b.shape[1])
    late = columns % 8 == 7
    y = add32(in_turn(t[:-1]), np.where(late, 0.0, t[-1]))
    return np.where(np.append(late[1:], False), add32(y, np.roll(t[-1], -1, axis=1)), y)


def _taken_for_symmetric(a, b):
    """The lower triangle of the second operand's first 4 by 4 is taken from the upper one, as in symm."""
    w, n = b.copy(), min(4, *b.shape)
    rows, columns = np.tril_indices(n, -1)
    w[rows, columns] = b[columns, rows]
    return good(a, w)


def _bye_lost(a, b):
    """A tree whose unpaired element is kept at the first level alone."""
    t, level = terms(a, b), 0
    while len(t) > 1:
        pairs = len(t) // 2 * 2
        t = np.concatenate([add32(t[0:pairs:2], t[1:pairs:2]), t[pairs:] if level == 0 else t[:0]])
        level += 1
    return t[0]


def _median_of_means(a, b, bias):
    """The middle one of five means."""
    parts = np.array_split(a, min(5, a.shape[1]), axis=1)
    return np.median(np.stack([r(_tree_rows(part) / part.shape[1]) for part in parts]), axis=0)


def _bias_in_q1_14(a, b, bias):
    """The bias in 16 bits with a point after two: steps of 2^-14, never 2."""
    return add32(r(good(a, b)), np.clip(np.rint(bias * 2.0**14), -2.0**15, 2.0**15 - 1) / 2.0**14)


def _shard_not_reduced(a, b):
    """The last quarter of rows has the first of two ranks' samples alone."""
    y, half = good(a, b), -(-a.shape[1] // 2)
    late = -(-3 * len(a) // 4)
    y[late:] = good(a[late:, :half], b[:half])
    return y


def _softmax_of(change):
    """softmax with change(x - max) as the exponentials."""
    def result(x, w, bias, eps):
        e = r(change(_shifted(x)))
        return r(e / _tree_rows(e))

    return result


def _soft_capped(x, w, bias, eps):
    """Scores are capped by 30 tanh(x / 30)."""
    return _softmax_of(np.exp)(r(30 * np.tanh(x / 30)), w, bias, eps)


def _momentum(x, w, bias, eps):
    """A hundredth of the variance of the row before is in that of a row."""
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    d = r(x - mean)
    variance = r(_tree_rows(r(d * d)) / k)
    before = np.concatenate([variance[:1], variance[:-1]])
    return _deviated(x, mean, _inverse(r(r(0.99 * variance + 0.01 * before) + eps)), w, bias)


def _warm_newton(x, w, bias, eps):
    """Two steps of Newton from the inverse root of the row before, where they can arrive."""
    v = r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps)
    root = _inverse(v)
    y = np.concatenate([root[:1], root[:-1]])
    near = v * y * y < 2.5
    for _ in range(2):
        y = r(y * r(1.5 - r(r(0.5 * v) * r(y * y))))
    return r(r(x * np.where(near, y, root)) * w)


def _gelu_fourth_columns(x):
    """The last of each four columns by the tanh form."""
    z = r(0.7978845608028654 * r(x + r(0.044715 * r(x * r(x * x)))))
    other = r(r(0.5 * x) * r(1 + r(np.tanh(z))))
    return np.where(np.arange(x.shape[1]) % 4 == 3, other, r(r(0.5 * x) * r(_ERFC(r(-x * ROOT_HALF)))))


def _silu_batch_inversion(x):
    """One reciprocal for the denominators of two neighbours, whose product overflows where both are large."""
    below = r(1 + r(np.exp(-x)))
    even = x.shape[1] // 2 * 2
    one, two = below[:, :even:2], below[:, 1:even:2]
    both, y = r(1 / r(one * two)), r(1 / below)
    y[:, :even:2], y[:, 1:even:2] = r(two * both), r(one * both)
    return r(x * y)


def _tanh_early_end(x):
    """Eight columns at once are signs as soon as one of them is beyond 9."""
    y = r(np.tanh(x))
    for at in range(0, x.shape[1], 8):
        piece = x[:, at:at + 8]
        y[:, at:at + 8] = np.where((np.abs(piece) > 9).any(axis=1, keepdims=True), np.sign(piece), y[:, at:at + 8])
    return y


def wrong():
    for name, why, total, inputs in (
        ("complex_rows", "pairs of rows as complex numbers: NaN where the other row is not finite", _complex_rows, ALL),
        ("alternative_half", "float16 without infinities and NaN, as ARM's alternative format",
         lambda a, b: good(_alternative_half(a), _alternative_half(b)), ("float16", )),
        ("one_bit_flipped", "a bit of one weight turned", lambda a, b: good(a, _one_bit_flipped(b)), ALL),
        ("memo_of_seven_bits", "elements that agree in 7 bits taken for the first of them", lambda a, b: good(_memo(a), b), ALL),
        ("low_piece_of_row_before", "two tf32 pieces, the low ones of the row before", _low_of_row_before, F32),
        ("lands_in_neighbour", "the last product of every eighth column goes to the one before", _lands_in_neighbour, ALL),
        ("taken_for_symmetric", "the second operand's first 4 by 4 taken for symmetric", _taken_for_symmetric, ALL)):
        yield made(name, "wrong", why, total, inputs=inputs)
    yield made("sum_bye_lost", "wrong", "a tree that loses the odd one out but at its first level", _bye_lost, op="sum")
    yield whole("mean", "median_of_means", "wrong", "the middle one of five means", _median_of_means)
    yield whole("linear", "bias_q1_14", "wrong", "the bias in steps of 2^-14, never 2", _bias_in_q1_14)
    yield made("backward_shard_not_reduced", "wrong", "the last quarter of rows from half of the samples", _shard_not_reduced,
               op="backward")
    for op, name, why, f in (
        ("softmax", "soft_capped", "scores capped by 30 tanh(x / 30)", _soft_capped),
        ("softmax", "compound_interest", "exponentials as (1 + x / 1024)^1024",
         _softmax_of(lambda d: np.maximum(1 + d / 1024, 0.0)**1024)),
        ("layer_norm", "momentum", "a hundredth of the variance of the row before", _momentum),
        ("rms_norm", "warm_newton", "two steps from the inverse root of the row before", _warm_newton)):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "fourth_columns_tanh", "every fourth column by the tanh form", _gelu_fourth_columns),
        ("silu", "batch_inversion", "one reciprocal for two denominators, whose product overflows", _silu_batch_inversion),
        ("tanh", "early_end_of_eight", "signs for eight columns of which one is beyond 9", _tanh_early_end)):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
