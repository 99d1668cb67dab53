"""Fresh, a fifth set: kernels that go wrong, or another way, in few rows or few elements, beside honest forms nobody wrote (g_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import parts_of, tree, two_sum_in
from fresh import _norm, _rms, _softmax, _tree_rows
from fresh_fourth import E4M3, INSIDE, LOG2E, OTHER, PLAIN, _deviated, _inverse, _or_plain, _unit
from heldout_tools import ALL, F32, add32, blockwise, good, in_turn, terms, under, words
from ops import _ERFC
from rounding import add_odd, bfloat16, float16, float32 as r, rounding

SUMMED = {"in": {"x": "as_is"}}
TWO_LOG2E = (r(np.float64(1.4426950408889634)), r(np.float64(1.4426950408889634) - r(np.float64(1.4426950408889634))))
tf32 = rounding("tf32")


made, recipe, chain, whole = under("g_")


def fma(a, b, c):
    return r(add_odd(a * b, np.broadcast_to(c, np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c)))))


def _every(rows, step, which):
    """A column that is true for one row in `step`."""
    return (np.arange(rows) % step == which)[:, None]


def _bit_reversed(count):
    bits = max(1, (count - 1).bit_length())
    return [int(f"{at:0{bits}b}"[::-1], 2) for at in range(2**bits)]


def _reversed_tree(x):
    """Columns in bit-reversed order (zeros up to a power of two), then a tree of neighbours."""
    order = _bit_reversed(x.shape[1])
    return tree(np.pad(x, ((0, 0), (0, len(order) - x.shape[1])))[:, order].T[:, :, None])


def _rising(x):
    """From the smallest of a row to its largest."""
    return in_turn(np.sort(np.abs(x), axis=1).T[:, :, None])


# honest sums
def _serpentine(a, b):
    """Even columns walk K forwards, odd ones backwards; fused."""
    t = terms(a, b)
    return np.where(np.arange(b.shape[1]) % 2 == 0, in_turn(t), in_turn(t[::-1]))


def _halves_of_12(a, b):
    """Operands as two numbers of 12 bits: their products are exact; four sums, the faint ones first."""
    n = rounding("p12")
    usual = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)[None, :]
    (x, dx), (w, dw) = ((n(v), v - n(v)) for v in (np.where(np.isfinite(each), each, 0.0) for each in (a, b)))
    y = add32(add32(good(dx, dw), add32(good(x, dw), good(dx, w))), good(x, w))
    return np.where(usual & np.isfinite(y), y, good(a, b))


def _dot2(a, b, bias):
    """Ogita's Dot2 from the bias on: what fused steps and two-sums leave over, summed beside it."""
    t = terms(a, b)
    s, lost = np.broadcast_to(bias, t.shape[1:]), np.zeros(t.shape[1:])
    for each in t:
        p = r(each)
        s, error = two_sum_in(s, p)
        lost = r(lost + r(error + np.where(np.isfinite(p), each - p, 0.0)))
    y = add32(s, lost)
    return np.where(np.isfinite(y), y, in_turn(np.concatenate([t, np.broadcast_to(bias, (1, *t.shape[1:]))])))


def _butterfly(a, b):
    """Eight ranks, joined by halving distances: 0 and 4, 2 and 6, 1 and 5, 3 and 7, and so on."""
    parts = parts_of(a, b, 8, lambda x, w: in_turn(terms(x, w)))
    parts = np.concatenate([parts, np.zeros((8 - len(parts), *parts.shape[1:]))])
    return tree(parts[_bit_reversed(8)])


def _largest_with_smallest(a, b):
    """Terms by size; the largest goes with the smallest, and so inwards; the pairs from the faintest on."""
    t = np.sort(terms(a, b), axis=0)
    t = np.take_along_axis(t, np.argsort(np.abs(t), axis=0, kind="stable"), axis=0)
    half = len(t) // 2
    pairs = add32(t[:half], t[::-1][:half])
    return in_turn(np.concatenate([t[half:len(t) - half], pairs[::-1]]))


def _extracted(a, b):
    """Rump's extraction: what lies on the grid of a large number is added without error, the rest in turn."""
    t = terms(a, b)
    top = np.where(np.isfinite(t), np.abs(t), 0.0).max(axis=0)
    sigma = np.where(top > 0, 2.0**(np.frexp(top)[1] + len(t).bit_length() + 1.0), 1.0)
    high = r(r(sigma + t) - sigma)
    return _or_plain(add32(in_turn(high), in_turn(r(t - high))), a, b)


def _two_part_reciprocal(a, b, bias):
    """The sum times 1/n as two float32 numbers, fused."""
    s, k = r(good(a, b)), a.shape[1]
    high = r(1 / k)
    low = np.where(np.isfinite(s), r(s * r(1 / k - high)), 0.0)
    return fma(s, high, low)


def honest_sums():
    for name, why, total, truth, inputs in (
        ("serpentine", "even columns walk K forwards, odd ones backwards", _serpentine, PLAIN, ALL),
        ("halves_of_12", "operands as two numbers of 12 bits, four sums", _halves_of_12, INSIDE, F32)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    yield whole("linear", "dot2", "honest", "Dot2 of fused steps and two-sums, from the bias on", _dot2, truth=INSIDE)
    yield made("backward_butterfly", "honest", "eight ranks by halving distances", _butterfly, op="backward",
               truth=words("as_is", acc="float32", op="backward"))
    yield made("sum_largest_with_smallest", "honest", "the largest with the smallest", _largest_with_smallest, op="sum",
               truth=words("as_is", acc="float32", op="sum"))
    yield made("sum_extracted", "honest", "Rump's extraction of high parts", _extracted, op="sum", truth=SUMMED)
    yield whole("mean", "two_part_reciprocal", "honest", "times 1/n as two float32 numbers", _two_part_reciprocal, truth=SUMMED)


# honest chains
def _exp_two_parts(d):
    """2^(d log2 e) with log2 e as two float32 numbers, the fraction by fused steps."""
    high, low = TWO_LOG2E
    d = np.maximum(d, -160.0)
    n = np.rint(r(d * high))
    return r(r(np.exp2(fma(d, low, fma(d, high, -n)))) * 2.0**n)


def _eighth_power(d):
    """The eighth power of e^(d/8), in float64."""
    e = np.exp(d / 8)
    for _ in range(3):
        e = e * e
    return r(e)


def _one_added_last(x, w, bias, eps):
    """The largest element's exponential is 1, and is added after all the others."""
    at = x.argmax(axis=1)[:, None]
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    one = np.take_along_axis(e, at, axis=1)
    others = e.copy()
    np.put_along_axis(others, at, 0.0, axis=1)
    return r(e / add32(_rising(others), one))


def _welford_pairs(x, w, bias, eps):
    """Welford's recurrence, two columns at a time."""
    mean = squares = None
    for at in range(0, x.shape[1], 2):
        part = x[:, at:at + 2]
        if part.shape[1] == 2:
            one, two = part[:, :1], part[:, 1:]
            middle, step = r(one + r(0.5 * r(two - one))), r(two - one)
            inner = r(0.5 * r(step * step))
        else:
            middle, inner = part, np.zeros_like(part)
        count = part.shape[1]
        if at == 0:
            mean, squares = middle, inner
            continue
        d = r(middle - mean)
        mean = add32(mean, r(d * r(count / (at + count))))
        squares = add32(squares, add32(inner, r(r(d * d) * r(at * count / (at + count)))))
    return _deviated(x, mean, _inverse(r(r(squares / x.shape[1]) + eps)), w, bias)


def _halley(v):
    """8 bits of an inverse root, two steps of third order and one of second, residuals fused."""
    usual = np.isfinite(v) & (v > 0)
    near = np.where(usual, v, 1.0)
    y = rounding("p8")(1 / np.sqrt(near))
    for third in (0.375, 0.375, 0.0):
        left = fma(-r(near * y), y, 1.0)
        y = fma(r(y * left), r(0.5 + r(third * left)), y)
    return np.where(usual, y, 1 / np.sqrt(v))


def _bit_reversed_norm(x, w, bias, eps):
    """Both sums by trees of bit-reversed columns; the affine step is fused."""
    k = x.shape[1]
    d = r(x - r(_reversed_tree(x) / k))
    return fma(r(d * _inverse(r(r(_reversed_tree(r(d * d)) / k) + eps))), w, bias)


def _squares_twofold(x, w, bias, eps):
    """Squares as fused pairs, summed by two-sums."""
    s = lost = np.zeros((len(x), 1))
    for column in x.T:
        exact = column[:, None]**2
        p = r(exact)
        s, error = two_sum_in(s, p)
        lost = r(lost + r(error + np.where(np.isfinite(p), exact - p, 0.0)))
    total = np.where(np.isfinite(s), add32(s, lost), s)
    return r(r(x * _inverse(r(r(total / x.shape[1]) + eps))) * w)


def _goldschmidt(v):
    """13 bits of an inverse root and two of Goldschmidt's steps for root and half the inverse."""
    usual = np.isfinite(v) & (v > 0)
    near = np.where(usual, v, 1.0)
    y = rounding("p13")(1 / np.sqrt(near))
    root, half = r(near * y), r(0.5 * y)
    left = fma(-root, half, 0.5)
    half = fma(half, left, half)
    y = r(2 * half)
    y = fma(r(0.5 * y), fma(-r(near * y), y, 1.0), y)
    return np.where(usual, y, 1 / np.sqrt(v))


def _mills(x):
    """A series below 2.5, the continued fraction of Mills' ratio beyond; in float64."""
    size = np.abs(x)
    near = np.where(size < 2.5, x, 0.0)
    part = total = near
    for odd in range(3, 81, 2):
        part = part * near * near / odd
        total = total + part
    inner = near * (0.5 + total * np.exp(-near * near / 2) * 0.3989422804014327)
    far = np.where(size < 2.5, 3.0, size)
    fraction = far
    for step in range(80, 0, -1):
        fraction = far + step / fraction
    tail = np.exp(-far * far / 2) * 0.3989422804014327 / fraction
    outer = np.where(x > 0, x - far * tail, -far * np.where(tail > 0, tail, 0.0))
    return r(np.where(size < 2.5, inner, np.where(np.isposinf(x), x, np.where(np.isneginf(x), x * 0, outer))))


def _gelu_relu_less(x):
    """The positive part of x, less |x| times the tail."""
    size = np.abs(x)
    tail = r(size * r(0.5 * r(_ERFC(r(size * 0.7071067811865476)))))
    return np.where(np.isposinf(x), x, r(np.maximum(x, 0.0) - tail))


def _silu_relu_less(x):
    """The positive part of x, less |x| / (1 + e^|x|)."""
    size = np.abs(x)
    return np.where(np.isposinf(x), x, r(np.maximum(x, 0.0) - r(size / r(1 + r(np.exp(size))))))


def _doubled(x):
    """A series at x/16 and four doublings, 2 t / (1 + t^2), in float64."""
    y = np.clip(x, -24.0, 24.0) / 16
    z = y * y
    near = np.where(np.abs(y) < 0.125, z, 0.0)
    t = y * (1 + near * (-1 / 3 + near * (2 / 15 + near * (-17 / 315 + near * (62 / 2835 - near * 1382 / 155925)))))
    t = np.where(np.abs(y) < 0.125, t, np.sinh(y) / np.cosh(y))
    for _ in range(4):
        t = 2 * t / (1 + t * t)
    return r(t)


def honest_chains():
    for op, name, why, f in (
        ("softmax", "log2e_two_parts", "2^x with log2 e as two float32 numbers", _softmax(exp=_exp_two_parts)),
        ("softmax", "eighth_power", "the eighth power of e^(d/8), in float64", _softmax(exp=_eighth_power, total=_reversed_tree)),
        ("softmax", "one_added_last", "the largest element's 1 after all others", _one_added_last),
        ("layer_norm", "welford_pairs", "Welford's recurrence, two columns at a time", _welford_pairs),
        ("layer_norm", "rsqrt8_halley", "an inverse root of 8 bits, steps of third order", _norm(rsqrt=_halley)),
        ("layer_norm", "bit_reversed", "trees of bit-reversed columns, fused at the end", _bit_reversed_norm),
        ("rms_norm", "squares_twofold", "squares as fused pairs, two-sums", _squares_twofold),
        ("rms_norm", "goldschmidt", "Goldschmidt's steps", _rms(sums=_rising, rsqrt=_goldschmidt))):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "mills", "the continued fraction of Mills' ratio", _mills),
        ("gelu", "relu_less", "the positive part less |x| times the tail", _gelu_relu_less),
        ("silu", "relu_less", "the positive part less |x| / (1 + e^|x|)", _silu_relu_less),
        ("tanh", "doubled", "a series at x/16 and four doublings", _doubled)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow
def _hopper_fp8(a, b):
    """e4m3 in blocks of 128 with float32 scales (per row of the first operand, per square of the second). 32 products and the
    accumulator are aligned to the largest exponent and cut at 13 fraction bits, their sum to 14 bits; 128 terms are promoted."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], 128):
        x, w = a[:, at:at + 128], b[at:at + 128]
        s = _unit(x, 1, 448.0)
        t = np.concatenate([np.broadcast_to(_unit(_unit(w[:, left:left + 128], 0, 1.0), 1, 448.0), (1, w[:, left:left + 128].shape[1]))
                            for left in range(0, w.shape[1], 128)], axis=1)
        x, w = E4M3(np.clip(r(x / s), -448, 448)), E4M3(np.clip(r(w / t), -448, 448))
        acc = np.zeros_like(y)
        for step in range(0, x.shape[1], 32):
            products = terms(x[:, step:step + 32], w[step:step + 32])
            exponents = terms(2.0**(np.frexp(x[:, step:step + 32])[1] - 1), 2.0**(np.frexp(w[step:step + 32])[1] - 1))
            top = np.maximum(np.where(products != 0, exponents, 0.0).max(axis=0), np.where(acc != 0, 2.0**(np.frexp(acc)[1] - 1), 0.0))
            unit = np.where(top > 0, top, 1.0) * 2.0**-13
            acc = rounding("p14_rz")((np.trunc(products / unit).sum(axis=0) + np.trunc(acc / unit)) * unit)
        y = add32(y, r(r(acc * s) * t))
    return np.where(np.isfinite(y), y, good(a, b))


def _last_tile_two_pieces(a, b):
    """Three pieces of bfloat16 and nine products, but for the last tile of 16 along K: two pieces and three products."""
    cut_at = (a.shape[1] - 1) // 16 * 16
    x, w = a[:, cut_at:], b[cut_at:]
    usual = np.isfinite(x).all(axis=1)[:, None] & np.isfinite(w).all(axis=0)[None, :]
    (high, low), (top, rest) = ((bfloat16(v), bfloat16(v - bfloat16(v))) for v in (np.where(np.isfinite(e), e, 0.0) for e in (x, w)))
    tail = add32(add32(good(low, top), good(high, rest)), good(high, top))
    tail = np.where(usual, tail, good(x, w))
    return add32(good(a[:, :cut_at], b[:cut_at]), tail) if cut_at else tail


def _small_rows_tf32(a, b):
    """Rows of the first operand whose largest size is below 2 go through tf32, as "small enough"."""
    small = (np.abs(a) < 2).all(axis=1, keepdims=True)
    return good(np.where(small, tf32(a), a), b)


def _low_blocks(a, b):
    """Blocks of 16 of the first operand under a power of two, as float16 numbers of at most 2^-10: small ones lose bits."""
    def change(v):
        scale = np.where(np.isfinite(v), np.abs(v), 0.0).max(axis=-1, keepdims=True)
        scale = np.where(scale > 0, 2.0**(np.frexp(scale)[1] + 10.0), 1.0)
        return np.where(np.isfinite(v), float16(v / scale) * scale, v)

    return good(blockwise(a, 1, 16, change), b)


def _int16_blocks(a, b):
    """16-bit integers with a float32 scale per 32 along K, integer sums, float32 between blocks."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], 32):
        x, w = a[:, at:at + 32], b[at:at + 32]
        s, t = _unit(x, 1, 32767.0), _unit(w, 0, 32767.0)
        y = add32(y, r(r(r((np.clip(np.rint(x / s), -32767, 32767) @ np.clip(np.rint(w / t), -32767, 32767))) * s) * t))
    return np.where(np.isfinite(y), y, good(a, b))


def _eighth_column(a, b):
    """Every eighth column is rounded to 20 bits before it is stored."""
    y = good(a, b)
    return np.where(np.arange(y.shape[1]) % 8 == 7, rounding("p20")(y), y)


def _flushed(total_as, limit):
    """A sum that has reached `limit` is added into a total of another format, and begins anew."""
    def total(a, b):
        y = kept = np.zeros((a.shape[0], b.shape[1]))
        for each in terms(a, b):
            y = add32(y, each)
            full = np.abs(y) >= limit
            kept, y = np.where(full, total_as(add_odd(kept, y)), kept), np.where(full, 0.0, y)
        return add32(kept, y)

    return total


def _corner(a, b):
    """The last corner of 4 by 4, a tile of its own, is computed in tf32."""
    rows, columns = np.indices((a.shape[0], b.shape[1]))
    return np.where((rows >= a.shape[0] - 4) & (columns >= b.shape[1] - 4), good(tf32(a), tf32(b)), good(a, b))


def _row_by_atomics(a, b):
    """Row 5 of 16 is split along K in three, the parts joined in bfloat16; all others are whole."""
    parts = parts_of(a, b, 3, good)
    return np.where(_every(a.shape[0], 16, 5), in_turn(bfloat16(parts), lambda s, t: bfloat16(add_odd(s, t))), good(a, b))


def _small_from_bfloat16(a, b, bias):
    """Results below 1/16 are those of bfloat16 operands, which a guard of another kernel computed."""
    y, other = (add32(r(good(x, w)), bias) for x, w in ((a, b), (bfloat16(a), bfloat16(b))))
    return np.where(np.abs(y) < 0.0625, other, y)


def _last_rank_bfloat16(a, b):
    """Six ranks; the last one sends its part in bfloat16."""
    parts = parts_of(a, b, 6, good)
    return in_turn(np.concatenate([parts[:-1], bfloat16(parts[-1:])]))


def _eighth_lane_float16(a, b):
    """Eight lanes stride along the row; the last one is a float16 accumulator."""
    lanes = [in_turn(terms(a[:, at::8], b[at::8]), add32 if at < 7 else lambda s, t: float16(add_odd(s, t)))
             for at in range(min(8, a.shape[1]))]
    return tree(np.stack(lanes))


def _large_sum_half(a, b, bias):
    """A sum beyond 12 is divided in float16."""
    s = r(good(a, b))
    return np.where(np.abs(s) > 12, float16(float16(s) / a.shape[1]), r(s / a.shape[1]))


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("hopper_fp8_block_128", "e4m3 in blocks of 128, 32 products cut at 13 fraction bits, promoted", _hopper_fp8, words("other"), ALL),
        ("last_tile_two_pieces", "three bfloat16 pieces, two in the last tile of K", _last_tile_two_pieces, {}, F32),
        ("small_rows_tf32", "rows below 2 in tf32", _small_rows_tf32, {}, F32),
        ("float16_low_blocks", "blocks of float16 numbers of at most 2^-10", _low_blocks, {}, ("float32", "float16")),
        ("int16_blocks", "16-bit integers in blocks of 32", _int16_blocks, OTHER, F32),
        ("eighth_column_p20", "every eighth column rounded to 20 bits before the store", _eighth_column, INSIDE, F32),
        ("flushed_at_8_bfloat16", "sums of 8 go into a bfloat16 total", _flushed(bfloat16, 8.0), INSIDE, ALL),
        ("corner_tf32", "the last 4 by 4 in tf32", _corner, {}, F32),
        ("row_five_by_atomics", "row 5 of 16 from three parts in bfloat16", _row_by_atomics, INSIDE, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield whole("linear", "small_from_bfloat16", "narrow", "results below 1/16 from bfloat16 operands", _small_from_bfloat16,
                inputs=("float32", "float16"))
    yield made("backward_last_rank_bfloat16", "narrow", "the last of six ranks sends bfloat16", _last_rank_bfloat16, op="backward")
    yield made("sum_flushed_at_4_float16", "narrow", "sums of 4 go into a float16 total", _flushed(float16, 4.0), op="sum", truth=SUMMED)
    yield made("sum_row_five_p18", "narrow", "row 5 of 16 in 18 bits", lambda a, b: np.where(
        _every(len(a), 16, 5), in_turn(terms(a, b), lambda s, t: rounding("p18")(add_odd(s, t))), good(a, b)), op="sum", truth=SUMMED)
    yield made("sum_eighth_lane_float16", "narrow", "the last of eight lanes in float16", _eighth_lane_float16, op="sum", truth=SUMMED)
    yield whole("mean", "large_sum_float16", "narrow", "a sum beyond 12 divided in float16", _large_sum_half)


def _small_maximum(x, w, bias, eps):
    """Rows whose maximum is below 1.75 skip it, and keep exponentials in float16."""
    top = np.max(x, axis=1, keepdims=True)
    e = r(np.exp(r(x - top)))
    short = float16(np.exp(np.minimum(x, 2.0)))
    return np.where(top < 1.75, r(short / _tree_rows(short)), r(e / _tree_rows(e)))


def _last_element(d):
    """The last column's exponential in bfloat16."""
    return np.where(np.arange(d.shape[1]) == d.shape[1] - 1, bfloat16(np.exp(d)), r(np.exp(d)))


def _schraudolph_far(d):
    """Below -8 the exponential by bits of a float32."""
    bits = np.clip(np.trunc(2.0**23 * (np.where(np.isfinite(d), d, -200.0) * 1.4426950408889634 + 127 - 0.0450466)), 0, 2.0**30)
    return np.where(d < -8, bits.astype(np.int32).view(np.float32).astype(np.float64), r(np.exp(d)))


def _large_total(e):
    total = _tree_rows(e)
    return np.where(total > 12, float16(total), total)


def _magic(v, steps):
    """The fast inverse root with so many steps."""
    usual = np.isfinite(v) & (v > 0)
    near = np.where(usual, v, 1.0).astype(np.float32)
    y = (np.int32(0x5f3759df) - (near.view(np.int32) >> 1)).view(np.float32).astype(np.float64)
    for _ in range(steps):
        y = r(y * r(1.5 - r(r(r(0.5 * near) * y) * y)))
    return np.where(usual, y, 1 / np.sqrt(v))


def _last_four_float16(x, w, bias):
    y = add32(r(x * w), bias)
    return np.where(np.arange(y.shape[1]) >= y.shape[1] - 4, float16(float16(x * w) + bias), y)


def _eighth_row(v):
    return np.where(_every(len(v), 8, 7), rounding("p16")(_inverse(v)), _inverse(v))


def _large_squares(x, w, bias, eps):
    squares = np.where(np.abs(x) > 2.5, rounding("p12")(x * x), r(x * x))
    return r(r(x * _inverse(r(r(_tree_rows(squares) / x.shape[1]) + eps))) * w)


def _row_five_p14(x):
    n = rounding("p14")
    return np.where(_every(len(x), 16, 5), tree(x.T[:, :, None], lambda s, t: n(add_odd(s, t))), _tree_rows(x))


def _gelu_exact(x):
    return np.where(np.isneginf(x), x * 0, r(0.5 * x * _ERFC(-x * 0.7071067811865476)))


def _table_between(x):
    """Between 2 and 2.5 straight lines between 17 float32 values."""
    at = np.linspace(2, 2.5, 17)
    inside = (x >= 2) & (x < 2.5)
    return np.where(inside, r(np.interp(np.where(inside, x, 2.0), at, _gelu_exact(at))), _gelu_exact(x))


def _silu_far(x):
    """Beyond 5 in size the exponential is a float16."""
    e = np.where(np.abs(x) > 5, float16(np.exp(-x)), r(np.exp(-x)))
    return r(x / r(1 + e))


def _silu_columns(x):
    y = r(x / r(1 + r(np.exp(-x))))
    return np.where(np.arange(y.shape[1]) % 8 == 3, rounding("p18")(y), y)


def _tanh_rows(x):
    """Rows that hold a size beyond 3 take a float16 path."""
    far = (np.abs(x) > 3).any(axis=1, keepdims=True)
    return np.where(far, float16(np.tanh(x)), r(np.tanh(x)))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "small_maximum_float16", "rows with a maximum below 1.75 in float16", _small_maximum),
        ("softmax", "last_element_bfloat16", "the last exponential in bfloat16", _softmax(exp=_last_element)),
        ("softmax", "schraudolph_below_8", "exponentials below -8 by bits", _softmax(exp=_schraudolph_far)),
        ("softmax", "total_beyond_12_float16", "a sum beyond 12 kept in float16", _softmax(total=_large_total)),
        ("layer_norm", "rstd_row_seven_p16", "the inverse deviation of each eighth row in 16 bits", _norm(rsqrt=_eighth_row)),
        ("layer_norm", "quake_short_above", "three steps of the fast inverse root, two where the variance is above 1.25", _norm(
            rsqrt=lambda v: np.where(v > 1.25, _magic(v, 2), _magic(v, 3)))),
        ("layer_norm", "last_four_float16", "weight and bias of the last four columns in float16", _norm(affine=_last_four_float16)),
        ("rms_norm", "large_squares_p12", "squares of what is beyond 2.5 in 12 bits", _large_squares),
        ("rms_norm", "eps_float16", "eps in float16", _rms(eps_of=float16)),
        ("rms_norm", "row_five_p14", "the sum of row 5 of 16 in 14 bits", _rms(sums=_row_five_p14))):
        yield chain(op, name, "narrow", why, f)
    for op, name, why, f in (
        ("gelu", "table_between", "straight lines from 2 to 2.5", _table_between),
        ("silu", "exp_beyond_5_float16", "the exponential in float16 beyond 5", _silu_far),
        ("silu", "column_three_p18", "one column in eight through 18 bits", _silu_columns),
        ("tanh", "rows_beyond_3_float16", "rows that hold a size beyond 3 in float16", _tanh_rows)):
        inputs = F32 if name == "column_three_p18" else ALL
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x), inputs)


# wrong
def _first_of_row_before(a, b):
    """Row 8 begins with the last first element of the row before, a register that was not loaded anew."""
    a = a.copy()
    a[8:9, 0] = a[7:8, 0][:len(a[8:9])]
    return good(a, b)


def _moved_back(a, b):
    """Tiles of 16; the last one is moved back to be whole, and what it shares with the one before counts twice."""
    k = a.shape[1]
    rows = [slice(at, at + 16) for at in range(0, k - k % 16, 16)] + ([slice(max(0, k - 16), k)] if k % 16 else [])
    return in_turn(np.stack([good(a[:, at], b[at]) for at in rows]))


def _merged_late(a, b, bias):
    """Means of tiles of 32, merged by counts of which the total is one too high from the second on."""
    mean, count = None, 0
    for at in range(0, a.shape[1], 32):
        x = a[:, at:at + 32]
        own, n = r(good(x, b[at:at + 32]) / x.shape[1]), x.shape[1]
        count += n
        mean = own if mean is None else add32(mean, r(r(own - mean) * r(n / (count + 1))))
    return mean


def _kept_reciprocal(x, w, bias, eps):
    """A reciprocal is kept as long as the next row's sum lies within 2^-7 of the one that it was made of."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    total = _tree_rows(e)
    used, kept = total.copy(), None
    for at in range(len(x)):
        if kept is None or not abs(total[at, 0] - kept) < 2.0**-7 * kept:
            kept = total[at, 0]
        used[at, 0] = kept
    return r(e * r(1 / used))


def _equal_maximum(x, w, bias, eps):
    """A row whose maximum is that of the row before takes that row's sum too."""
    top = np.max(x, axis=1, keepdims=True)
    e = r(np.exp(r(x - top)))
    total = _tree_rows(e)
    for at in range(1, len(x)):
        if top[at, 0] == top[at - 1, 0]:
            total[at] = total[at - 1]
    return r(e / total)


def _wrong_digit(d):
    """2^f by a polynomial of degree 5 whose fourth coefficient is 0.0095181, not 0.0096181."""
    t = r(np.maximum(d, -160.0) * LOG2E)
    n = np.rint(np.where(np.isfinite(t), t, 0.0))
    f = r(t - n)
    y = np.full_like(f, r(np.float64(0.0013333558)))
    for c in (0.0095181291, 0.0555041087, 0.2402265070, 0.6931471806, 1.0):
        y = fma(y, f, r(np.float64(c)))
    return r(y * 2.0**n)


def _small_mean(s, k):
    """A mean below 2^-6 is taken for none."""
    mean = r(s / k)
    return np.where(np.abs(mean) < 2.0**-6, 0.0, mean)


def _last_count(x, w, bias, eps):
    """Blocks of 32 merged by their means and squares; the last one counts one too many if it is short."""
    mean, squares, count = None, None, 0
    for at in range(0, x.shape[1], 32):
        part = x[:, at:at + 32]
        own = r(_tree_rows(part) / part.shape[1])
        inner = _tree_rows(r(r(part - own)**2))
        n = part.shape[1] + (0 < at and part.shape[1] < 32)
        if mean is None:
            mean, squares, count = own, inner, n
            continue
        step = r(own - mean)
        squares = add32(add32(squares, inner), r(r(step * step) * r(count * n / (count + n))))
        mean, count = add32(mean, r(step * r(n / (count + n)))), count + n
    return _deviated(x, mean, _inverse(r(r(squares / x.shape[1]) + eps)), w, bias)


def _not_cleared(x, w, bias, eps):
    """Row 8's sum begins with the last square of row 7."""
    squares = r(x * x)
    total = _tree_rows(squares)
    total[8:9] = add32(total[8:9], squares[7:8, -1:][:len(total[8:9])])
    return r(r(x * _inverse(r(r(total / x.shape[1]) + eps))) * w)


def _no_cube(x):
    """x/2 + x^2 / sqrt(2 pi) below 1/16."""
    return np.where(np.abs(x) < 0.0625, r(x * r(0.5 + r(0.3989422804014327 * x))), _gelu_exact(x))


def _tanh_digit(x):
    """Cephes' polynomial below 0.625 with 0.133341422 for 0.133314422."""
    z = r(x * x)
    y = np.full_like(x, r(np.float64(-5.70498872745e-3)))
    for c in (2.06390887954e-2, -5.37397155531e-2, 1.33341422036e-1, -3.33332819422e-1):
        y = fma(y, z, r(np.float64(c)))
    return np.where(np.abs(x) < 0.625, fma(r(y * z), x, x), r(np.tanh(x)))


def wrong():
    yield made("row_eight_first_stale", "wrong", "row 8 begins with the first element of row 7", _first_of_row_before)
    yield made("sum_last_tile_moved_back", "wrong", "a last tile moved back counts terms twice", _moved_back, op="sum")
    yield whole("mean", "merged_count_late", "wrong", "means of 32 merged by a count one too high", _merged_late)
    for op, name, why, f in (
        ("softmax", "reciprocal_kept_near", "a reciprocal kept while sums lie within 2^-7", _kept_reciprocal),
        ("softmax", "sum_of_equal_maximum", "the sum of the row before where the maxima are equal", _equal_maximum),
        ("softmax", "exp_wrong_digit", "a polynomial with one wrong digit", _softmax(exp=_wrong_digit)),
        ("layer_norm", "small_mean_skipped", "a mean below 2^-6 taken for none", _norm(mean_of=_small_mean)),
        ("layer_norm", "last_count_one_high", "a short last block counts one too many", _last_count),
        ("layer_norm", "variance_at_least_2m14", "a variance of at least 2^-14", _norm(variance_as=lambda v: np.maximum(v, 2.0**-14))),
        ("rms_norm", "row_eight_not_cleared", "row 8 begins with the last square of row 7", _not_cleared)):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "no_cube_near_zero", "no higher term below 1/16", _no_cube),
        ("tanh", "wrong_digit", "Cephes' polynomial with two digits exchanged", _tanh_digit)):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
