"""Fresh, a twelfth set: cosines, factors, tapered and ternary sums, checks that pay for more, adders that lack a carry (j_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, kahan, two_sum_in
from fresh import _tree_rows
from fresh_fourth import INSIDE, NOT_BFLOAT16, OTHER, PLAIN, SECOND_OTHER, _deviated, _inverse
from fresh_ninth import LN2, OTHER_SUM, SUMMED, _kept, _polynomial, _shifted
from fresh_tenth import _digits, _finite, _power
from heldout_operands import _posit
from heldout_tools import ALL, F32, add32, adding, good, in_turn, largest, terms, under, words
from ops import _ERFC
from rounding import add_odd, bfloat16, float16, float32 as r, rounding

made, recipe, chain, whole = under("j_")
ROOT_HALF = 0.7071067811865476


def _wide(s, t):
    return s + t


def _exponent(x):
    return np.frexp(np.where(np.isfinite(x), x, 0.0))[1]


# honest sums
def _to_smallest(a, b):
    """Every product is fused onto whichever of three accumulators is the smallest in size just then."""
    lanes = np.zeros((3, a.shape[0], b.shape[1]))
    for each in terms(a, b):
        at = np.abs(lanes).argmin(axis=0)[None]
        np.put_along_axis(lanes, at, add32(np.take_along_axis(lanes, at, 0), each), 0)
    return in_turn(lanes)


def _checked_rows(a, b):
    """Rows whose sum is not near enough to what the checksum of the second operand gives are done again in float64."""
    y = r(good(a, b))
    check = r(a @ r(b.sum(axis=1, keepdims=True)))
    sizes = (np.abs(a) @ np.abs(b)).sum(axis=1, keepdims=True)
    near = np.abs(check - _tree_rows(y)) <= 2.0**-26 * sizes / np.sqrt(b.size)
    return np.where(near, y, in_turn(terms(a, b), _wide))


def _wide_where_orders_differ(a, b):
    """A chain from either end; where they do not end in the same bits, a float64 one decides."""
    t = terms(a, b)
    one, two = in_turn(t), in_turn(t[::-1])
    return np.where(one == two, one, in_turn(t, _wide))


def _cosines(a, b):
    """2 cos x cos y = cos (x + y) + cos (x - y), in float64, then float32; faint elements are multiplied as usual."""
    s, t = _power(a, 1), _power(b, 0)
    one, two = np.where(np.isfinite(a), a, 0.0) / s, np.where(np.isfinite(b), b, 0.0) / t
    usual = terms((np.isfinite(a) & (np.abs(one) >= 2.0**-12)) * 1.0, (np.isfinite(b) & (np.abs(two) >= 2.0**-12)) * 1.0) > 0
    x, y = np.arccos(one).T[:, :, None], np.arccos(two)[:, None, :]
    product = (np.cos(x + y) + np.cos(x - y)) / 2 * (s * t)
    return in_turn(r(np.where(usual, product, terms(a, b))))


def _up_and_down(a, b):
    """Sums of 40 bits and float32's range that are rounded up and down by turns."""
    cut_to, y = rounding("p40_rz"), np.zeros((a.shape[0], b.shape[1]))
    for k, each in enumerate(terms(a, b)):
        x = add_odd(y, each)
        y = cut_to(x)
        away = (x != y) & ((x > 0) == (k % 2 == 0)) & np.isfinite(x)
        y = np.where(away, y + np.copysign(np.ldexp(1.0, _exponent(x) - 40), x), y)
        y = np.where(np.abs(y) < 2.0**128, y, r(y))
    return y


def _two_of_three_fused(a, b):
    """Every third product is rounded before it is added, the others are fused."""
    t = terms(a, b)
    t[::3] = r(t[::3])
    return in_turn(t)


def _low_part_to_next(a, b):
    """The rounding error of a float32 product joins the product after it."""
    t = terms(a, b)
    high = r(t)
    low = np.where(np.isfinite(high) & np.isfinite(t), t - high, 0.0)
    before = np.concatenate([0.0 * low[:1], low[:-1]])
    return add32(in_turn(add32(high, before)), low[-1])


def _tensor_prefix(a, b):
    """The difference of two running sums over the whole tensor, which two float64 numbers hold."""
    usual = np.isfinite(a)
    head = tail = 0.0
    ends = [(head, tail)]
    for row in np.where(usual, a, 0.0).tolist():
        for each in row:
            new = head + each
            shown = new - head
            head, tail = new, tail + ((head - (new - shown)) + (each - shown))
        ends.append((head, tail))
    head, tail = np.array(ends).T
    y = (head[1:] - head[:-1]) + (tail[1:] - tail[:-1])
    return np.where(usual.all(axis=1), y, good(a, b)[:, 0])[:, None]


def _power_then_odd(a, b, bias):
    """The sum over the power of two in n, then over what is odd in it."""
    n = a.shape[1]
    power = n & -n
    return r(r(r(good(a, b)) / power) / (n // power))


def _bias_at_both_ends(a, b, bias):
    """The lower 12 bits of the bias begin the sum, the others end it."""
    high = rounding("p12_rz")(bias)
    low = np.where(np.isfinite(bias), bias - high, 0.0)
    t = terms(a, b)
    return add32(in_turn(np.concatenate([np.broadcast_to(low, t[:1].shape), t])), high)


def _bias_at_own_place(a, b, bias):
    """Column j adds its bias after term j modulo K."""
    y, place = np.zeros((a.shape[0], b.shape[1])), np.arange(b.shape[1]) % a.shape[1]
    for k, each in enumerate(terms(a, b)):
        y = add32(y, each)
        y = np.where(place == k, add32(y, bias), y)
    return y


def honest_sums():
    for name, why, total, truth in (
        ("to_smallest_of_three", "each product onto the smallest of three accumulators", _to_smallest, PLAIN),
        ("checked_rows_wide", "rows that miss their checksum again in float64", _checked_rows, INSIDE),
        ("wide_where_orders_differ", "float64 where chains from both ends differ", _wide_where_orders_differ, INSIDE),
        ("products_by_cosines", "products as half sums of two cosines, in float64", _cosines, INSIDE),
        ("up_and_down_p40", "40 bits, rounded up and down by turns", _up_and_down, INSIDE),
        ("two_of_three_fused", "every third product rounded before it is added", _two_of_three_fused, PLAIN),
        ("low_part_to_next", "what a product lacks joins the next one", _low_part_to_next, INSIDE)):
        yield made(name, "honest", why, total, truth=truth)
    yield made("sum_tensor_prefix_wide", "honest", "running sums over the tensor in two float64 numbers, subtracted",
               _tensor_prefix, op="sum", truth={"in": SUMMED["in"]})
    yield whole("mean", "power_then_odd", "honest", "the sum over the power of two in n, then over the odd rest", _power_then_odd,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_at_both_ends", "honest", "lower bits of the bias begin the sum, upper ones end it",
                _bias_at_both_ends, truth=PLAIN)
    yield whole("linear", "bias_at_own_place", "honest", "column j adds its bias after term j modulo K", _bias_at_own_place,
                truth=PLAIN)


# honest chains
def _interest_extrapolated(f):
    """e^f from (1 + f / N)^N for N = 32 to 1024, by Richardson's extrapolation."""
    row = []
    for level in range(5, 11):
        y = 1 + f / 2**level
        for _ in range(level):
            y = y * y
        row.append(y)
    for step in range(1, len(row)):
        row = [(2.0**step * fine - coarse) / (2.0**step - 1) for coarse, fine in zip(row, row[1:])]
    return row[0]


def _richardson(x, w, bias, eps):
    """Compound interest, extrapolated in float64."""
    d = np.maximum(x - np.max(x, axis=1, keepdims=True), -740.0)
    n = np.rint(d / LN2)
    e = _interest_extrapolated(d - n * LN2) * np.exp2(n)
    return e / e.sum(axis=1, keepdims=True)


def _sorted_ratios(x, w, bias, eps):
    """Every exponential is the next larger one times that of their difference, in float64."""
    order = np.argsort(-x, axis=1, kind="stable")
    s = np.take_along_axis(x, order, 1)
    e = np.empty_like(x)
    ratios = np.exp(np.concatenate([np.zeros_like(s[:, :1]), np.diff(s, axis=1)], axis=1))
    np.put_along_axis(e, order, np.cumprod(ratios, axis=1), 1)
    plain = r(np.exp(_shifted(x)))
    return np.where(np.isfinite(x).all(axis=1, keepdims=True), e / e.sum(axis=1, keepdims=True), r(plain / _tree_rows(plain)))


def _mean_of_others(x, w, bias, eps):
    """The distance from the mean of all other columns, times (n - 1) / n, in float64."""
    n = x.shape[1]
    others = (x.sum(axis=1, keepdims=True) - x) / (n - 1)
    d = (x - others) * ((n - 1) / n)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + eps) * w + bias


def _mean_square(x, eps):
    return r(r(_tree_rows(r(x * x)) / x.shape[1]) + eps)


def _heron(x, w, bias, eps):
    """Heron's root, from a power of two, in float32."""
    v = _mean_square(x, eps)
    root = np.ldexp(1.0, (_exponent(v) + 1) // 2)
    for _ in range(6):
        root = r(0.5 * r(root + r(v / root)))
    return r(r(x * r(1 / _kept(v, root))) * w)


def _variance_and_mean(x, w, bias, eps):
    """The mean square as the variance and the square of the mean, in float64; what else there is in float32."""
    mean = x.mean(axis=1, keepdims=True)
    square = r(((x - mean)**2).mean(axis=1, keepdims=True) + mean * mean + eps)
    return r(r(x * _inverse(np.where(np.isfinite(square), square, _mean_square(x, eps)))) * w)


def _gelu_taylor(x):
    """The distribution by Taylor's series about the nearest quarter, with Hermite's polynomials, in float64."""
    z = np.clip(x, -20, 20)
    n = np.rint(z * 4) / 4
    h = z - n
    before, now = np.zeros_like(z), np.ones_like(z)
    power, total = h, h
    for k in range(1, 40):
        before, now = now, n * now - (k - 1) * before
        power = -power * h / (k + 1)
        total = total + power * now
    below = _ERFC(-n * ROOT_HALF) / 2 + np.exp(-n * n / 2) / np.sqrt(2 * np.pi) * total
    return x * np.where(x < -20, 0.0, below)


def _silu_newton(x):
    """e^-|x| by Newton's steps on its logarithm, from a power of two, in float64."""
    size = np.minimum(np.abs(x), 700.0)
    e = np.exp2(-np.rint(size / LN2))
    for _ in range(6):
        e = e * (1 - size - np.log(e))
    return x * np.where(x < -700, 0.0, np.where(x < 0, e, 1.0) / (1 + e))


def _tanh_gudermann(x):
    """The sine of Gudermann's function, a series near 0, in float64."""
    z = np.clip(x, -300, 300)
    near = z * _polynomial(z * z, -1382 / 155925, 62 / 2835, -17 / 315, 2 / 15, -1 / 3, 1)
    return np.where(np.abs(z) < 2.0**-4, near, np.sin(2 * np.arctan(np.exp(z)) - np.pi / 2))


def honest_chains():
    for op, name, why, f in (
        ("softmax", "richardson", "compound interest, extrapolated in float64", _richardson),
        ("softmax", "sorted_ratios", "exponentials as products of ratios down the sorted row, in float64", _sorted_ratios),
        ("layer_norm", "mean_of_others", "the distance from the mean of all others, in float64", _mean_of_others),
        ("rms_norm", "heron", "Heron's root in float32", _heron),
        ("rms_norm", "variance_and_mean", "the variance and the square of the mean, in float64", _variance_and_mean)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "taylor_about_quarters", "Taylor's series about the nearest quarter, in float64", _gelu_taylor),
        ("silu", "exp_by_newton", "an exponential by Newton's steps on its logarithm, in float64", _silu_newton),
        ("tanh", "gudermann", "the sine of Gudermann's function, in float64", _tanh_gudermann)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _acc_posit32(a, b):
    """Posits of 32 bits: 28 significant ones near 1, fewer than 24 beyond 2^20 and below 2^-20."""
    posit = _posit(32, 2)
    return in_turn(terms(a, b), lambda s, t: _kept(s + t, posit(add_odd(s, t))))


def _short_carries(a, b):
    """Integers of 2^-40 of the largest product, positive and negative ones apart; no carry runs further than 10 bits."""
    def add(s, t):
        made_here, passed = s & t, s ^ t
        carry = np.zeros_like(s)
        for _ in range(10):
            carry = (made_here | (passed & carry)) << 1
        return passed ^ carry

    t = terms(a, b)
    unit = np.ldexp(1.0, np.frexp(largest(t, 0))[1] - 40)
    up = down = np.zeros(t.shape[1:], np.int64)
    for each in np.rint(np.where(np.isfinite(t), t, 0.0) / unit).astype(np.int64):
        up, down = add(up, np.maximum(each, 0)), add(down, np.maximum(-each, 0))
    return np.where(np.isfinite(t).all(axis=0), (up - down) * unit[0], good(a, b))


def _three_float16(x):
    """Three float16 pieces, none of them scaled: the last ones end at 2^-24."""
    y = np.zeros_like(x)
    for _ in range(3):
        y = y + float16(np.where(np.isfinite(y), x - y, 0.0))
    return y


def _tf32_beside_special(a, b):
    """Another kernel serves tensors that hold infinities or NaN: one with tf32 operands."""
    if np.isfinite(a).all() and np.isfinite(b).all():
        return good(a, b)
    n = rounding("tf32")
    return good(n(a), n(b))


def _short_shifter(a, b):
    """21 bits; the exponent of a sum goes down by two at most in a step."""
    y, e = np.zeros((a.shape[0], b.shape[1])), None
    for each in terms(a, b):
        x = add_odd(y, each)
        own = np.where(x == 0, -1000, _exponent(x))
        e = own if e is None else np.maximum(own, e - 2)
        unit = np.ldexp(1.0, np.maximum(e - 21, -1000))
        y = _kept(x, np.rint(x / unit) * unit)
    return y


def _by_reciprocals(a, b):
    """Weights are kept as float32 reciprocals, by which the first operand is divided."""
    return in_turn(r(a.T[:, :, None] / r(1 / b)[:, None, :]))


def _orthogonal_factors(a, b):
    """The second operand as an orthogonal factor and a triangular one, float32 both, multiplied one after the other."""
    one, two = np.linalg.qr(np.where(np.isfinite(b), b, 0.0))
    y = good(r(good(np.where(np.isfinite(a), a, 0.0), r(one))), r(two))
    return np.where(_finite(a, b) & np.isfinite(y), y, good(a, b))


def _rows_by_differences(a, b):
    """A row as the one before and what the difference of the operand's rows gives; every fourth row by itself."""
    y = r(good(a, b))
    step = good(r(np.diff(a, axis=0)), b)
    for i in range(1, len(a)):
        if i % 4:
            moved = add32(y[i - 1], step[i - 1])
            y[i] = np.where(np.isfinite(moved), moved, y[i])
    return y


def _fed_back(a, b):
    """Sums of 16 go on in 16 bits; what that loses is added to the next such sum, and lost at the end."""
    n, y = rounding("p16"), np.zeros((a.shape[0], b.shape[1]))
    lost = y
    for piece in cut(terms(a, b), 16):
        x = add32(in_turn(piece), lost)
        lost = np.where(np.isfinite(x), x - n(x), 0.0)
        y = add32(y, n(x))
    return y


def _short_where_agreed(a, b):
    """Chains of 18 bits from either end; where they agree they are believed, elsewhere a float32 chain decides."""
    t = terms(a, b)
    one, two = in_turn(t, adding("p18")), in_turn(t[::-1], adding("p18"))
    return np.where(one == two, one, in_turn(t))


def _stuck(x):
    """float32 whose last bit but two is always 0."""
    return (np.ascontiguousarray(x, np.float32).view(np.int32) & ~4).view(np.float32).astype(np.float64)


def _rotated(a, b):
    """Both operands turned by a Hadamard matrix along K in float32 steps, and nothing else."""
    def turned(x):
        size = 1 << (len(x) - 1).bit_length()
        x = np.concatenate([x, np.zeros((size - len(x), x.shape[1]))])
        half = 1
        while half < size:
            pairs = x.reshape(-1, 2, half, x.shape[1])
            x = r(np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)).reshape(x.shape)
            half *= 2
        return x

    one, two = turned(a.T).T, turned(b)
    y = good(one, two) / one.shape[1]
    return np.where(_finite(a, b) & np.isfinite(y), y, good(a, b))


def _q31(a, b):
    """Integers of 2^-31 of a row's and a column's power of two; of each product the upper word, rounded, less four guard bits."""
    s, t = _power(a, 1), _power(b, 0)
    one, two = (np.rint(np.where(np.isfinite(x), x, 0.0) / unit * 2.0**31) for x, unit in ((a, s), (b, t)))
    y = np.rint(terms(one, two) / 2.0**36).sum(axis=0)
    return np.where(_finite(a, b), y * 2.0**-26 * (s * t), good(a, b))


def _lacks_one(s, t):
    """If signs differ, the complement is added without the 1 that belongs to it."""
    x = add_odd(s, t)
    unit = np.ldexp(1.0, _exponent(np.maximum(np.abs(s), np.abs(t))) - 24)
    lacking = (s * t < 0) & (x != 0) & np.isfinite(x)
    return r(np.where(lacking, add_odd(x, -np.copysign(unit, x)), x))


def _butterflies(a, b):
    """Two columns from the products with their sum and their difference."""
    y, pairs = r(good(a, b)), b.shape[1] // 2 * 2
    even, odd = b[:, :pairs:2], b[:, 1:pairs:2]
    both, apart = r(good(a, r(even + odd))), r(good(a, r(even - odd)))
    for at, x in ((0, add32(both, apart) / 2), (1, add32(both, -apart) / 2)):
        y[:, at:pairs:2] = np.where(_finite(a, b[:, at:pairs:2]) & np.isfinite(x), x, y[:, at:pairs:2])
    return y


def _planes_until(a, b):
    """Weights bit by bit from the highest; no more planes where the rest cannot come to 2^-19 of the sum."""
    s, t = _power(a, 1), _power(b, 0)
    sign, integer, unit = _digits(b / t)
    x, y = np.where(np.isfinite(a), a, 0.0) / s, np.zeros((a.shape[0], b.shape[1]))
    done = np.full(y.shape, False)
    for bit in range(23, -1, -1):
        plane = sign * np.ldexp((integer >> bit & 1).astype(float), unit + bit)
        y = np.where(done, y, add32(y, r(x @ plane)))
        done = done | (np.abs(x) @ np.ldexp(np.abs(sign), unit + bit) < 2.0**-19 * np.abs(y))
    return np.where(_finite(a, b), y * (s * t), good(a, b))


def _ternary_digits(x):
    """To 14 digits of base 3, each -1, 0 or 1."""
    usual = np.isfinite(x) & (x != 0)
    size = np.where(usual, np.abs(x), 1.0)
    unit = 3.0**(np.ceil(np.log(2 * size) / np.log(3.0)) - 14)
    return np.where(usual, np.rint(x / unit) * unit, x)


def _store_diffused(a, b):
    """Results in 18 bits; what one column loses is added to the next before it is rounded."""
    y, n = r(good(a, b)), rounding("p18")
    lost = np.zeros(len(y))
    for j in range(y.shape[1]):
        x = add32(y[:, j], lost)
        y[:, j] = n(x)
        lost = np.where(np.isfinite(x), x - y[:, j], 0.0)
    return y


def _through_reciprocal(a, b):
    return r(1 / r(1 / r(good(a, b))))


def _one_fold(a, b):
    """Reproducible sums with one fold: terms on a common grid, added exactly, what they lack left out."""
    reach = np.frexp(largest(a, 1))[1] + (a.shape[1] - 1).bit_length()
    magic = 1.5 * np.ldexp(1.0, np.minimum(reach, 126))
    kept = r(r(add_odd(a, magic)) - magic)
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), kept.sum(axis=1, keepdims=True), good(a, b))


def _mean_times_count(a, b):
    """A running mean, at the end times n, in float32."""
    mean = np.zeros((len(a), 1))
    for k, column in enumerate(a.T[:, :, None]):
        mean = add32(mean, r(r(column - mean) / (k + 1)))
    y = r(mean * a.shape[1])
    return np.where(np.isfinite(y), y, good(a, b))


def _integer_quotient(a, b, bias):
    """Terms as integers of 2^-23 of a row's power of two; the sum is divided by n as integers are."""
    unit = _power(a, 1) * 2.0**-23
    total = np.rint(np.where(np.isfinite(a), a, 0.0) / unit).astype(np.int64).sum(axis=1, keepdims=True)
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), total // a.shape[1] * unit, r(good(a, b) / a.shape[1]))


def _weight_norm(a, b, bias):
    """Weights are kept as directions and lengths: float32 both."""
    length = r(np.sqrt(r(_tree_rows(r(b * b).T)))).T
    length = np.where((length > 0) & np.isfinite(length), length, 1.0)
    return add32(r(r(good(a, r(b / length))) * length), bias)


def _int8_and_rank_four(a, b, bias):
    """Weights in int8 by channels; of what they lack the four leading singular parts, in float32."""
    scale = largest(b, 0) / 127
    short = _kept(b, r(np.rint(np.where(np.isfinite(b), b, 0.0) / scale) * scale))
    left, size, right = np.linalg.svd(np.where(np.isfinite(b), b - short, 0.0), full_matrices=False)
    rest = good(r(good(a, r(left[:, :4] * size[:4]))), r(right[:4]))
    return add32(add32(good(a, short), np.where(np.isfinite(rest), rest, 0.0)), bias)


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("acc_posit32", "a sum kept as a posit of 32 bits", _acc_posit32, OTHER_SUM, ALL),
        ("carries_of_10_bits", "a speculative adder whose carries run 10 bits at most", _short_carries, OTHER_SUM, ALL),
        ("three_float16_pieces", "operands as three float16 pieces, none scaled",
         lambda a, b: good(_three_float16(a), _three_float16(b)), OTHER, ("float32", "bfloat16")),
        ("tf32_beside_special", "tf32 operands where a tensor holds infinities or NaN", _tf32_beside_special, {}, F32),
        ("short_shifter_p21", "21 bits, the exponent goes down by two at most in a step", _short_shifter, OTHER_SUM, ALL),
        ("weights_as_reciprocals", "weights kept as float32 reciprocals", _by_reciprocals, SECOND_OTHER, ALL),
        ("weight_orthogonal_factor", "weights as an orthogonal and a triangular factor of float32", _orthogonal_factors, {}, ALL),
        ("rows_by_differences", "a row as the one before and a difference", _rows_by_differences, {}, ALL),
        ("sums_of_16_fed_back_p16", "sums of 16 in 16 bits, what they lose goes to the next", _fed_back, OTHER_SUM, ALL),
        ("p18_where_both_ends_agree", "18 bits where chains from both ends agree", _short_where_agreed, OTHER_SUM, ALL),
        ("acc_stuck_bit", "float32 sums whose last bit but two is always 0",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _stuck(add32(s, t))), OTHER_SUM, ALL),
        ("rotated_float32", "both operands turned by a Hadamard matrix in float32", _rotated, {}, ALL),
        ("q31_upper_words", "32-bit fractions, the upper words of their products without four guard bits", _q31, {}, ALL),
        ("subtraction_lacks_one", "complements added without the 1", lambda a, b: in_turn(terms(a, b), _lacks_one), OTHER_SUM,
         ALL),
        ("columns_by_butterflies", "two columns from their sum and their difference in float32", _butterflies, {}, ALL),
        ("bit_serial_until_2m19", "weights bit by bit until the rest is below 2^-19 of the sum", _planes_until, {}, ALL),
        ("acc_ternary_14", "a sum of 14 balanced ternary digits",
         lambda a, b: in_turn(terms(a, b), lambda s, t: _ternary_digits(s + t)), OTHER_SUM, ALL),
        ("store_diffused_p18", "results in 18 bits, what one loses goes to the next column", _store_diffused,
         words("as_is", acc="float32", mid="other"), ALL),
        ("stored_as_reciprocal", "results kept as float32 reciprocals", _through_reciprocal,
         words("as_is", acc="float32", mid="other"), ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield made("sum_one_fold", "narrow", "a reproducible sum of one fold", _one_fold, op="sum")
    yield made("sum_mean_times_count", "narrow", "a running mean times n, in float32", _mean_times_count, op="sum")
    yield whole("mean", "integer_quotient", "narrow", "integers of 2^-23 of the row, divided as integers", _integer_quotient)
    yield whole("linear", "weight_norm", "narrow", "weights kept as float32 directions and lengths", _weight_norm)
    yield whole("linear", "int8_and_rank_four", "narrow", "weights in int8 and four singular parts of what they lack",
                _int8_and_rank_four)
    yield made("backward_third_times_three", "narrow", "gradients over three in float32, the result times three",
               lambda a, b: r(3 * r(good(r(a / 3), b))), op="backward")


# narrow chains
def _running_logarithm(x, w, bias, eps):
    """The logarithm of the sum grows term by term; e to what x is beyond it, in float32."""
    level = x[:, :1]
    for column in x.T[1:, :, None]:
        high, low = np.maximum(level, column), np.minimum(level, column)
        level = r(high + r(np.log1p(r(np.exp(r(low - high))))))
    return r(np.exp(r(x - level)))


def _from_cumulative(x, w, bias, eps):
    """Differences of the cumulative distribution that a sampler wants, in float32."""
    e = r(np.exp(_shifted(x)))
    total, steps = np.zeros(len(e)), []
    for column in e.T:
        total = add32(total, column)
        steps.append(total)
    steps = r(np.stack(steps, axis=1) / total[:, None])
    return r(np.diff(steps, axis=1, prepend=0.0))


def _squares_by_kahan(x, w, bias, eps):
    """E[x^2] - mean^2 of two compensated sums of float32 squares and terms."""
    k = x.shape[1]
    mean, square = (r(kahan(each.T[:, :, None]) / k) for each in (x, r(x * x)))
    return _deviated(x, mean, _inverse(r(np.maximum(r(square - r(mean * mean)), 0.0) + eps)), w, bias)


def _int16_row(x, w, bias, eps):
    """A row as 16-bit integers, whose scale cancels but for eps."""
    scale = r(largest(x, 1) / 32767)
    code = _kept(x, np.rint(r(x / scale)))
    square = r(r((code * code).sum(axis=1, keepdims=True)) / x.shape[1])
    return r(r(code * _inverse(r(square + r(eps / r(scale * scale))))) * w)


def _bisected(x, w, bias, eps):
    """The root by 18 halvings of an octave."""
    v = _mean_square(x, eps)
    low = np.ldexp(1.0, (_exponent(v) - 2) // 2)
    width = low * 2
    for _ in range(18):
        width = width / 2
        low = np.where(r(r(low + width)**2) <= v, r(low + width), low)
    return r(r(x * r(1 / _kept(v, low))) * w)


def _gelu_second_order(x):
    """Value, slope and curvature at the nearest bfloat16, in float32."""
    n = np.where(np.isfinite(bfloat16(x)), bfloat16(x), 0.0)
    h = x - n
    below, density = _ERFC(-n * ROOT_HALF) / 2, np.exp(-n * n / 2) / np.sqrt(2 * np.pi)
    y = r(r(n * below) + r(h * r(r(below + n * density) + r(h * r(density * (1 - n * n / 2))))))
    return np.where(np.isfinite(x), y, x * below)


SIGMOID = r(np.polynomial.chebyshev.chebinterpolate(lambda t: 0.5 * np.tanh(5 * t), 63))


def _silu_clenshaw(x):
    """The sigmoid within 10 as 64 Chebyshev terms by Clenshaw's recurrence, in float32."""
    t = r(np.clip(x, -10, 10) / 10)
    one = two = np.zeros_like(t)
    for each in SIGMOID[:0:-1]:
        one, two = r(r(r(2 * r(t * one)) - two) + each), one
    inside = r(0.5 + r(r(r(t * one) - two) + SIGMOID[0]))
    return r(x * np.where(np.abs(x) <= 10, inside, r(1 / r(1 + r(np.exp(-x))))))


def _tanh_bipartite(x):
    """Two tables, added: values at steps of 2^-10, and what the slope at steps of 2^-5 makes of a rest in 16 steps."""
    size = np.minimum(np.abs(x), 12.0)
    at = np.floor(size * 2.0**10) / 2.0**10
    coarse = np.floor(size * 2.0**5) / 2.0**5 + 2.0**-6
    rest = (np.floor((size - at) * 2.0**14) + 0.5) / 2.0**14 - 2.0**-11
    y = r(r(np.tanh(at + 2.0**-11)) + r(rest / np.cosh(coarse)**2))
    return np.where(np.isnan(x), x, np.copysign(np.minimum(y, 1.0), x))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "running_logarithm", "the sum's logarithm grows term by term in float32", _running_logarithm),
        ("softmax", "from_cumulative", "differences of the cumulative distribution in float32", _from_cumulative),
        ("layer_norm", "squares_by_kahan", "E[x^2] - mean^2 of compensated float32 sums", _squares_by_kahan),
        ("rms_norm", "int16_row", "a row as 16-bit integers, whose scale cancels", _int16_row),
        ("rms_norm", "root_by_18_halvings", "the root by 18 halvings of an octave", _bisected)):
        yield chain(op, name, "narrow", why, f)
    yield chain("gelu", "second_order_at_bfloat16", "narrow", "value, slope and curvature at the nearest bfloat16",
                lambda x, w, bias, eps: _gelu_second_order(x), inputs=NOT_BFLOAT16)
    for op, name, why, f in (
        ("silu", "clenshaw", "the sigmoid as 64 Chebyshev terms in float32", _silu_clenshaw),
        ("tanh", "bipartite_tables", "the sum of two tables, of values and of slopes", _tanh_bipartite)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _torn(a, b):
    """The last addition writes two words of 16 bits; of every seventh element the lower one is lost."""
    t = terms(a, b)
    before = in_turn(t[:-1])
    after = add32(before, t[-1])
    old, new = (np.ascontiguousarray(x, np.float32).view(np.int32) for x in (before, after))
    both = ((new & -65536) | (old & 65535)).view(np.float32).astype(np.float64)
    rows, columns = np.indices(after.shape)
    return np.where(((3 * rows + columns) % 7 == 0) & np.isfinite(after) & np.isfinite(before), both, after)


def _two_keys(a, b):
    """K by falling size of the first operand's columns; for the second one the sizes have 13 bits, and ties stay as they were."""
    size = -largest(a, 0)[0]
    return good(a[:, np.argsort(size, kind="stable")], b[np.argsort(rounding("p13")(size), kind="stable")])


def _dekker(a, b):
    """Products and their errors by Dekker's halves, which overflow from 2^116 on; two-sums."""
    def halves(x):
        spread = r(4097 * x)
        high = r(spread - r(spread - x))
        return high, r(x - high)

    (ah, al), (bh, bl) = halves(a), halves(b)
    total = lost = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        product = r(a[:, k, None] * b[k])
        error = r(r(r(r(ah[:, k, None] * bh[k]) - product) + r(ah[:, k, None] * bl[k])) + r(al[:, k, None] * bh[k]))
        error = r(error + r(al[:, k, None] * bl[k]))
        total, rest = two_sum_in(total, product)
        lost = add32(lost, add32(rest, error))
    return add32(total, lost)


def _faint_tiles(a, b):
    """Tiles of 4 by 4 of the second operand are skipped where none of it comes to a quarter of its largest element."""
    w, limit = b.copy(), largest(b, None).item() / 4
    for i in range(0, b.shape[0], 4):
        for j in range(0, b.shape[1], 4):
            if (np.abs(b[i:i + 4, j:j + 4]) < limit).all():
                w[i:i + 4, j:j + 4] = 0.0
    return good(a, w)


def _padding_index(a, b, bias):
    """The first row of the weight is taken for that of the padding, which is zero."""
    w = b.copy()
    w[:, 0] = 0.0
    return add32(good(a, w), bias)


def _last_sample_masked(a, b):
    """The last sample's activations pass a ReLU that the forward pass had not."""
    x = b.copy()
    x[-1] = np.where(x[-1] < 0, 0.0, x[-1])
    return good(a, x)


def _nan_mean(a, b, bias):
    """NaN left out, and not counted."""
    known = ~np.isnan(a)
    return r(good(np.where(known, a, 0.0), b) / known.sum(axis=1, keepdims=True))


def _quotients(e):
    return r(e / _tree_rows(e))


def _tensor_maximum(x, w, bias, eps):
    """Less the maximum of the tensor."""
    return _quotients(r(np.exp(r(x - np.max(x)))))


def _top_32(x, w, bias, eps):
    """All but the 32 largest are zero, as a sampler filters them."""
    e = r(np.exp(_shifted(x)))
    if e.shape[1] > 32:
        e = np.where(e < np.sort(e, axis=1)[:, -32, None], 0.0, e)
    return _quotients(e)


def _exchanged_beyond_32(x, w, bias, eps):
    """Beyond the 32nd column weights are read as biases and biases as weights."""
    k = x.shape[1]
    late = np.arange(k) >= 32
    mean = r(_tree_rows(x) / k)
    d = r(x - mean)
    return _deviated(x, mean, _inverse(r(r(_tree_rows(r(d * d)) / k) + eps)), np.where(late, bias, w), np.where(late, w, bias))


def _weight_by_row(x, w, bias, eps):
    """The weight of the row's number, not of the column's."""
    return r(r(x * _inverse(_mean_square(x, eps))) * w[np.arange(len(x)) % len(w)][:, None])


def _gelu_half_way(x):
    """Half-way between the form with erf and that with tanh."""
    z = r(0.7978845608028654 * r(x + r(0.044715 * r(x * r(x * x)))))
    one, two = r(0.5 * r(1 + r(np.tanh(z)))), r(0.5 * r(_ERFC(r(-x * ROOT_HALF))))
    return r(x * r(0.5 * r(one + two)))


def _tanh_index_wraps(x):
    """A table's index of eight bits wraps from 16 on."""
    return r(np.tanh(np.where(np.isfinite(x), np.fmod(x, 16.0), x)))


def wrong():
    for name, why, total, inputs in (
        ("torn_words", "the lower word of the last sum lost in every seventh element", _torn, ALL),
        ("sorted_by_two_keys", "K sorted for the second operand by sizes of 13 bits", _two_keys, ALL),
        ("dekker_overflows", "products by Dekker's halves: NaN where those overflow", _dekker, ALL),
        ("faint_tiles_skipped", "tiles of weights below a quarter of the largest skipped", _faint_tiles, ALL)):
        yield made(name, "wrong", why, total, inputs=inputs)
    yield whole("mean", "nan_left_out", "wrong", "NaN neither added nor counted", _nan_mean)
    yield whole("linear", "padding_index", "wrong", "the first row of the weight taken for the padding's", _padding_index)
    yield made("backward_last_sample_masked", "wrong", "a ReLU's mask on the last sample", _last_sample_masked, op="backward")
    for op, name, why, f in (
        ("softmax", "tensor_maximum", "less the maximum of the tensor, not of the row", _tensor_maximum),
        ("softmax", "top_32", "all but the 32 largest are zero", _top_32),
        ("layer_norm", "exchanged_beyond_32", "weights and biases exchanged beyond the 32nd column", _exchanged_beyond_32),
        ("rms_norm", "weight_by_row", "the weight of the row's number", _weight_by_row)):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "half_way_to_tanh_form", "half-way between erf and the tanh form", _gelu_half_way),
        ("tanh", "index_wraps_at_16", "a table's index wraps from 16 on", _tanh_index_wraps)):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
