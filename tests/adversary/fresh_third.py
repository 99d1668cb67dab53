"""Fresh, a third set: sums by scans, folds and continued launches, seeds with a step of Newton's, tables, and off-by-one bugs (r_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, filled, once, parts_of, tree
from fresh import _norm, _rms, _silu, _softmax, _tree_rows
from heldout_operands import _logarithms, _scaled
from heldout_tools import ALL, F32, add32, adding, good, in_turn, largest, row_sum, terms, under, words
from ops import _ERFC
from products import combined, split
from rounding import add_odd, bfloat16, float32 as r, ranged, rounding

PLAIN = words("as_is", acc="float32")
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}
OTHER = words("other", acc="float32")
FIRST_OTHER = words("other", "as_is", acc="float32")
SECOND_OTHER = words("as_is", "other", acc="float32")
LOG2E = r(np.float64(1.4426950408889634))


made, recipe, chain, whole = under("r_")


# honest sums
def _fibonacci(a, b):
    """Fused chains of 1, 1, 2, 3, 5, 8, ... terms, joined as a tree."""
    t, at, size, after, parts = terms(a, b), 0, 1, 1, []
    while at < len(t):
        parts.append(in_turn(t[at:at + size]))
        at, size, after = at + size, after, size + after
    return tree(np.stack(parts))


def _triples(a, b):
    """The last of every three terms is fused into the sum, the first two are added beside it by one product and one fused step."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for piece in cut(terms(a, b), 3):
        y = add32(y, piece[-1])
        if len(piece) > 1:
            y = add32(y, add32(r(piece[0]), piece[1]) if len(piece) == 3 else r(piece[0]))
    return y


def _tail_in_double(a, b):
    """Whole fours of K in float32, what is left over added to it in float64."""
    main = a.shape[1] // 4 * 4
    y = good(a[:, :main], b[:main]) if main else np.zeros((a.shape[0], b.shape[1]))
    for each in terms(a[:, main:], b[main:]):
        y = y + each
    return y


def _refined(a, b):
    """A float32 sum, then what it lacks: the residual summed in float64 and added."""
    y = good(a, b)
    rest = -y
    for each in terms(a, b):
        rest = rest + each
    return np.where(np.isfinite(y), add32(y, r(np.where(np.isfinite(y), rest, 0.0))), y)


def _thirds(x):
    """x as three numbers of 8 bits, cut, without an error."""
    cut8, pieces = rounding("p8_rz"), []
    for _ in range(3):
        pieces.append(cut8(x))
        x = x - pieces[-1]
    return pieces


def _nine_products(a, b):
    """Operands in three pieces each, which hold them exactly; the sums of all nine products in float64, the smallest first."""
    usual = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)[None, :]
    xs, ws = _thirds(np.where(np.isfinite(a), a, 0.0)), _thirds(np.where(np.isfinite(b), b, 0.0))
    y = np.zeros((a.shape[0], b.shape[1]))
    for i, j in sorted(((i, j) for i in range(3) for j in range(3)), key=lambda ij: (-sum(ij), ij)):
        y = y + in_turn(terms(xs[i], ws[j]), lambda s, t: s + t)
    return np.where(usual, y, good(a, b))


def _three_warps(a, b):
    """96 threads stride along K; shuffles by 16, 8, 4, 2, 1 in every warp, then the warps 1 2 0."""
    lanes = in_turn(filled(r(terms(a, b)), 96))
    warps = [combined(lanes[at:at + 32], "halves", add32) for at in (32, 64, 0)]
    return in_turn(np.stack(warps))


def _continued(a, b):
    """A second launch with beta 1 goes on from the first one's float32 result, without fused steps."""
    half = (a.shape[1] + 1) // 2
    y = good(a[:, :half], b[:half])
    for each in r(terms(a[:, half:], b[half:])):
        y = add32(y, each)
    return y


def _folded(a, b):
    """The first and the last term, the second and the last but one, ...; the pairs in turn."""
    t = terms(a, b)
    half = len(t) // 2
    pairs = add32(t[:half], t[::-1][:half])
    return in_turn(np.concatenate([pairs, t[half:len(t) - half]]))


def _scanned(a, b):
    """The last element of an inclusive scan by doubling steps (Hillis and Steele)."""
    t, step = terms(a, b), 1
    while step < len(t):
        t, step = np.concatenate([t[:step], add32(t[step:], t[:-step])]), 2 * step
    return t[-1]


def _corrected_mean(a, b, bias):
    """A float32 mean, and the mean of what is left when it is taken off, in float64, as R's mean."""
    first = r(good(a, b) / a.shape[1])
    left = (a - np.where(np.isfinite(first), first, 0.0)).sum(axis=1, keepdims=True) / a.shape[1]
    return np.where(np.isfinite(first) & np.isfinite(left), r(first + left), first)


def _bias_in_odd_lane(a, b, bias):
    """Two accumulators, of even and of odd terms; that of the odd ones begins as the bias."""
    lanes = np.stack([np.zeros((a.shape[0], b.shape[1])), np.broadcast_to(bias, (a.shape[0], b.shape[1]))])
    for t in filled(terms(a, b), 2):
        lanes = add32(lanes, t)
    return add32(lanes[0], lanes[1])


def _parts_and_bias_wide(a, b, bias):
    return r(parts_of(a, b, 3, lambda x, w: in_turn(terms(x, w))).sum(axis=0) + bias)


def _sample_pairs(a, b):
    """From the last sample: two at once, one product and one fused step."""
    return in_turn(np.stack([add32(r(piece[0]), piece[1]) if len(piece) == 2 else r(piece[0])
                             for piece in cut(terms(a, b)[::-1], 2)]))


def honest_sums():
    for name, why, total, truth, inputs in (
        ("fibonacci_parts", "chains of 1, 1, 2, 3, 5, 8 terms, joined as a tree", _fibonacci, PLAIN, ALL),
        ("triples", "three terms by two fused steps and a product", _triples, PLAIN, ALL),
        ("tail_in_double", "what 4 leaves over of K in float64", _tail_in_double, INSIDE, ALL),
        ("refined", "a float32 sum and its residual, from float64", _refined, INSIDE, ALL),
        ("nine_products", "operands in three exact pieces, all nine products in float64", _nine_products, INSIDE, ALL),
        ("three_warps", "96 threads, three warps by shuffles, joined 1 2 0", _three_warps, PLAIN, ALL),
        ("continued", "two launches, the second with beta 1", _continued, PLAIN, ALL),
        ("rounded_then_exact", "float32 products, added exactly", lambda a, b: once(list(r(terms(a, b)))),
         words("as_is", prod="float32", acc="exact"), F32)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    plain = words("as_is", acc="float32", op="sum")
    yield made("sum_folded", "honest", "the row folded in the middle, the pairs in turn", _folded, op="sum", truth=plain)
    yield made("sum_scanned", "honest", "the end of a scan by doubling steps", _scanned, op="sum", truth=plain)
    yield whole("mean", "wide_reciprocal", "honest", "a float32 sum times 1/n of float64",
                lambda a, b, bias: r(_scanned(a, b) * (1 / a.shape[1])), truth=words("as_is", acc="float32", op="mean"))
    yield whole("mean", "corrected", "honest", "a mean and, from float64, the mean of what is left", _corrected_mean,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "bias_in_odd_lane", "honest", "of two accumulators the second begins as the bias", _bias_in_odd_lane,
                truth=words("as_is", acc="float32", op="linear"))
    yield whole("linear", "parts_and_bias_wide", "honest", "three float32 parts and the bias added in float64", _parts_and_bias_wide,
                truth=INSIDE)
    yield made("backward_sample_pairs", "honest", "pairs of samples, from the last", _sample_pairs, op="backward",
               truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _off_by_one(y, key):
    """Normal results one float32 up, down or not at all, by the last bits of `key`: a function that is good to an ulp or so."""
    step = np.ascontiguousarray(r(key).astype(np.float32)).view(np.int32) % 3 - 1
    moved = (np.ascontiguousarray(y.astype(np.float32)).view(np.int32) + step).astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(np.isfinite(y) & (np.abs(y) > 2.0**-125) & (np.abs(y) < 2.0**126) & (y != 1), moved, y)


def _online_base2(x, w, bias, eps):
    """Six columns at a time, the sum scaled anew by powers of 2; x less the last maximum, times log2 e."""
    high, total = np.full((len(x), 1), -np.inf), np.zeros((len(x), 1))
    for at in range(0, x.shape[1], 6):
        part = x[:, at:at + 6]
        new = np.maximum(high, part.max(axis=1, keepdims=True))
        scale = r(np.exp2(r(r(high - new) * LOG2E)))
        total = r(add_odd(total * scale, _tree_rows(r(np.exp2(r(r(part - new) * LOG2E))))))
        high = new
    return r(r(np.exp2(r(r(x - high) * LOG2E))) / total)


def _ulp_exp(d):
    return _off_by_one(r(np.exp(d)), d)


def _corrected_quotient(x, w, bias, eps):
    """e times a reciprocal, mended by one fused residual, as a division is done without a divider."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    total = _tree_rows(e)
    inverse = r(1 / total)
    q = r(e * inverse)
    rest = r(add_odd(-q * total, e))
    return r(add_odd(rest * inverse, q))


def _deviated(x, mean, variance, w, bias, eps):
    return add32(r(r(r(x - mean) * r(1 / r(np.sqrt(r(variance + eps))))) * w), bias)


def _merged_blocks(x, w, bias, eps):
    """Blocks of 8 in two passes, each merged into what came before (Chan, Golub and LeVeque)."""
    count, mean, m2 = 0, np.zeros((len(x), 1)), np.zeros((len(x), 1))
    for at in range(0, x.shape[1], 8):
        part = x[:, at:at + 8]
        n = part.shape[1]
        here = r(_tree_rows(part) / n)
        squares = _tree_rows(r(r(part - here)**2))
        if count:
            d, both = r(here - mean), count + n
            m2 = add32(add32(m2, squares), r(r(d * d) * r(count * n / both)))
            mean, count = add32(mean, r(d * r(n / both))), both
        else:
            count, mean, m2 = n, here, squares
    return _deviated(x, mean, r(m2 / x.shape[1]), w, bias, eps)


def _shifted_data(x, w, bias, eps):
    """Sums and squares of x less the row's first element, held in float64."""
    d, k = r(x - x[:, :1]), x.shape[1]
    first, second = d.sum(axis=1, keepdims=True) / k, (d * d).sum(axis=1, keepdims=True) / k
    return _deviated(x, r(x[:, :1] + first), r(second - first * first), w, bias, eps)


def _folded_affine(x, w, bias, eps):
    """(x - mean) (w rstd) + b, the last step fused."""
    k = x.shape[1]
    d = r(x - r(_tree_rows(x) / k))
    scale = r(w * r(1 / r(np.sqrt(r(r(_tree_rows(r(d * d)) / k) + eps)))))
    return r(add_odd(d * scale, np.broadcast_to(bias, d.shape)))


def _ulp_rsqrt(v):
    return _off_by_one(r(1 / np.sqrt(v)), v)


def _wide_squares(x, w, bias, eps):
    """Squares added in float64, the weighted row divided by the root."""
    return r(r(x * w) / r(np.sqrt((x * x).sum(axis=1, keepdims=True) / x.shape[1] + eps)))


def _slassq(x, w, bias, eps):
    """A scale and a sum of squares beside it, as LAPACK's slassq: no square overflows."""
    scale, squares = np.zeros((len(x), 1)), np.ones((len(x), 1))
    for column in np.abs(x).T[:, :, None]:
        grows = column > scale
        with np.errstate(all="ignore"):
            ratio = r(np.where(grows, scale / column, np.where(scale > 0, column / scale, 0.0)))
        squares = np.where(grows, r(1 + r(squares * r(ratio * ratio))), r(squares + r(ratio * ratio)))
        scale = np.maximum(scale, column)
    v = r(r(scale * scale) * r(squares / x.shape[1]))
    v = np.where(np.isfinite(x).all(axis=1, keepdims=True), v, _tree_rows(r(x * x)))
    return r(r(x * r(1 / r(np.sqrt(r(v + eps))))) * w)


def _erfcc(z):
    """Numerical Recipes' erfc, good to 1.2e-7 of itself, in float64."""
    t = 1 / (1 + 0.5 * np.abs(z))
    y = np.zeros_like(t)
    for c in (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223):
        y = y * t + c
    y = t * np.exp(y - z * z)
    return np.where(z < 0, 2 - y, y)


def _tanh_by_addition(x):
    """The addition theorem: float64 values at multiples of 1/16 and a short series for the rest."""
    size = np.minimum(np.abs(x), 12.0)
    at = np.rint(16 * size) / 16
    c = size - at
    z = c * c
    rest = c * (1 - z * (1 / 3 - z * (2 / 15 - z * 17 / 315)))
    known = np.tanh(at)
    return np.copysign(r((known + rest) / (1 + known * rest)), x)


def honest_chains():
    for op, name, why, f in (
        ("softmax", "online_base2", "six columns at a time, scaled anew by powers of 2", _online_base2),
        ("softmax", "exp_one_ulp", "an exponential that may be one float32 off", _softmax(exp=_ulp_exp)),
        ("softmax", "corrected_quotient", "a reciprocal and one fused residual", _corrected_quotient),
        ("layer_norm", "merged_blocks", "blocks of 8 in two passes, merged in turn", _merged_blocks),
        ("layer_norm", "shifted_data", "sums of x less its first, in float64", _shifted_data),
        ("layer_norm", "folded_affine", "(x - mean) (w rstd) + b, fused", _folded_affine),
        ("layer_norm", "rsqrt_one_ulp", "an inverse root that may be one float32 off", _norm(rsqrt=_ulp_rsqrt)),
        ("rms_norm", "wide_squares", "squares added in float64, then a division", _wide_squares),
        ("rms_norm", "slassq", "a scale and squares beside it, as LAPACK", _slassq)):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "erfcc", "Numerical Recipes' erfc, in float64", lambda x: r(0.5 * x * _erfcc(-x * 0.7071067811865476))),
        ("silu", "expm1", "x / (2 + expm1(-x))", lambda x: r(x / r(2 + r(np.expm1(-x))))),
        ("tanh", "addition", "the addition theorem at multiples of 1/16", _tanh_by_addition)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow
def _square_missing(a, b):
    """Three pieces of bfloat16 each; of the six products that matter the middle one's square is missing."""
    xs, ws = split(a, 3, "bf16"), split(b, 3, "bf16")
    return in_turn(np.stack([good(xs[i], ws[j]) for i, j in ((2, 0), (0, 2), (1, 0), (0, 1), (0, 0))]))


def _square_blocks(x, side):
    """e4m3 under one float32 scale for each block of side by side."""
    (k, n), (i, j) = x.shape, (-(-x.shape[0] // side), -(-x.shape[1] // side))
    blocks = np.pad(x, ((0, i * side - k), (0, j * side - n))).reshape(i, side, j, side).transpose(0, 2, 1, 3).reshape(i, j, side * side)
    scale = r(largest(blocks) / 448.0)
    scale = np.where(scale > 0, scale, 1.0)
    near = np.where(np.isfinite(blocks), ranged(4, low=-6)(np.clip(blocks / scale, -448, 448)) * scale, blocks)
    return near.reshape(i, j, side, side).transpose(0, 2, 1, 3).reshape(i * side, j * side)[:k, :n]


def _deepseek(a, b):
    return good(_scaled(ranged(4, low=-6), 448.0, 1, 16, "float32")(a), _square_blocks(b, 8))


def _int8_drawn(a, b):
    scale = r(largest(a, 1) / 127.0)
    scale = np.where(scale > 0, scale, 1.0)
    drawn = np.clip(np.floor(a / scale + np.random.default_rng(314).random(a.shape)), -127, 127) * scale
    return good(np.where(np.isfinite(a), drawn, a), b)


def _one_tile_first(a, b):
    a = a.copy()
    a[4:12, 8:16] = rounding("p14")(a[4:12, 8:16])
    return good(a, b)


def _tail_p18(a, b):
    main = a.shape[1] // 8 * 8
    tail = in_turn(terms(a[:, main:], b[main:]), adding("p18"))
    return add32(good(a[:, :main], b[:main]), tail) if main else tail


def _spilled_pair(a, b):
    """Between tiles of 16 the accumulator lies in memory as two bfloat16 numbers."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for at, piece in enumerate(cut(terms(a, b), 16)):
        if at:
            high = bfloat16(y)
            y = high + bfloat16(np.where(np.isfinite(high), y - high, 0.0))
        for each in piece:
            y = add32(y, each)
    return y


def _quads(a, b):
    """Four products added exactly and cut to 16 bits, then added in float32."""
    p16 = rounding("p16_rz")
    return in_turn(np.stack([p16(once(list(piece))) for piece in cut(terms(a, b), 4)]))


def _short_exponent(a, b):
    """An accumulator of 18 bits with the exponents of float16."""
    n = ranged(18, low=-14, high=15)
    return in_turn(terms(a, b), lambda s, t: n(add_odd(s, t)))


def _pairs_p19(a, b):
    n = rounding("p19")
    return in_turn(np.stack([n(add_odd(piece[0], piece[1])) if len(piece) == 2 else piece[0] for piece in cut(terms(a, b), 2)]))


def _weight_int6(a, b):
    scale = bfloat16(largest(b, 0) / 31.0)
    scale = np.where(scale > 0, scale, 1.0)
    return good(a, np.where(np.isfinite(b), np.clip(np.rint(b / scale), -31, 31) * scale, b))


def _micro_p17(a, b):
    return in_turn(rounding("p17")(np.stack([in_turn(piece) for piece in cut(terms(a, b), 6)])))


def narrow_sums():
    for name, why, more in (
        ("in_p13_by_p20_rz", "13 bits times operands cut to 20", {"a": "p13", "b": "p20_rz", "order": "lanes12", "inputs": F32}),
        ("in_second_p19_rna", "the second operand to 19 bits, ties away", {"b": "p19_rna", "order": "nested", "inputs": F32}),
        ("acc_p22_sr", "22 bits, stochastic, in blocks of 24", {"acc": "p22_sr", "order": "blocked24"}),
        ("prod_p18_rz", "products cut to 18 bits", {"prod": "p18_rz", "order": "lanes24", "inputs": F32}),
        ("prod_p14_acc_p20", "products of 14 bits, sums of 20", {"prod": "p14", "acc": "p20", "order": "lanes6"}),
        ("join_p15", "five parts kept and added in 15 bits", {"combine": "p15", "order": "split5"})):
        yield recipe(name, "narrow", why, **more)
    for name, why, total, truth, inputs in (
        ("bf16_square_missing", "three pieces of bfloat16, the middle square missing", _square_missing, {}, F32),
        ("e4m3_square_blocks", "e4m3: scales per 16 of a row, per 8 by 8 of the weight", _deepseek, OTHER, ALL),
        ("log_weight_11", "weights are logarithms of 11 fraction bits", lambda a, b: good(a, _logarithms(11)(b)), SECOND_OTHER, F32),
        ("int8_first_drawn", "the first operand drawn to int8 by rows", _int8_drawn, FIRST_OTHER, ALL),
        ("one_tile_first_p14", "one tile of the first operand in 14 bits", _one_tile_first, {}, F32),
        ("tail_of_8_p18", "what 8 leaves over of K in 18 bits", _tail_p18, INSIDE, ALL),
        ("spilled_pair_16", "the sum lies as two bfloat16 between tiles of 16", _spilled_pair, INSIDE, ALL),
        ("quads_p16_rz", "sums of four products cut to 16 bits", _quads, INSIDE, ALL),
        ("acc_e5_p18", "18 bits with the exponents of float16", _short_exponent, INSIDE, ALL)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield recipe("sum_acc_p18_sr", "narrow", "18 bits, stochastic, 16-byte loads", op="sum", acc="p18_sr", order="vec4x8")
    yield recipe("sum_in_daz", "narrow", "subnormal terms are zero, sums are not", op="sum", a="daz", order="lanes8",
                 inputs=("float32", "bfloat16"))
    yield made("sum_pairs_p19", "narrow", "neighbours added in 19 bits, the rest in float32", _pairs_p19, op="sum",
               truth={"in": {"x": "as_is"}})
    yield whole("mean", "sum_kept_p17", "narrow", "the sum kept in 17 bits, then divided",
                lambda a, b, bias: r(rounding("p17")(good(a, b)) / a.shape[1]), truth={"in": {"x": "as_is"}})
    yield made("linear_bias_p18_rz", "narrow", "the bias cut to 18 bits", good, op="linear", bias_as="p18_rz", inputs=F32, truth=INSIDE)
    yield made("linear_weight_int6", "narrow", "weights of 6 bits, bfloat16 scales per channel", _weight_int6, op="linear",
               truth=SECOND_OTHER)
    yield recipe("backward_p20_rna_p16_rz", "narrow", "the gradient to 20 bits, activations cut to 16", op="backward", a="p20_rna",
                 b="p16_rz", order="lanes6", inputs=F32)
    yield made("backward_micro_p17", "narrow", "micro-batches of 6, each gradient kept in 17 bits", _micro_p17, op="backward",
               truth={"in": {"g": "as_is", "x": "as_is"}})


def _table_exp(d):
    """2^x from 64 values and straight lines between them."""
    t = r(np.maximum(d, -150.0) * LOG2E)
    n = np.floor(t)
    f = 64 * (t - n)
    at = np.floor(f)
    low, high = r(np.exp2(at / 64)), r(np.exp2((at + 1) / 64))
    return r(r(low + r((f - at) * r(high - low))) * 2.0**n)


def _newton_quotient(x, w, bias, eps):
    """Times a reciprocal of 9 bits and one step of Newton's."""
    e = r(np.exp(r(x - np.max(x, axis=1, keepdims=True))))
    total = _tree_rows(e)
    y = rounding("p9")(1 / total)
    return r(e * r(y * r(2 - r(total * y))))


def _saved_logarithm(x, w, bias, eps):
    """e^(x - L), of L = max + log sum, which was saved in 19 bits."""
    top = np.max(x, axis=1, keepdims=True)
    saved = rounding("p19")(r(top + r(np.log(_tree_rows(r(np.exp(r(x - top))))))))
    return r(np.exp(r(x - saved)))


def _short_factors(x, w, bias, eps):
    """Eight columns at a time; the factor that scales the sum anew has 17 bits."""
    high, total = x[:, :1], np.zeros((len(x), 1))
    for at in range(0, x.shape[1], 8):
        part = x[:, at:at + 8]
        new = np.maximum(high, part.max(axis=1, keepdims=True))
        total = add32(r(total * rounding("p17")(np.exp(r(high - new)))), _tree_rows(r(np.exp(r(part - new)))))
        high = new
    return r(r(np.exp(r(x - high))) / total)


def _newton_rsqrt(v):
    """10 bits of an inverse root and one step of Newton's."""
    y = rounding("p10")(1 / np.sqrt(v))
    return r(y * r(1.5 - r(r(r(0.5 * v) * y) * y)))


def _saved_statistics(x, w, bias, eps):
    """Mean and inverse deviation as they are saved for the backward pass, in 18 bits."""
    k, n = x.shape[1], rounding("p18")
    mean = r(_tree_rows(x) / k)
    rstd = r(1 / r(np.sqrt(r(r(_tree_rows(r(r(x - mean)**2)) / k) + eps))))
    return add32(r(r(r(x - n(mean)) * n(rstd)) * w), bias)


def _block_sums(x, w, bias, eps):
    """Squares added by 16 columns, each sum kept in 16 bits."""
    k, n = x.shape[1], rounding("p16")
    mean = r(_tree_rows(x) / k)
    squares = r(r(x - mean)**2)
    variance = r(in_turn(np.stack([n(_tree_rows(squares[:, at:at + 16])) for at in range(0, k, 16)])) / k)
    return _deviated(x, mean, variance, w, bias, eps)


def _gelu_exact(x):
    return 0.5 * x * _ERFC(-x * 0.7071067811865476)


def _table_gelu(x):
    """2048 float32 values from -6 to 6 with straight lines between them."""
    at = np.linspace(-6, 6, 2048)
    y = r(np.interp(x, at, r(_gelu_exact(at))))
    return np.where(np.isnan(x), x, np.where(x < -6, 0.0, np.where(x > 6, x, y)))


def _tanh_p20(x):
    far = r(1 - r(2 / r(1 + rounding("p20")(np.exp(r(2 * np.abs(x)))))))
    return np.where(np.abs(x) < 0.5, r(np.tanh(x)), np.copysign(far, x))


def narrow_chains():
    for op, name, why, f, inputs in (
        ("softmax", "exp_table_64", "2^x from 64 values and straight lines", _softmax(exp=_table_exp), ALL),
        ("softmax", "reciprocal9_newton", "a reciprocal of 9 bits and one step", _newton_quotient, ALL),
        ("softmax", "saved_logarithm_p19", "from a log-sum saved in 19 bits", _saved_logarithm, ALL),
        ("softmax", "factors_p17", "eight columns at a time, factors of 17 bits", _short_factors, ALL),
        ("softmax", "total_p20_rz", "the sum of a row cut to 20 bits at every step", _softmax(
            total=lambda e: row_sum(e, "lanes8", "p20_rz")), ALL),
        ("layer_norm", "rsqrt10_newton", "an inverse root of 10 bits and one step", _norm(rsqrt=_newton_rsqrt), ALL),
        ("layer_norm", "statistics_p18", "mean and inverse deviation saved in 18 bits", _saved_statistics, ALL),
        ("layer_norm", "deviations_p19_rz", "deviations cut to 19 bits", _norm(d_as=rounding("p19_rz")), ALL),
        ("layer_norm", "block_sums_p16", "sums of 16 squares kept in 16 bits", _block_sums, ALL),
        ("rms_norm", "squares_of_p14", "squares of x in 14 bits", lambda x, w, bias, eps: _rms(
            sums=lambda s: _tree_rows(r(rounding("p14")(x)**2)))(x, w, bias, eps), F32)):
        yield chain(op, name, "narrow", why, f, inputs)
    for op, name, why, f in (
        ("gelu", "table_2048", "straight lines between 2048 float32 values", _table_gelu),
        ("silu", "argument_p18", "x log2 e in 18 bits", _silu(exp=lambda v: r(np.exp2(rounding("p18")(v * LOG2E))))),
        ("tanh", "exp_p20", "an exponential of 20 bits beyond 1/2", _tanh_p20)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _after(change):
    return lambda a, b: change(good(a, b).copy(), a, b)


def _of(change):
    return lambda a, b: good(*change(a.copy(), b.copy()))


def _first_columns(y, a, b):
    y[:, :8] *= 1.0001
    return y


def _row_before(a, b):
    a[1:, -4:] = a[:-1, -4:].copy()
    return a, b


def _window_late(a, b):
    a[8:, 0] = 0.0
    return a, b


def _column_off(a, b):
    if len(b) >= 16:
        b[8:16] = np.roll(b[8:16], 1, axis=1)
    return a, b


def _sign_lost(a, b):
    """A lane's sign bits are joined by "or" in place of "exclusive or"."""
    t = terms(a, b)
    minus = (a < 0).T[:, :, None] & (b < 0)[:, None, :] & (np.arange(len(t)) % 8 == 7)[:, None, None]
    return in_turn(np.where(minus, -t, t))


def _boundary_twice(y, a, b):
    at, late = a.shape[1] // 2, len(y) // 2
    y[late:] = add32(y[late:], r(a[late:, at:at + 1] * b[at:at + 1]))
    return y


def _next_in_odd_rows(a, b):
    """Odd rows begin one element late, and end in the next row."""
    late = np.roll(a.ravel(), -1).reshape(a.shape)
    return np.where(np.arange(len(a))[:, None] % 2 == 1, late, a), b


def _running_late(a, b, bias):
    y = np.array(a[:, :1])
    for count, column in enumerate(a.T[1:], 3):
        y = add32(y, r(r(column[:, None] - y) / count))
    return y


def _last_sample(a, b):
    if len(b) > 1:
        b[-1] = b[-2]
    return a, b


def _padded_samples(a, b):
    more = -len(b) % 4
    return np.concatenate([a, *[a[:, -1:]] * more], axis=1), np.concatenate([b, *[b[-1:]] * more])


def _one_part_exp(d):
    """A range reduction by ln 2 without its low part."""
    d = np.maximum(d, -100.0)
    n = np.rint(d * LOG2E)
    return r(r(np.exp(r(d - n * 0.693359375))) * 2.0**n)


def _first_for_last(e):
    return _tree_rows(np.concatenate([e[:, :-1], e[:, :1]], axis=1))


def _variance_short(x, w, bias, eps):
    k = x.shape[1]
    mean = r(_tree_rows(x) / k)
    d = r(x - mean)
    return _deviated(x, mean, r(_tree_rows(r(d[:, :-1]**2)) / k), w, bias, eps)


def _weights_before(x, w, bias, eps):
    at = np.arange(len(w))
    return _norm()(x, w[np.where(at >= len(w) - 4, np.maximum(at - 4, 0), at)], bias, eps)


def _odd_rows(usual, other):
    return lambda x: np.where(np.arange(len(x))[:, None] % 2 == 1, other(x), usual(x))


def wrong():
    for name, why, total in (
        ("first_columns_10001", "the first 8 columns times 1.0001", _after(_first_columns)),
        ("last_k_of_row_before", "the last four of K are those of the row before", _of(_row_before)),
        ("infinite_operand_largest", "infinite elements of the first operand become the largest number", _of(
            lambda a, b: (np.clip(a, -3.4028234663852886e38, 3.4028234663852886e38), b))),
        ("late_rows_begin_late", "rows beyond 8 begin at the second term", _of(_window_late)),
        ("products_clamped", "products clamped to 4", lambda a, b: in_turn(np.clip(r(terms(a, b)), -4.0, 4.0))),
        ("k_tile_column_off", "the second tile of the weight is read one column early", _of(_column_off)),
        ("lane_sign_or", "every eighth product of two negatives is negative", _sign_lost),
        ("boundary_twice", "the middle term twice in the lower rows", _after(_boundary_twice))):
        yield made(name, "wrong", why, total)
    yield made("sum_next_in_odd_rows", "wrong", "odd rows begin one element late", _of(_next_in_odd_rows), op="sum")
    yield made("sum_saturates", "wrong", "the running sum stays within 24", lambda a, b: in_turn(
        terms(a, b), lambda s, t: np.clip(add32(s, t), -24.0, 24.0)), op="sum")
    yield whole("mean", "running_late", "wrong", "a running mean whose count begins one too high", _running_late)
    yield whole("linear", "bias_tile_again", "wrong", "the bias of the first 8 columns again and again",
                lambda a, b, bias: add32(good(a, b), bias[np.arange(b.shape[1]) % 8]))
    yield made("backward_last_sample", "wrong", "the last activation is the one before", _of(_last_sample), op="backward")
    yield made("backward_padded_samples", "wrong", "the last sample again up to a multiple of 4", lambda a, b: good(
        *_padded_samples(a, b)), op="backward")
    for op, name, why, f in (
        ("softmax", "ln2_one_part", "ln 2 without its low part", _softmax(exp=_one_part_exp)),
        ("softmax", "first_for_last", "the first exponential for the last in the sum", _softmax(total=_first_for_last)),
        ("softmax", "scaled_10001", "x times 1.0001", _softmax(shift=lambda d: r(r(d) * 1.0001))),
        ("softmax", "least_1e6", "probabilities are at least 1e-6", _softmax(late=lambda y: np.maximum(y, 1e-6))),
        ("layer_norm", "eps_2m16", "eps of 2^-16", _norm(eps_of=lambda eps: 2.0**-16)),
        ("layer_norm", "weights_of_tile_before", "the last four weights are those of the tile before", _weights_before),
        ("layer_norm", "variance_without_last", "the last column missing in the variance", _variance_short),
        ("rms_norm", "eps_both", "eps inside the root and beside it", lambda x, w, bias, eps: _rms(
            rsqrt=lambda v: r(1 / r(r(np.sqrt(v)) + eps)))(x, w, bias, eps)),
        ("rms_norm", "first_square_twice", "the first square twice", _rms(sums=lambda s: add32(_tree_rows(s), s[:, :1])))):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "sigmoid_in_odd_rows", "odd rows by x sigmoid(1.702 x)", _odd_rows(
            lambda x: r(_gelu_exact(x)), lambda x: r(x / r(1 + r(np.exp(r(-1.702 * x))))))),
        ("silu", "log2e_six_digits", "2^(-1.44269 x)", _silu(exp=lambda v: r(np.exp2(r(v * 1.44269))))),
        ("tanh", "one_beyond_four", "1 beyond 4", lambda x: np.where(np.abs(x) > 4, np.sign(x), r(np.tanh(x))))):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
