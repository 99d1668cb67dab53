"""Fresh, a fourth set: what writers of GPU kernels do with scales, pieces, fix-ups, masks and stale maxima, rightly or not (f_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, filled, parts_of, tree, two_sum_in
from fresh import _norm, _rms, _softmax, _tree_rows
from heldout_operands import _scaled
from heldout_tools import ALL, F32, add32, blockwise, good, in_turn, largest, terms, under, words
from ops import _ERFC
from rounding import add_odd, bfloat16, float16, float32 as r, ranged, rounding

PLAIN = words("as_is", acc="float32")
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}
OTHER = words("other", acc="float32")
FIRST_OTHER = words("other", "as_is", acc="float32")
SECOND_OTHER = words("as_is", "other", acc="float32")
NOT_BFLOAT16 = ("float32", "float16")  # of what leaves bfloat16 numbers as they are
LOG2E = r(np.float64(1.4426950408889634))
E4M3, E2M1 = ranged(4, low=-6), ranged(2, low=0)


made, recipe, chain, whole = under("f_")


def _or_plain(y, a, b):
    """y where it is finite, a float32 chain where it is not: what corrects a sum has no sense beside an infinite one."""
    return np.where(np.isfinite(y), y, in_turn(r(terms(a, b))))


def _at_threshold(x, bits, threshold):
    """x in `bits` bits, up where what is left is at least 1 - threshold of the last one, down elsewhere."""
    finite = np.where(np.isfinite(x), x, 0.0)
    unit = np.ldexp(1.0, np.frexp(finite)[1] - bits)
    return np.where(np.isfinite(x), np.floor(finite / unit + threshold) * unit, x)


# honest sums
def _power(x, axis):
    return 2.0**np.frexp(largest(x, axis))[1]


def _scaled_promotion(a, b):
    """Blocks of 32 along K, scaled by powers of two per row and column; their float32 sums are fused into the total with the scales."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], 32):
        x, w = a[:, at:at + 32], b[at:at + 32]
        s, t = _power(x, 1), _power(w, 0)
        y = r(add_odd(in_turn(terms(x / s, w / t)) * (s * t), y))
    return y


def _buckets(a, b):
    """Products of the same exponent share a float64 bucket; the buckets are added from the largest down (Demmel and Hida)."""
    t = terms(a, b)
    exponents = np.frexp(t)[1]
    y = np.zeros(t.shape[1:])
    for exponent in np.unique(exponents)[::-1]:
        y = y + np.where(exponents == exponent, t, 0.0).sum(axis=0)
    return y


def _priest(a, b):
    """Priest's doubly compensated sum: float32 products by falling size."""
    t = r(terms(a, b))
    t = np.take_along_axis(t, np.argsort(-np.abs(t), axis=0, kind="stable"), axis=0)
    s, c = t[0], np.zeros(t.shape[1:])
    for x in t[1:]:
        y = r(c + x)
        u = r(x - r(y - c))
        new = r(y + s)
        z = r(u + r(y - r(new - s)))
        s = r(new + z)
        c = r(z - r(s - new))
    return _or_plain(s, a, b)


def _ternary(a, b):
    t = r(terms(a, b))
    while len(t) > 1:
        three = filled(t, 3)
        t = add32(add32(three[:, 0], three[:, 1]), three[:, 2])
    return t[0]


def _low_products(a, b):
    """Float32 products in one chain, what they lack in another, added at the end; the sums are not corrected."""
    t = terms(a, b)
    high = r(t)
    low = r(np.where(np.isfinite(high), t - high, 0.0))
    return add32(in_turn(high), in_turn(low))


def _distilled(a, b):
    """Two passes of two-sums along K (Ogita, Rump and Oishi's SumK), then what is left in turn."""
    t = list(r(terms(a, b)))
    for _ in range(2):
        for at in range(1, len(t)):
            t[at], t[at - 1] = two_sum_in(t[at], t[at - 1])
    return _or_plain(in_turn(np.stack(t)), a, b)


def _settled(a, b):
    """A chain whose errors are gathered beside it and added in after every 8 terms."""
    y = lost = np.zeros((a.shape[0], b.shape[1]))
    for at, each in enumerate(r(terms(a, b)), 1):
        y, error = two_sum_in(y, each)
        lost = r(lost + error)
        if at % 8 == 0:
            y, lost = add32(y, lost), np.zeros_like(lost)
    return _or_plain(add32(y, lost), a, b)


def _nine(a, b):
    """BF16x9: three pieces of 8 bits, the lower ones lifted by 2^8 and 2^16; nine float32 sums, added from the smallest."""
    n = rounding("p8")
    usual = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)[None, :]
    pieces = []
    for x in (np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)):
        pieces.append([])
        for lift in (1.0, 2.0**8, 2.0**16):
            part = n(x)
            pieces[-1].append(part * lift)
            x = x - part
    y = np.zeros((a.shape[0], b.shape[1]))
    for i, j in sorted(((i, j) for i in range(3) for j in range(3)), key=lambda ij: (-sum(ij), ij)):
        y = add32(y, good(pieces[0][i], pieces[1][j]) * 2.0**(-8 * (i + j)))
    return np.where(usual, y, good(a, b))


def _by_column_size(a, b):
    """K sorted once, by the largest element of each column of the first operand, largest first; fused."""
    order = np.argsort(-np.abs(np.where(np.isfinite(a), a, 0.0)).max(axis=0), kind="stable")
    return in_turn(terms(a[:, order], b[order]))


def _adder_tree(a, b):
    """Four products by a tree whose adders keep 28 bits, then into the float32 sum."""
    n = rounding("p28")
    y = np.zeros((a.shape[0], b.shape[1]))
    for four in filled(terms(a, b), 4):
        y = add32(y, n(add_odd(n(add_odd(four[0], four[1])), n(add_odd(four[2], four[3])))))
    return y


def _centred(a, b):
    """The mean of the first 16 is taken off, the rest added in float64, n times the mean put back."""
    mean = r(a[:, :16].sum(axis=1, keepdims=True) / min(16, a.shape[1]))
    mean = np.where(np.isfinite(mean), mean, 0.0)
    return (a - mean).sum(axis=1, keepdims=True) + a.shape[1] * mean


def _five_three_two(a, b):
    """Three accumulators take 5, 3 and 2 terms by turns."""
    t, sums = terms(a, b), []
    which = np.arange(len(t)) % 10
    for low, high in ((0, 5), (5, 8), (8, 10)):
        sums.append(in_turn(t[(which >= low) & (which < high)]))
    return in_turn(np.stack(sums))


def _running_compensated(a, b, bias):
    """A running mean whose own rounding errors are carried along, as Kahan does with sums."""
    mean, lost = a[:, :1], np.zeros((len(a), 1))
    for count, column in enumerate(a.T[1:], 2):
        y = r(r(r(column[:, None] - mean) / count) - lost)
        new = r(mean + y)
        mean, lost = new, r(r(new - mean) - y)
    return np.where(np.isfinite(mean), mean, r(good(a, b) / a.shape[1]))


def _bias_leaf(a, b, bias):
    """The bias is a leaf in the middle of a tree of products."""
    t = r(terms(a, b))
    half = len(t) // 2
    return tree(np.concatenate([t[:half], np.broadcast_to(bias, (1, *t.shape[1:])), t[half:]]))


def _bias_halves(a, b, bias):
    """Each of two parts of K begins as half of the bias."""
    parts = min(2, a.shape[1])
    begin = np.broadcast_to(r(bias / parts), (1, a.shape[0], b.shape[1]))
    return in_turn(parts_of(a, b, parts, lambda x, w: in_turn(np.concatenate([begin, terms(x, w)]))))


def _two_nodes(a, b):
    """Six ranks' gradients: in turn within each node of three, then the nodes."""
    return in_turn(np.stack([in_turn(node) for node in cut(parts_of(a, b, 6, lambda x, w: in_turn(terms(x, w))), 3)]))


def honest_sums():
    for name, why, total, truth, inputs in (
        ("scaled_promotion", "blocks of 32 under powers of two, fused into the sum", _scaled_promotion, PLAIN, ALL),
        ("exponent_buckets", "a float64 bucket for every exponent", _buckets, INSIDE, ALL),
        ("priest", "doubly compensated, by falling size", _priest, {}, ALL),
        ("ternary_tree", "a tree of threes", _ternary, PLAIN, ALL),
        ("low_products_apart", "what float32 products lack, summed apart", _low_products, INSIDE, F32),
        ("distilled_twice", "two passes of two-sums, then a chain", _distilled, {}, ALL),
        ("settled_each_8", "the errors of a chain added in after every 8 terms", _settled, {}, ALL),
        ("bf16x9", "three pieces of 8 bits, nine float32 sums, as cuBLAS emulates float32", _nine, INSIDE, ALL),
        ("k_by_column_size", "K sorted by the columns of the first operand", _by_column_size, PLAIN, ALL),
        ("adder_tree_p28", "trees of four with 28 bits, into a float32 sum", _adder_tree, INSIDE, ALL)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    yield made("half_fused", "honest", "products cut to 32 bits on their way into the adder",
               lambda a, b: in_turn(rounding("p32_rz")(terms(a, b))), truth=INSIDE, inputs=F32)
    yield made("sum_centred", "honest", "a mean taken off, the rest in float64", _centred, op="sum", truth={"in": {"x": "as_is"}})
    yield made("sum_five_three_two", "honest", "three accumulators take 5, 3 and 2 terms by turns", _five_three_two, op="sum",
               truth=words("as_is", acc="float32", op="sum"))
    yield whole("mean", "running_compensated", "honest", "a running mean that carries its errors along", _running_compensated,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_leaf", "honest", "the bias as a leaf of a tree", _bias_leaf,
                truth=words("as_is", acc="float32", op="linear"))
    yield whole("linear", "bias_halves", "honest", "two parts of K, each begins as half of the bias", _bias_halves,
                truth=words("as_is", acc="float32", op="linear"))
    yield made("backward_two_nodes", "honest", "six ranks on two nodes", _two_nodes, op="backward",
               truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _joined(one, two):
    """(maximum, sum less it) of two sets of columns."""
    (m, s), (n, t) = one, two
    top = np.maximum(m, n)
    safe = np.where(np.isneginf(top), 0.0, top)
    return top, add32(r(s * r(np.exp(r(m - safe)))), r(t * r(np.exp(r(n - safe)))))


def _lanes_online(x, w, bias, eps):
    """Eight lanes stride along the row, each with its own running maximum and sum; lanes are joined by halves."""
    lanes = []
    for at in range(min(8, x.shape[1])):
        lane = (np.full((len(x), 1), -np.inf), np.zeros((len(x), 1)))
        for column in x.T[at::8]:
            lane = _joined(lane, (column[:, None], np.ones((len(x), 1))))
        lanes.append(lane)
    while len(lanes) > 1:
        half = (len(lanes) + 1) // 2
        lanes = [_joined(lanes[at], lanes[at + half]) if at + half < len(lanes) else lanes[at] for at in range(half)]
    top, total = lanes[0]
    return r(r(np.exp(r(x - top))) / total)


def _lazily_rescaled(x, w, bias, eps):
    """Eight columns at a time; the reference grows only where it lags by more than 8 powers of two, as FlashAttention 4."""
    top, total = np.full((len(x), 1), -np.inf), np.zeros((len(x), 1))
    for at in range(0, x.shape[1], 8):
        part = x[:, at:at + 8]
        high = part.max(axis=1, keepdims=True)
        new = np.where(np.isneginf(top) | (high - top > 8 / LOG2E), high, top)
        kept = np.where(new == top, 1.0, r(np.exp(r(top - new))))
        total = add32(r(total * kept), _tree_rows(r(np.exp(r(part - new)))))
        top = new
    return r(r(np.exp(r(x - top))) / total)


def _two_tables(d):
    """2^x as a product of two float32 tables of 32, 2^n and 1 + g + g^2 / 2."""
    t = np.maximum(d, -160.0) * 1.4426950408889634
    at = np.rint(1024 * np.where(np.isfinite(t), t, 0.0))
    g = np.where(np.isfinite(t), t - at / 1024, t) * 0.6931471805599453
    fine, coarse, whole_ = at % 32, at // 32 % 32, at // 1024
    value = r(r(np.exp2(fine / 1024)) * r(np.exp2(coarse / 32)))
    return r(r(value * r(1 + r(g + r(0.5 * r(g * g))))) * 2.0**whole_)


def _deviated(x, mean, rstd, w, bias):
    return add32(r(r(r(x - mean) * rstd) * w), bias)


def _inverse(v):
    return r(1 / r(np.sqrt(v)))


def _pair_differences(x, w, bias, eps):
    """The variance as the sum of squared differences of all pairs, over n^2."""
    k = x.shape[1]
    variance = np.zeros((len(x), 1))
    for step in range(1, k):
        variance = add32(variance, _tree_rows(r(r(r(x[:, step:] - x[:, :-step]) / k)**2)))
    return _deviated(x, r(_tree_rows(x) / k), _inverse(r(variance + eps)), w, bias)


def _root_of_n(x, w, bias, eps):
    """sqrt(n) / sqrt(sum of squares + n eps)."""
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    squares = _tree_rows(r(r(x - mean)**2))
    return _deviated(x, mean, r(r(np.sqrt(float(k))) / r(np.sqrt(r(squares + r(k * eps))))), w, bias)


def _shifted_one_pass(x, w, bias, eps):
    """One pass in float32 over x less the mean of its first 8 in bfloat16."""
    k = x.shape[1]
    d = r(x - bfloat16(_tree_rows(x[:, :8]) / min(8, k)))
    first = r(_tree_rows(d) / k)
    variance = np.maximum(r(r(_tree_rows(r(d * d)) / k) - r(first * first)), 0.0)
    return add32(r(r(r(d - first) * _inverse(r(variance + eps))) * w), bias)


def _bessel_undone(x, w, bias, eps):
    """A library's variance over n - 1, times (n - 1) / n."""
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    variance = r(r(_tree_rows(r(r(x - mean)**2)) / (k - 1)) * r((k - 1) / k))
    return _deviated(x, mean, _inverse(r(variance + eps)), w, bias)


def _hypotenuses(x, w, bias, eps):
    """The length of a row by a tree of hypotenuses: no square overflows."""
    length = tree(np.abs(x).T[:, :, None], lambda s, t: r(np.sqrt(s * s + t * t)))
    v = r(r(length * length) / x.shape[1])
    return r(r(x * _inverse(r(v + eps))) * w)


def _two_steps(v):
    """12 bits of an inverse root and two steps of Newton's."""
    y = rounding("p12")(1 / np.sqrt(v))
    for _ in range(2):
        y = np.where(np.isfinite(v), r(y * r(1.5 - r(r(r(0.5 * v) * y) * y))), y)
    return y


def _craig(x):
    """Craig's integral of the tail, by 64 midpoints in float64; below 1 a series."""
    angles = (np.arange(64) + 0.5) * np.pi / 128
    size = np.abs(x)
    tail = np.exp(-(size[..., None] / np.sin(angles))**2 / 2).mean(axis=-1) / 2
    near = np.where(size < 1, x, 0.0)
    part = total = near
    for odd in range(3, 41, 2):
        part = part * near * near / odd
        total = total + part
    inner = x * (0.5 + total * np.exp(-near * near / 2) * 0.3989422804014327)
    return r(np.where(size < 1, inner, np.where(x > 0, x * (1 - tail), x * tail)))


def _tanh_newton(x):
    """12 bits of tanh mended by two steps with atanh in float64 below 1; an exponential in float64 beyond."""
    near = np.where(np.abs(x) < 1, x, 0.0)
    y = rounding("p12")(np.tanh(near))
    for _ in range(2):
        y = y + (near - np.arctanh(y)) * (1 - y * y)
    far = np.copysign(1 - 2 / (1 + np.exp(2 * np.abs(x))), x)
    return np.where(np.abs(x) < 1, np.copysign(r(y), x), r(far))


def _silu_squared_half(x):
    half = r(np.exp(-x / 2))
    return r(x / r(1 + r(half * half)))


def honest_chains():
    for op, name, why, f in (
        ("softmax", "lanes_online", "eight lanes with a running maximum each, joined by halves", _lanes_online),
        ("softmax", "lazily_rescaled", "scaled anew only beyond 2^8", _lazily_rescaled),
        ("softmax", "two_tables", "an exponential from two tables of 32 and a square", _softmax(exp=_two_tables)),
        ("layer_norm", "pair_differences", "the variance from all pairs' differences", _pair_differences),
        ("layer_norm", "root_of_n", "the root of n over the root of the sum", _root_of_n),
        ("layer_norm", "shifted_one_pass", "one float32 pass over x less a bfloat16 guess", _shifted_one_pass),
        ("layer_norm", "bessel_undone", "a variance over n - 1, times (n - 1) / n", _bessel_undone),
        ("rms_norm", "hypotenuses", "a tree of hypotenuses", _hypotenuses),
        ("rms_norm", "rsqrt12_two_steps", "an inverse root of 12 bits and two steps", _rms(rsqrt=_two_steps))):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "craig", "Craig's integral by 64 midpoints, a series below 1, in float64", _craig),
        ("silu", "squared_half", "e^-x as the square of e^(-x/2)", _silu_squared_half),
        ("tanh", "newton", "Newton's steps with atanh in float64", _tanh_newton)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow
def _unit(x, axis, reach):
    scale = r(largest(x, axis) / reach)
    return np.where(scale > 0, scale, 1.0)


def _int8_sum_bfloat16(a, b):
    """int8 by rows and columns; the integer sum becomes a bfloat16 before the scales are applied."""
    s, t = _unit(a, 1, 127.0), _unit(b, 0, 127.0)
    whole_ = np.clip(np.rint(a / s), -127, 127) @ np.clip(np.rint(b / t), -127, 127)
    return np.where(np.isfinite(whole_), r(r(bfloat16(whole_) * s) * t), good(a, b))


def _int4_in_bfloat16(a, b):
    """4-bit weights with a zero point per 32; q s and z s are bfloat16 numbers, and so is their difference."""
    def change(v):
        low, high = (np.where(np.isfinite(v), v, 0.0).min(axis=-1, keepdims=True), np.where(np.isfinite(v), v, 0.0).max(axis=-1, keepdims=True))
        s = bfloat16((high - low) / 15)
        s = np.where(s > 0, s, 1.0)
        z = np.clip(np.rint(-low / s), 0, 15)
        q = np.clip(np.rint(v / s) + z, 0, 15)
        return np.where(np.isfinite(v), bfloat16(bfloat16(q * s) - bfloat16(z * s)), v)

    return good(a, blockwise(b, 0, 32, change))


def _mixed_mx(a, b):
    return good(_scaled(E2M1, 6.0, 1, 32)(a), _scaled(E4M3, 448.0, 0, 32)(b))


def _token_channel(a, b):
    """e4m3 under a float32 scale per row and per column; sums cut to 14 bits, promoted after 128 terms; scales at the end."""
    s, t = _unit(a, 1, 448.0), _unit(b, 0, 448.0)
    n = rounding("p14_rz")
    x, w = (E4M3(np.clip(v / scale, -448, 448)) for v, scale in ((a, s), (b, t)))
    y = in_turn(np.stack([in_turn(piece, lambda u, v: n(add_odd(u, v))) for piece in cut(terms(x, w), 128)]))
    return r(r(y * s) * t)


BAYER = (np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) + 0.5) / 16


def _bayer(a, b):
    """Results in 12 bits, rounded up or down by an ordered pattern of 4 by 4."""
    y = good(a, b)
    rows, columns = np.indices(y.shape)
    return _at_threshold(y, 12, BAYER[rows % 4, columns % 4])


def _first_in_two_tf32(a, b):
    n = rounding("tf32")
    high, w = n(a), n(b)
    low = n(np.where(np.isfinite(high), a - high, 0.0))
    return add32(good(low, w), good(high, w))


def _three_cut(a, b):
    """High and low pieces by cutting to 8 bits, not by rounding; three products."""
    n = rounding("p8_rz")
    pieces = []
    for x in (a, b):
        high = n(x)
        pieces.append((high, n(np.where(np.isfinite(high), x - high, 0.0))))
    (x, dx), (w, dw) = pieces
    return add32(add32(good(dx, w), good(x, dw)), good(x, w))


def _compensated_float16(a, b):
    """float16 products, a float16 sum and a float16 sum of its errors; the two are added in float32."""
    s = lost = np.zeros((a.shape[0], b.shape[1]))
    for each in float16(terms(a, b)):
        s, error = two_sum_in(s, each, float16)
        lost = float16(lost + error)
    return add32(s, lost)


def _fixed_up(a, b):
    """Stream-K: of row tiles of 4 two in three are begun by another worker, whose part waits in bfloat16."""
    k, tiles = a.shape[1], []
    for number, rows in enumerate(cut(a, 4)):
        at = k * (number % 3) // 3
        tiles.append(add32(good(rows[:, at:], b[at:]), bfloat16(good(rows[:, :at], b[:at]))) if at else good(rows, b))
    return np.concatenate(tiles)


def _query_scaled(a, b):
    """The first operand times 1/sqrt(128) is kept in bfloat16; the result is scaled back in float32."""
    scale = r(np.float64(0.08838834764831845))
    return r(good(bfloat16(a * scale), b) * r(1 / scale))


def _q15(a, b):
    """16-bit integers with one scale per tensor; products lose their last 12 bits before they are added as integers."""
    s, t = (_unit(x.ravel(), 0, 32767.0) for x in (a, b))
    total = np.floor(terms(np.rint(a / s), np.rint(b / t)) / 4096).sum(axis=0)
    return r(r(total * s) * (4096 * t))


def _noise_shaped(a, b):
    """Weights in bfloat16; what rounding takes off one is added to the next along K."""
    w, carry = [], np.zeros(b.shape[1])
    for row in b:
        wanted = row + carry
        w.append(bfloat16(wanted))
        carry = np.where(np.isfinite(w[-1]), wanted - w[-1], 0.0)
    return good(a, np.stack(w))


def _dithered(a, b):
    """A bfloat16 accumulator whose rounding threshold runs through van der Corput's numbers."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at, each in enumerate(terms(a, b), 1):
        y = _at_threshold(add_odd(y, each), 8, sum(((at >> bit) & 1) / 2**(bit + 1) for bit in range(16)))
    return y


def _winograd_variant(a, b):
    """Strassen's product as Winograd has it, once over: 7 products, 15 sums, in float32."""
    m, n = a.shape[0], b.shape[1]
    a = np.pad(a, [(0, side % 2) for side in a.shape])
    b = np.pad(b, [(0, side % 2) for side in b.shape])
    (a11, a12), (a21, a22) = (np.split(half, 2, axis=1) for half in np.split(a, 2))
    (b11, b12), (b21, b22) = (np.split(half, 2, axis=1) for half in np.split(b, 2))
    s1, s3 = r(a21 + a22), r(a11 - a21)
    s2 = r(s1 - a11)
    s4 = r(a12 - s2)
    t1, t3 = r(b12 - b11), r(b22 - b12)
    t2 = r(b22 - t1)
    t4 = r(t2 - b21)
    p1, p5, u2 = good(a11, b11), good(s1, t1), good(s2, t2)
    u2 = r(p1 + u2)
    u3 = r(u2 + good(s3, t3))
    return np.block([[r(p1 + good(a12, b21)), r(r(u2 + p5) + good(s4, b22))], [r(u3 - good(a22, t4)), r(u3 + p5)]])[:m, :n]


def _quarter_squares(a, b):
    """Products as ((a + b)^2 - (a - b)^2) / 4, every step in float32."""
    x, w = a.T[:, :, None], b[:, None, :]
    return in_turn(r(r(r(r(x + w)**2) - r(r(x - w)**2)) / 4))


def _scales_in_bfloat16(a, b):
    """Rows are divided by their float32 scale, and multiplied by it in bfloat16."""
    s = _unit(a, 1, 448.0)
    return r(good(r(a / s), b) * bfloat16(s))


def _weight_and_residual(a, b):
    """Weights in bfloat16, and what they lack in e5m2, lifted by 2^8."""
    high = bfloat16(b)
    low = ranged(3, low=-14, high=15)(np.where(np.isfinite(high), b - high, 0.0) * 256) / 256
    return good(a, high + low)


def _smoothed(a, b):
    """SmoothQuant: sizes of activations moved into the weights, then int8 by rows and columns."""
    s = r(np.sqrt(largest(a, 0).T / largest(b, 1)))
    s = np.where(s > 0, s, 1.0)
    x, w = r(a / s.T), r(b * s)
    u, v = _unit(x, 1, 127.0), _unit(w, 0, 127.0)
    y = r(r((np.clip(np.rint(x / u), -127, 127) @ np.clip(np.rint(w / v), -127, 127)) * u) * v)
    return np.where(np.isfinite(y), y, good(a, b))


def _packed(a, b):
    """Both halves of the row are added as packed bfloat16, the rest in float32."""
    t = terms(a, b)
    half = len(t) // 2
    return in_turn(np.concatenate([bfloat16(add_odd(t[:half], t[half:2 * half])), t[2 * half:]]))


def _hybrid(a, b):
    """The gradient in e5m2, activations in e4m3, one power of two per tensor."""
    s, t = _power(a.ravel(), 0) * 2.0**-15, _power(b.ravel(), 0) * 2.0**-8
    return good(ranged(3, low=-14, high=15)(np.clip(a / s, -57344, 57344)) * s, E4M3(np.clip(b / t, -448, 448)) * t)


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("int8_sum_bfloat16", "int8, the integer sum in bfloat16 before its scales", _int8_sum_bfloat16, {"in": {"x": "other", "w": "other"}}, ALL),
        ("int4_in_bfloat16", "4-bit weights restored by three bfloat16 roundings", _int4_in_bfloat16, SECOND_OTHER, ALL),
        ("mxfp4_by_mxfp8", "MXFP4 times MXFP8", _mixed_mx, OTHER, ALL),
        ("e4m3_token_channel", "e4m3 by rows and columns, 14-bit sums of 128", _token_channel, words("other"), ALL),
        ("out_bayer_p12", "results in 12 bits by an ordered dither", _bayer, INSIDE, ALL),
        ("tf32_first_in_two", "the first operand as two tf32, the second as one", _first_in_two_tf32, {}, F32),
        ("bf16x3_cut", "pieces cut to 8 bits, three products", _three_cut, {}, F32),
        ("compensated_float16", "float16 sums of products and of errors", _compensated_float16, INSIDE, ALL),
        ("stream_k_fixup_bfloat16", "stream-K, parts that wait in bfloat16", _fixed_up, INSIDE, ALL),
        ("query_scaled_bfloat16", "the first operand in bfloat16 at 1/sqrt(128)", _query_scaled, FIRST_OTHER, ALL),
        ("q15_short_products", "16-bit integers, products without their last 12 bits", _q15, words("other"), ALL),
        ("weight_noise_shaped", "bfloat16 weights, each error handed to the next", _noise_shaped, SECOND_OTHER, NOT_BFLOAT16),
        ("acc_bfloat16_dithered", "a bfloat16 sum rounded by van der Corput's numbers", _dithered, INSIDE, ALL),
        ("winograd_variant", "Strassen's product as Winograd has it", _winograd_variant, {}, ALL),
        ("quarter_squares", "products as differences of squares", _quarter_squares, {}, ALL),
        ("row_scales_bfloat16", "rows divided by a scale, multiplied by it in bfloat16", _scales_in_bfloat16, {}, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    for name, why, more in (
        ("tf32_rna_by_tf32_rz", "tf32 ties away times tf32 cut", {"a": "tf32_rna", "b": "tf32_rz", "order": "lanes12", "inputs": F32}),
        ("prod_float16_rz", "products cut to float16", {"prod": "float16_rz", "order": "lanes16"}),
        ("mid_tf32_rna", "stored as tf32, ties away, for the next product", {"mid": "tf32_rna", "order": "split3"})):
        yield recipe(name, "narrow", why, **more)
    yield whole("linear", "bias_added_rz", "narrow", "the sum with the bias is cut to float32",
                lambda a, b, bias: rounding("float32_rz")(add_odd(r(good(a, b)), np.broadcast_to(bias, (a.shape[0], b.shape[1])))),
                truth=INSIDE)
    yield made("linear_weight_and_residual", "narrow", "weights in bfloat16 and a residual in e5m2", _weight_and_residual, op="linear",
               truth=SECOND_OTHER, inputs=NOT_BFLOAT16)
    yield made("linear_smoothed_int8", "narrow", "SmoothQuant", _smoothed, op="linear",
               truth={"in": {"x": "other", "w": "other"}})
    yield made("sum_packed_bfloat16", "narrow", "two halves added as packed bfloat16", _packed, op="sum", truth={"in": {"x": "as_is"}})
    yield made("sum_grid_2m16_cut", "narrow", "terms cut to a grid of 2^-16, added as integers", lambda a, b: (
        np.trunc(a * 2.0**16) * 2.0**-16).sum(axis=1, keepdims=True), op="sum", truth={"in": {"x": "other"}})
    yield whole("mean", "terms_over_n_float16", "narrow", "terms over n in float16, added in float32",
                lambda a, b, bias: good(float16(a / a.shape[1]), b))
    yield made("backward_hybrid_fp8", "narrow", "gradients in e5m2, activations in e4m3", _hybrid, op="backward",
               truth=words("other", acc="float32", op="backward"))


def _scores_float16(x, w, bias, eps):
    """x log2 e is kept in float16 before its maximum is taken off."""
    t = float16(x * LOG2E)
    e = r(np.exp2(r(t - t.max(axis=1, keepdims=True))))
    return r(e / _tree_rows(e))


def _every_fourth_cubic(d):
    """Every fourth column's exponential by a cubic on the multipliers, the others by the special unit, as FlashAttention 4."""
    t = r(np.maximum(d, -80.0) * LOG2E)
    n = np.floor(t)
    f = r(t - n)
    y = r(add_odd(f * r(0.07711908966302872), r(0.22756439447402954)))
    y = r(add_odd(r(y * f), r(0.6951461434364319)))
    y = r(r(add_odd(y * f, np.ones_like(f))) * 2.0**n)
    return np.where(np.arange(d.shape[1]) % 4 == 3, y, r(np.exp(d)))


def _saved_maximum(x, w, bias, eps):
    """The sum is of x less its maximum; the second pass reads the maximum in bfloat16."""
    top = np.max(x, axis=1, keepdims=True)
    total = _tree_rows(r(np.exp(r(x - top))))
    return r(r(np.exp(r(x - bfloat16(top)))) / total)


def _means_bfloat16(x, w, bias, eps):
    """Means of 16 columns pass through bfloat16 before they are weighted and joined; the variance is about the joined mean."""
    k = x.shape[1]
    parts = [(bfloat16(_tree_rows(x[:, at:at + 16]) / min(16, k - at)), min(16, k - at)) for at in range(0, k, 16)]
    mean = r(in_turn(np.stack([r(part * count) for part, count in parts])) / k)
    return _deviated(x, mean, _inverse(r(r(_tree_rows(r(r(x - mean)**2)) / k) + eps)), w, bias)


def _table_rsqrt(v):
    """Straight lines between 256 float32 values from 1 to 4, and a power of two."""
    usual = np.isfinite(v) & (v > 0)
    near = np.where(usual, v, 1.0)
    power = np.floor(np.log2(near) / 2)
    at = np.linspace(1, 4, 257)
    return np.where(usual, r(r(np.interp(near / 4.0**power, at, r(1 / np.sqrt(at)))) * 2.0**-power), 1 / np.sqrt(v))


def _winitzki(x):
    z = r(x * 0.7071067811865476)
    z = r(z * z)
    inner = r(r(1.2732395447351628 + r(0.147 * z)) / r(1 + r(0.147 * z)))
    erf = np.copysign(r(np.sqrt(r(1 - r(np.exp(r(-z * inner)))))), x)
    return r(r(0.5 * x) * r(1 + erf))


def _tanh_difference(x):
    x = np.clip(x, -40.0, 40.0)
    up, down = r(np.exp(x)), r(np.exp(-x))
    return r(r(up - down) / r(up + down))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "scores_float16", "x log2 e in float16", _scores_float16),
        ("softmax", "every_fourth_cubic", "every fourth exponential by a cubic", _softmax(exp=_every_fourth_cubic)),
        ("softmax", "saved_maximum_bfloat16", "the second pass reads the maximum in bfloat16", _saved_maximum),
        ("layer_norm", "means_bfloat16", "means of 16 columns in bfloat16", _means_bfloat16),
        ("layer_norm", "rsqrt_table_256", "an inverse root from 256 values and straight lines", _norm(rsqrt=_table_rsqrt)),
        ("rms_norm", "weight_less_one_bfloat16", "the weight less 1 kept in bfloat16", _rms(w_as=lambda w: r(1 + bfloat16(w - 1)))),
        ("rms_norm", "rsqrt_by_logarithm", "an inverse root as 2^(-log2 v / 2) in float32", _rms(
            rsqrt=lambda v: r(np.exp2(r(-0.5 * r(np.log2(v)))))))):
        yield chain(op, name, "narrow", why, f)
    for op, name, why, f in (
        ("gelu", "winitzki", "Winitzki's erf in float32", _winitzki),
        ("silu", "tanh_approx", "x/2 (1 + tanh x/2), tanh of 11 bits", lambda x: r(r(0.5 * x) * r(1 + rounding("p11")(np.tanh(x / 2))))),
        ("silu", "gate_of_bfloat16", "x times the sigmoid of x in bfloat16", lambda x: r(x / r(1 + r(np.exp(-bfloat16(x)))))),
        ("silu", "sigmoid_grid_2m12", "the sigmoid on a grid of 2^-12", lambda x: r(x * np.rint(4096 / (1 + np.exp(-x))) / 4096)),
        ("tanh", "q15", "results on a grid of 2^-15", lambda x: np.rint(np.tanh(x) * 2.0**15) * 2.0**-15),
        ("tanh", "difference", "(e^x - e^-x) / (e^x + e^-x) in float32", _tanh_difference)):
        inputs = NOT_BFLOAT16 if name == "gate_of_bfloat16" else ALL
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x), inputs)


# wrong
def _one_pattern(a, b):
    """2:4 sparsity whose pattern is that of the first column for all of them."""
    groups = filled(b, 4)
    sizes = np.abs(groups[:, :, :1])
    kept = np.argsort(np.argsort(-sizes, axis=1, kind="stable"), axis=1, kind="stable") < 2
    return good(a, np.where(kept, groups, 0.0).reshape(-1, b.shape[1])[:len(b)])


def _scale_of_block_before(a, b):
    """Blocks of 16 along K under powers of two; from the second on they are restored with the scale of the one before."""
    blocks, before = [], None
    for at in range(0, a.shape[1], 16):
        scale = _power(a[:, at:at + 16], 1)
        blocks.append(a[:, at:at + 16] / scale * (scale if before is None else before))
        before = scale
    return good(r(np.concatenate(blocks, axis=1)), b)


def _short_correction(a, b):
    """A zero point per row is taken off; what it adds back sums whole eights of K only."""
    usual = np.where(np.isfinite(a), a, 0.0)
    z = r((usual.max(axis=1, keepdims=True) + usual.min(axis=1, keepdims=True)) / 2)
    sums = in_turn(terms(np.ones((1, len(b) // 8 * 8)), b[:len(b) // 8 * 8])) if len(b) >= 8 else np.zeros((1, b.shape[1]))
    return add32(good(r(a - z), b), r(z * sums))


def _swizzled(a, b):
    """Columns 8 to 15, 24 to 31, ... read neighbours along K exchanged, an XOR that the store did not have."""
    whole_ = len(b) // 2 * 2
    if not whole_:  # one term has no neighbour
        return good(a, b)
    other = np.concatenate([b[:whole_].reshape(-1, 2, b.shape[1])[:, ::-1].reshape(whole_, -1), b[whole_:]])
    return good(a, np.where(np.arange(b.shape[1]) // 8 % 2 == 1, other, b))


def _equal_once(a, b):
    """Equal neighbours count once."""
    t = terms(a, b)
    return in_turn(np.concatenate([t[:1], np.where(t[1:] == t[:-1], 0.0, t[1:])]))


def _pair_averages(a, b, bias):
    """Averages of pairs, again and again; a last one without a partner is its own."""
    t = a.T[:, :, None]
    while len(t) > 1:
        t = np.concatenate([t, t[-1:]]) if len(t) % 2 else t
        t = r(r(t[0::2] + t[1::2]) / 2)
    return t[0]


def _uneven_ranks(a, b):
    """The mean of five ranks' mean gradients, times the count of samples; ranks are not equally long."""
    k = a.shape[1]
    ranks = np.array_split(np.arange(k), min(5, k))
    return in_turn(np.stack([r(good(a[:, at], b[at]) * r(k / (len(ranks) * len(at)))) for at in ranks]))


def _last_not_rescaled(x, w, bias, eps):
    """Eight columns at a time; the last block takes its maximum without scaling the sum anew."""
    top, total = np.full((len(x), 1), -np.inf), np.zeros((len(x), 1))
    for at in range(0, x.shape[1], 8):
        part = x[:, at:at + 8]
        new = np.maximum(top, part.max(axis=1, keepdims=True))
        if at + 8 < x.shape[1]:
            total = r(total * r(np.exp(r(top - new))))
        total, top = add32(total, _tree_rows(r(np.exp(r(part - new))))), new
    return r(r(np.exp(r(x - top))) / total)


def _zeros_in_sum(x, w, bias, eps):
    """Columns up to a multiple of 16 are filled with 0, and their exponentials counted."""
    top = np.max(x, axis=1, keepdims=True)
    e = r(np.exp(r(x - top)))
    return r(e / add32(_tree_rows(e), r((-x.shape[1] % 16) * r(np.exp(-top)))))


def _within_blocks(x, w, bias, eps):
    """Blocks of 16 are merged without the distance of their means in the variance."""
    k = x.shape[1]
    squares = in_turn(np.stack([_tree_rows(r(r(part - r(_tree_rows(part) / part.shape[1]))**2))
                                for part in (x[:, at:at + 16] for at in range(0, k, 16))]))
    return _deviated(x, r(_tree_rows(x) / k), _inverse(r(r(squares / k) + eps)), w, bias)


def _two_groups(x, w, bias, eps):
    half = (x.shape[1] + 1) // 2
    return np.concatenate([_rms()(x[:, :half], w[:half], bias, eps), _rms()(x[:, half:], w[half:], bias, eps)], axis=1)


def _tanh_beyond_two(x):
    inner = r(0.7978845608028654 * r(x + r(0.044715 * r(x * r(x * x)))))
    return np.where(np.abs(x) > 2, r(r(0.5 * x) * r(1 + r(np.tanh(inner)))), r(0.5 * x * _ERFC(-x * 0.7071067811865476)))


def _short_fraction(x):
    """Lambert's fraction as audio code has it, held within 1."""
    z = x * x
    return np.clip(r(x * (135135 + z * (17325 + z * (378 + z))) / (135135 + z * (62370 + z * (3150 + z * 28)))), -1, 1)


def wrong():
    for name, why, total in (
        ("pattern_of_first_column", "2:4 sparsity by the first column's pattern", _one_pattern),
        ("scale_of_block_before", "blocks of 16 restored with the scale of the one before", _scale_of_block_before),
        ("zero_point_tail", "the zero point's correction lacks what 8 leaves over of K", _short_correction),
        ("swizzle_mismatch", "every other 8 columns read neighbours along K exchanged", _swizzled)):
        yield made(name, "wrong", why, total)
    yield made("sum_equal_neighbours_once", "wrong", "of equal neighbours one counts", _equal_once, op="sum")
    yield whole("mean", "pair_averages", "wrong", "averages of pairs, the odd one out its own", _pair_averages)
    yield made("backward_uneven_ranks", "wrong", "a mean of means over ranks that are not equally long", _uneven_ranks, op="backward")
    for op, name, why, f in (
        ("softmax", "last_not_rescaled", "the last block does not scale the sum anew", _last_not_rescaled),
        ("softmax", "zeros_in_sum", "columns filled with 0 up to 16 counted", _zeros_in_sum),
        ("layer_norm", "within_blocks", "blocks merged without the distance of their means", _within_blocks),
        ("rms_norm", "two_groups", "the halves of a row each by its own root", _two_groups)):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "tanh_beyond_two", "the tanh form beyond 2", _tanh_beyond_two),
        ("tanh", "short_fraction", "a quotient of two polynomials of degree 7 and 6", _short_fraction)):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
