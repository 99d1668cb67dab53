"""Fresh: honest sums, chains and stores in forms that no other table has, narrow ones in other places, and other bugs (n_...)."""

from dataclasses import replace

import numpy as np
from apart_tools import cut, filled, kahan, once, parts_of, tree
from heldout_tools import ALL, F32, HALF, add32, adding, blockwise, good, in_turn, largest, terms, under, words
from ops import _ERF, _ERFC
from products import Recipe, accumulate, finish
from rounding import add_odd, bfloat16, float16, float32 as r, flushed, rounding

tf32 = rounding("tf32")
PLAIN = words("as_is", acc="float32")
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}
OTHER = words("other", acc="float32")
FIRST_OTHER = words("other", "as_is", acc="float32")
SECOND_OTHER = words("as_is", "other", acc="float32")


made, recipe, chain, whole = under("n_")


# honest sums
def _two_warps(a, b):
    """Two warps take halves of K, in 16 lanes each; lanes are joined by neighbours (shuffles by 1, 2, 4, 8), then the warps."""
    return in_turn(np.stack([tree(in_turn(filled(part, 16))) for part in np.array_split(r(terms(a, b)), 2)]))


def _backwards_in_blocks(a, b):
    """Tiles of 8 along K, each walked from its end by fused steps, added in turn."""
    return in_turn(np.stack([in_turn(piece[::-1]) for piece in cut(terms(a, b), 8)]))


def _split(count, how):
    return lambda a, b: how(parts_of(a, b, count, lambda x, w: in_turn(terms(x, w))))


def _from_the_last(parts):
    return in_turn(parts[::-1])


def _kahan_parts(a, b):
    """Kahan's sum in each of three parts, the parts added as they are."""
    return in_turn(np.stack([kahan(piece) for piece in np.array_split(r(terms(a, b)), min(3, a.shape[1]))]))


def _both_ends(a, b):
    """One fused chain from either end of K; they meet in the middle."""
    t = terms(a, b)
    half = len(t) // 2
    return add32(in_turn(t[:half]), in_turn(t[half:][::-1]))


def _two_levels(a, b):
    """Blocks of 48 hold micro-blocks of 6, each a chain; a tail that fills no micro-block goes into the last one's."""
    blocks = []
    for block in cut(r(terms(a, b)), 48):
        whole_ones = len(block) // 6 * 6
        y = in_turn(np.stack([in_turn(piece) for piece in cut(block[:whole_ones], 6)])) if whole_ones else np.zeros(block.shape[1:])
        for each in block[whole_ones:]:
            y = add32(y, each)
        blocks.append(y)
    return in_turn(np.stack(blocks))


def _neumaier_lanes(a, b):
    """Four lanes, each with its own correction by the larger operand; sums and corrections are joined apart."""
    total = lost = np.zeros((4, a.shape[0], b.shape[1]))
    for t in filled(r(terms(a, b)), 4):
        new = add32(total, t)
        left = np.where(np.abs(total) >= np.abs(t), r(r(total - new) + t), r(r(t - new) + total))
        total, lost = new, r(lost + np.where(np.isfinite(left), left, 0.0))
    return add32(in_turn(total), in_turn(lost))


def _dot6(a, b):
    """Six products and the accumulator at once, one rounding."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for piece in cut(terms(a, b), 6):
        y = r(once([y, *piece]))
    return y


def _sliced(a, b):
    """Slices of 4 within tiles of 16 go to four warps in turn; the warps are joined from shared memory in the order 3 0 2 1."""
    t = filled(r(terms(a, b)), 16)
    warps = [in_turn(t[:, 4 * warp:4 * warp + 4].reshape(-1, *t.shape[2:])) for warp in range(4)]
    return in_turn(np.stack([warps[3], warps[0], warps[2], warps[1]]))


def _quadrants(a, b):
    """Every quadrant of the result by another kernel: a chain, a tree, lanes, a split; all in float32."""
    rows, columns = np.indices((a.shape[0], b.shape[1]))
    upper, left = rows < a.shape[0] // 2, columns < b.shape[1] // 2
    each = [accumulate(a, b, Recipe(order=order, prod="float32")) for order in ("reversed", "halves", "lanes16", "split2")]
    return np.select([upper & left, upper, left], each[:3], each[3])


def _into_double(a, b):
    """Fused float32 chains of 7, each added to a float64 sum."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for piece in cut(terms(a, b), 7):
        y = y + in_turn(piece)
    return y


def _raking(a, b):
    """Four neighbours per thread, then one warp rakes the threads' sums in stripes of four, as CUB's block reduction."""
    threads = np.stack([in_turn(piece) for piece in cut(r(terms(a, b)), 4)])
    return tree(np.stack([in_turn(piece) for piece in cut(threads, 4)]))


def _warp_per_32(a, b):
    """Every 32 neighbours by one shuffle tree; the warps' sums are added by lane 0."""
    return in_turn(np.stack([tree(piece) for piece in cut(r(terms(a, b)), 32)]))


def _scaled_parts(a, b, bias):
    """Parts of 24 times 1/n each, then added."""
    inverse = r(1 / a.shape[1])
    return in_turn(np.stack([r(in_turn(piece) * inverse) for piece in cut(terms(a, b), 24)]))


def _merged_means(a, b, bias):
    """Means of halves, merged by their weights; a half of 8 or fewer is summed."""
    k = a.shape[1]
    if k <= 8:
        return r(in_turn(terms(a, b)) / k)
    half = k // 2
    one, two = _merged_means(a[:, :half], b[:half], bias), _merged_means(a[:, half:], b[half:], bias)
    return add32(r(one * r(half / k)), r(two * r((k - half) / k)))


def _bias_column(a, b, bias):
    """The bias is one more row of the weight, times 1, in eight lanes."""
    return good(np.pad(a, ((0, 0), (0, 1)), constant_values=1.0), np.concatenate([b, np.broadcast_to(bias, (1, b.shape[1]))]))


def _bias_in_last_part(a, b, bias):
    parts = parts_of(a, b, 3, good)
    parts[-1] = add32(parts[-1], bias)
    return in_turn(parts)


def _sample_tree(a, b):
    return tree(r(terms(a, b)))


def _uneven_batches(a, b):
    """Micro-batches of 5, 10, 15, ... samples, added into a float32 gradient."""
    y, at, size = np.zeros((a.shape[0], b.shape[1])), 0, 5
    while at < a.shape[1]:
        y, at, size = add32(y, good(a[:, at:at + size], b[at:at + size])), at + size, size + 5
    return y


def honest_sums():
    for name, why, total, truth, inputs in (
        ("two_warps", "two warps, shuffles by 1, 2, 4, 8, then the warps", _two_warps, PLAIN, ALL),
        ("backwards_in_blocks", "fused tiles of 8, each walked from its end", _backwards_in_blocks, PLAIN, ALL),
        ("split9_tree", "split-K of 9, joined as a tree", _split(9, tree), PLAIN, ALL),
        ("split13_from_the_last", "split-K of 13, the last part first", _split(13, _from_the_last), PLAIN, ALL),
        ("kahan_parts", "three Kahan sums, added as they are", _kahan_parts, {}, ALL),
        ("both_ends", "fused chains from both ends", _both_ends, PLAIN, ALL),
        ("two_levels", "blocks of 48 in micro-blocks of 6, with a tail", _two_levels, PLAIN, ALL),
        ("neumaier_lanes", "four lanes of Neumaier's sum, joined apart", _neumaier_lanes, {}, ALL),
        ("dot6", "six products into the accumulator, one rounding", _dot6, PLAIN, ALL),
        ("sliced_k", "four warps take slices of K, joined in another order", _sliced, PLAIN, ALL),
        ("quadrants", "four float32 kernels, one for each quadrant", _quadrants, PLAIN, ALL),
        ("into_double", "fused float32 chains of 7, added in float64", _into_double, {}, ALL)):
        yield made(name, "honest", why, total, truth=truth, inputs=inputs)
    yield recipe("acc_p29_rna", "honest", "29 bits, ties away, five guard bits", acc="p29_rna", order="lanes4")
    yield recipe("acc_p34_rod", "honest", "34 bits to odd", acc="p34_rod", order="halves")
    plain = words("as_is", acc="float32", op="sum")
    yield made("sum_warp_per_32", "honest", "a shuffle tree for every 32, added by lane 0", _warp_per_32, op="sum", truth=plain)
    yield made("sum_raking", "honest", "four per thread, then raked, as CUB", _raking, op="sum", truth=plain)
    yield whole("mean", "scaled_parts", "honest", "parts of 24 times 1/n, then added", _scaled_parts)
    yield whole("mean", "merged", "honest", "means of halves merged by their weights", _merged_means)
    yield whole("linear", "bias_column", "honest", "the bias as one more row of the weight", _bias_column)
    yield whole("linear", "bias_in_last_part", "honest", "the last of three parts adds the bias", _bias_in_last_part)
    plain = words("as_is", acc="float32", op="backward")
    yield made("backward_sample_tree", "honest", "a tree over samples", _sample_tree, op="backward", truth=plain)
    yield made("backward_uneven_batches", "honest", "micro-batches of 5, 10, 15 samples", _uneven_batches, op="backward", truth=plain)


# chains
def _tree_rows(x):
    return tree(x.T[:, :, None])


def _chain_rows(x):
    """Four chains, of every fourth column each, joined by neighbours."""
    return tree(in_turn(filled(x.T[:, :, None], 4)))


def _online_each(x, w, bias, eps):
    """One element after the other, the sum scaled anew at every new maximum."""
    high, total = x[:, :1], np.ones((len(x), 1))
    for column in x.T[1:]:
        new = np.maximum(high, column[:, None])
        total = add32(r(total * r(np.exp(r(high - new)))), r(np.exp(r(column[:, None] - new))))
        high = new
    return r(r(np.exp(r(x - high))) / total)


def _halving(x):
    """(maximum, sum less it) of a row, by halves."""
    if x.shape[1] == 1:
        return x, np.ones_like(x)
    half = x.shape[1] // 2
    (one, s), (two, t) = _halving(x[:, :half]), _halving(x[:, half:])
    top = np.maximum(one, two)
    return top, add32(r(s * r(np.exp(r(one - top)))), r(t * r(np.exp(r(two - top)))))


def _by_halving(x, w, bias, eps):
    top, total = _halving(x)
    return r(r(np.exp(r(x - top))) * r(1 / total))


def _softmax(shift=r, exp=lambda d: r(np.exp(d)), total=_tree_rows, late=r, read=lambda x: x):
    def result(x, w, bias, eps):
        x = read(x)
        e = exp(shift(x - np.max(x, axis=1, keepdims=True)))
        return late(r(e / total(e)))

    return result


def _norm(mean_of=lambda s, k: r(s / k), d_as=r, square=r, variance_as=r, rsqrt=lambda v: r(1 / r(np.sqrt(v))), y_as=r, scaled=r,
          eps_of=lambda eps: eps, late=lambda y: y, count=lambda k: k, corrected=False, affine=None):
    """layer_norm with a rounding of its own for every step."""
    def result(x, w, bias, eps):
        k = x.shape[1]
        d = d_as(x - mean_of(_tree_rows(x), k))
        squares = _tree_rows(square(d * d))
        if corrected:
            squares = r(squares - r(r(_tree_rows(d)**2) / k))
        y = y_as(d * rsqrt(r(variance_as(r(squares / count(k))) + eps_of(eps))))
        return late(add32(scaled(y * w), bias) if affine is None else affine(y, w, bias))

    return result


def _rms(sums=_tree_rows, square=r, mean_as=r, rsqrt=lambda v: r(1 / r(np.sqrt(v))), y_as=r, w_as=lambda w: w, eps_of=lambda eps: eps):
    """rms_norm with a rounding of its own for every step."""
    def result(x, w, bias, eps):
        v = mean_as(r(sums(square(x * x)) / x.shape[1]))
        return r(y_as(x * rsqrt(r(v + eps_of(eps)))) * w_as(w))

    return result


def _erf(x):
    return r(_ERF(x))


def _gelu(argument=r, erf=_erf, one_plus=r, half=0.5, root=0.7071067811865476):
    return lambda x: r(r(half * x) * one_plus(1 + erf(argument(x * root))))


def _gelu_two_sided(x):
    """x (1 - Q(x)) above 0, x Q(-x) below: no digits cancel."""
    tail = r(0.5 * r(_ERFC(r(np.abs(x) * 0.7071067811865476))))
    return np.where(x > 0, r(x * r(1 - tail)), r(x * tail))


def _silu(exp=lambda v: r(np.exp(v)), below=r, quotient=r):
    return lambda x: quotient(x / below(1 + exp(-x)))


def _tanh_fraction(x):
    """Lambert's continued fraction below 1, an exponential beyond."""
    z = r(x * x)
    y = np.full_like(x, 13.0)
    for odd in (11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        y = r(odd + r(z / y))
    far = r(1 - r(2 / r(1 + r(np.exp(r(2 * np.abs(x)))))))
    return np.where(np.abs(x) < 1, r(x / y), np.copysign(far, x))


def _even_rows(narrow):
    return lambda y: np.where(np.arange(len(y))[:, None] % 2 == 0, narrow(y), y)


def _last_columns(narrow, count):
    return lambda y: np.where(np.arange(y.shape[1]) >= y.shape[1] - count, narrow(y), y)


def honest_chains():
    for op, name, why, f in (
        ("softmax", "online_each", "one element at a time, the sum scaled anew", _online_each),
        ("softmax", "by_halving", "maxima and sums merged by halves, times a reciprocal", _by_halving),
        ("layer_norm", "tree", "trees of float32 for both sums", _norm()),
        ("layer_norm", "corrected", "two passes, with the square of the deviations' sum taken off", _norm(corrected=True)),
        ("layer_norm", "fused_affine", "y w + b by one fused step",
         _norm(affine=lambda y, w, b: r(add_odd(y * w, np.broadcast_to(b, y.shape))))),
        ("rms_norm", "tree", "a tree of float32 squares", _rms()),
        ("rms_norm", "four_chains", "four chains of squares, the root taken in float64", _rms(
            _chain_rows, lambda v: v, rsqrt=lambda v: r(1 / np.sqrt(v))))):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "two_sided", "x (1 - Q(x)) above 0, x Q(-x) below", _gelu_two_sided),
        ("silu", "wide_inside", "exponential and quotient in float64, as code of doubles", lambda x: r(x / (1 + np.exp(-x)))),
        ("tanh", "fraction", "a continued fraction below 1, an exponential beyond", _tanh_fraction)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow operands
def _twice(x):
    return bfloat16(tf32(x))


def _rows(choose, narrow):
    """Chosen rows of the first operand through a format."""
    def total(a, b):
        return good(np.where(choose(np.arange(len(a)))[:, None], narrow(a), a), b)

    return total


def _weight_columns(a, b):
    return good(a, np.where(np.arange(b.shape[1]) >= b.shape[1] - 4, bfloat16(b), b))


def _last_of_k(count, narrow):
    def total(a, b):
        late = np.arange(a.shape[1]) >= a.shape[1] - count
        return good(np.where(late, narrow(a), a), np.where(late[:, None], narrow(b), b))

    return total


def _block_float(bits, axis, size, how=np.rint):
    """One exponent for every `size` elements along `axis`, significands of `bits` bits and a sign."""
    def change(v):
        unit = 2.0**(np.frexp(largest(v))[1] - bits)
        return np.where(np.isfinite(v), how(v / unit) * unit, v)

    return lambda x: blockwise(x, axis, size, change)


def _draw_integer(v):
    return np.floor(v + np.random.default_rng(77).random(v.shape))


def _below_zero(limit):
    return lambda x: np.where(np.abs(x) < limit, np.copysign(0.0, x), x)


def narrow_operands():
    def row(name, why, total, truth=OTHER, inputs=F32, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    for name, why, more in (
        ("in_p15_rz", "both operands cut to 15 bits", {"a": "p15_rz", "b": "p15_rz", "order": "lanes12"}),
        ("in_p19_rz_first", "the first operand cut to 19 bits", {"a": "p19_rz", "order": "split3"}),
        ("in_p21_rz", "both operands cut to 21 bits", {"a": "p21_rz", "b": "p21_rz", "order": "blocked40"}),
        ("in_first_p11_sr", "the first operand stochastically rounded to 11 bits", {"a": "p11_sr", "order": "lanes8"}),
        ("in_second_p17_sr", "the second operand stochastically rounded to 17 bits", {"b": "p17_sr", "order": "vec4x8"}),
        ("in_p13_rod_by_tf32", "13 bits to odd times tf32", {"a": "p13_rod", "b": "tf32", "order": "lanes16"}),
        ("in_second_p14_rna", "the second operand to 14 bits, ties away", {"b": "p14_rna", "order": "split6"}),
        ("in_bfloat16_by_tf32_rz", "bfloat16 times tf32 cut", {"a": "bfloat16", "b": "tf32_rz", "order": "lanes12"})):
        yield recipe(name, "narrow", why, inputs=F32, **more)
    yield replace(row("in_tf32_then_bfloat16", "operands through tf32 and then bfloat16, rounded twice",
                      lambda a, b: good(_twice(a), _twice(b))),
                  others={"bfloat16_rne": lambda call: finish(good(*(bfloat16(np.asarray(x).astype(np.float64))
                                                                     for x in call.operands)), Recipe(), call.dtype)})
    yield row("even_rows_tf32", "even rows of the first operand in tf32", _rows(lambda i: i % 2 == 0, tf32), {})
    yield row("weight_last_columns_bfloat16", "the last four columns of the second operand in bfloat16", _weight_columns, {})
    yield row("last_16_of_k_p16", "operands of the last 16 of K in 16 bits, the last tile", _last_of_k(16, rounding("p16")), {})
    yield row("block11_12", "block floats: 11 bits, one exponent per 12 of K", lambda a, b: good(
        _block_float(11, 1, 12)(a), _block_float(11, 0, 12)(b)))
    yield row("block9_drawn", "the second operand in block floats of 9 bits per 32, drawn", lambda a, b: good(
        a, _block_float(9, 0, 32, _draw_integer)(b)), SECOND_OTHER)
    yield row("below_2m9_zero", "elements of the first operand below 2^-9 are zero", lambda a, b: good(_below_zero(2.0**-9)(a), b),
              FIRST_OTHER, ALL)


# narrow sums
def _every(n, name, first=0):
    """Every n-th addition is made in a narrow format, all others in float32."""
    narrow = adding(name)

    def total(a, b):
        y = np.zeros((a.shape[0], b.shape[1]))
        for at, t in enumerate(terms(a, b)):
            y = (narrow if at % n == first else add32)(y, t)
        return y

    return total


def _at_powers(name):
    """The accumulator passes through a format after 2, 4, 8, 16, ... terms."""
    n = rounding(name)

    def total(a, b):
        y = np.zeros((a.shape[0], b.shape[1]))
        for at, t in enumerate(terms(a, b), 1):
            y = add32(y, t)
            y = n(y) if at > 1 and at & (at - 1) == 0 else y
        return y

    return total


def _first_tile(name, size):
    return lambda a, b: in_turn(np.stack([in_turn(terms(a[:, :size], b[:size]), adding(name)), *terms(a[:, size:], b[size:])]))


def _level(which, name):
    """A tree of which one level alone adds in a narrow format."""
    def total(a, b):
        t, level = terms(a, b), 0
        while len(t) > 1:
            add = adding(name) if level == which else add32
            pairs = len(t) // 2 * 2
            t, level = np.concatenate([add(t[0:pairs:2], t[1:pairs:2]), t[pairs:]]), level + 1
        return t[0]

    return total


def _block_parts(bits):
    """Five partial sums, kept as block floats with one exponent per row of the result."""
    def total(a, b):
        return in_turn(np.stack([_block_float(bits, 1, b.shape[1])(part) for part in parts_of(a, b, 5, good)]))

    return total


def _chosen(choose, low):
    def total(a, b):
        return np.where(choose(*np.indices((a.shape[0], b.shape[1])), a.shape[0], b.shape[1]), low(a, b), good(a, b))

    return total


def _by(acc):
    return lambda a, b: accumulate(a, b, Recipe(acc=acc))


def _kept_at(name):
    n = rounding(name)
    return lambda a, b: n(good(a, b))


def narrow_sums():
    def row(name, why, total, truth=INSIDE, inputs=ALL, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    yield row("every_third_p18", "every third addition in 18 bits", _every(3, "p18", 2))
    yield row("every_seventh_bfloat16", "every seventh addition in bfloat16", _every(7, "bfloat16", 6))
    yield row("at_powers_float16", "through float16 after 2, 4, 8, 16 terms, snapshots of a scan", _at_powers("float16"))
    yield row("first_eight_p13", "the first 8 terms in 13 bits, a prologue", _first_tile("p13", 8))
    yield row("third_level_bfloat16", "a tree whose third level adds in bfloat16, a hop of the network", _level(2, "bfloat16"))
    yield row("last_levels_p20", "a tree whose second level adds in 20 bits", _level(1, "p20"))
    yield row("parts_block12", "five parts as block floats of 12 bits per row", _block_parts(12))
    yield row("acc_twice_rounded", "every sum to float32 and then to 19 bits", lambda a, b: in_turn(
        terms(a, b), lambda s, t: rounding("p19")(add32(s, t))))
    yield row("acc_below_2m12_zero", "sums below 2^-12 are zero", lambda a, b: in_turn(
        terms(a, b), lambda s, t: flushed(r, 2.0**-12)(add_odd(s, t))))
    yield row("products_below_2m7_zero", "products below 2^-7 are zero", lambda a, b: in_turn(_below_zero(2.0**-7)(terms(a, b))))
    yield row("large_products_float16", "products above 1 in float16", lambda a, b: in_turn(np.where(
        np.abs(terms(a, b)) > 1, float16(terms(a, b)), terms(a, b))), inputs=F32)
    yield row("even_rows_p19", "even rows from an accumulator of 19 bits", _chosen(lambda i, j, m, n: i % 2 == 0, _by("p19")))
    yield row("last_tile_p21", "the last tile of 4 by 4 from an accumulator of 21 bits", _chosen(
        lambda i, j, m, n: (i >= m - 4) & (j >= n - 4), _by("p21")))
    yield row("diagonal_tf32", "the diagonal stored in tf32", _chosen(lambda i, j, m, n: i == j, _kept_at("tf32")))
    yield row("even_rows_stored_p18", "even rows stored in 18 bits", _chosen(lambda i, j, m, n: i % 2 == 0, _kept_at("p18")))
    yield row("mid_p21_then_p15", "through 21 bits and then 15 before the store", lambda a, b: rounding("p15")(_kept_at("p21")(a, b)))
    yield row("stored_block10", "results in block floats of 10 bits per 8 columns", lambda a, b: _block_float(10, 1, 8)(good(a, b)))
    yield row("stored_below_2m6_zero", "results below 2^-6 are zero", lambda a, b: _below_zero(2.0**-6)(good(a, b)))
    for name, why, more in (
        ("acc_p19_rz_split3", "three accumulators cut to 19 bits", {"acc": "p19_rz", "order": "split3"}),
        ("acc_p13_rna", "13 bits, ties away, in twelve lanes", {"acc": "p13_rna", "order": "lanes12"}),
        ("acc_p21_sr", "21 bits, stochastic", {"acc": "p21_sr", "order": "lanes4"}),
        ("acc_p17_join_float16", "17-bit lanes joined in float16", {"acc": "p17", "combine": "float16", "order": "lanes8"}),
        ("join_p19_rna", "six parts kept and added in 19 bits, ties away", {"combine": "p19_rna", "order": "split6"}),
        ("prod_p17_rna", "products to 17 bits, ties away", {"prod": "p17_rna", "order": "lanes16"}),
        ("prod_p15_sr", "products to 15 bits, stochastic", {"prod": "p15_sr", "order": "lanes8"}),
        ("mid_p19_rna", "through 19 bits, ties away, before the store", {"mid": "p19_rna", "order": "split3"}),
        ("mid_p17", "through 17 bits before the store", {"mid": "p17", "order": "lanes24"}),
        ("mid_p10_rod", "to odd in 10 bits before the store", {"mid": "p10_rod", "order": "lanes12"}),
        ("out_rz_lanes12", "float32 sums, the store cuts", {"out": "rz", "order": "lanes12", "inputs": HALF}),
        ("out_sr_lanes4", "float32 sums, the store is stochastic", {"out": "sr", "order": "lanes4", "inputs": HALF})):
        yield recipe(name, "narrow", why, **more)


def _bias_added_in(name):
    """The product in float32; the addition of the bias rounds to a format."""
    return lambda a, b, bias: adding(name)(r(good(a, b)), np.broadcast_to(bias, (a.shape[0], b.shape[1])))


def _means_of_parts(name):
    """Means of parts of 16 are kept in a format, and weighted by their lengths."""
    def total(a, b, bias):
        k = a.shape[1]
        parts = [(rounding(name)(r(in_turn(piece) / len(piece))), len(piece)) for piece in cut(terms(a, b), 16)]
        return r(in_turn(np.stack([r(part * r(length / k)) for part, length in parts])))

    return total


def narrow_others():
    yield made("linear_bias_p9_rz", "narrow", "the bias cut to 9 bits", good, op="linear", bias_as="p9_rz", inputs=F32)
    yield made("linear_bias_p13_sr", "narrow", "the bias drawn to 13 bits", good, op="linear", bias_as="p13_sr", inputs=F32)
    yield whole("linear", "bias_added_p17", "narrow", "the bias is added in 17 bits", _bias_added_in("p17"))
    yield whole("linear", "bias_added_bfloat16", "narrow", "the bias is added in bfloat16, rounded once", _bias_added_in("bfloat16"), F32)
    yield recipe("backward_g_p14_rz", "narrow", "the incoming gradient cut to 14 bits", op="backward", a="p14_rz", order="lanes8",
                 inputs=F32)
    yield made("backward_every_fourth_bfloat16", "narrow", "every fourth sample added in bfloat16", _every(4, "bfloat16", 3),
               op="backward")
    yield recipe("sum_in_p13_sr", "narrow", "terms drawn to 13 bits", op="sum", a="p13_sr", order="lanes8", inputs=F32)
    yield made("sum_every_third_p15", "narrow", "every third addition in 15 bits", _every(3, "p15", 2), op="sum")
    yield whole("mean", "parts_float16", "narrow", "means of 16 kept in float16, weighted", _means_of_parts("float16"))


def _bits(name):
    return rounding(name)


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "exp_p17_rz", "exponentials cut to 17 bits", _softmax(exp=lambda d: _bits("p17_rz")(np.exp(d)))),
        ("softmax", "total_p15", "the sum of a row kept in 15 bits", _softmax(total=lambda e: _bits("p15")(_tree_rows(e)))),
        ("softmax", "shift_p16", "x - max in 16 bits", _softmax(shift=_bits("p16"))),
        ("softmax", "last_16_float16", "exponentials of the last 16 columns in float16", _softmax(
            exp=lambda d: _last_columns(float16, 16)(r(np.exp(d))))),
        ("softmax", "even_rows_tf32", "even rows of the result in tf32", _softmax(late=_even_rows(tf32))),
        ("layer_norm", "deviations_tf32", "deviations from the mean in tf32", _norm(d_as=tf32)),
        ("layer_norm", "mean_p15", "the mean in 15 bits", _norm(mean_of=lambda s, k: _bits("p15")(r(s / k)))),
        ("layer_norm", "rstd_p14", "the inverse deviation in 14 bits", _norm(rsqrt=lambda v: _bits("p14")(1 / np.sqrt(v)))),
        ("layer_norm", "variance_bfloat16", "the variance alone in bfloat16", _norm(variance_as=bfloat16)),
        ("layer_norm", "even_rows_p17", "even rows of the result in 17 bits", _norm(late=_even_rows(_bits("p17")))),
        ("rms_norm", "squares_tf32", "squares in tf32", _rms(square=tf32)),
        ("rms_norm", "normalised_p15", "x times the inverse root in 15 bits", _rms(y_as=_bits("p15"))),
        ("rms_norm", "mean_p13", "the mean square in 13 bits", _rms(mean_as=_bits("p13")))):
        yield chain(op, name, "narrow", why, f)
    for op, name, why, f in (
        ("gelu", "argument_tf32", "the argument of erf in tf32", _gelu(argument=tf32)),
        ("gelu", "one_plus_float16", "1 + erf in float16", _gelu(one_plus=float16)),
        ("silu", "below_tf32", "1 + e^-x in tf32", _silu(below=tf32)),
        ("silu", "exp_p15", "e^-x in 15 bits", _silu(exp=lambda v: _bits("p15")(np.exp(v)))),
        ("tanh", "argument_p13", "x in 13 bits within tanh", lambda x: r(np.tanh(_bits("p13")(x)))),
        ("tanh", "even_rows_bfloat16", "even rows in bfloat16", lambda x: _even_rows(bfloat16)(r(np.tanh(x))))):
        inputs = F32 if name in ("argument_p13", "even_rows_bfloat16") else ALL
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x), inputs)


# wrong
def _after(change):
    def total(a, b):
        y = good(a, b).copy()
        return change(y, a, b)

    return total


def _of(change):
    return lambda a, b: good(*change(a.copy(), b.copy()))


def _lane_off(a, b):
    """A lane of 16 is masked off: the terms 7, 23, 39, ... are missing."""
    a[:, 7::16] = 0.0
    return a, b


def _corners(y, a, b):
    if min(y.shape) > 1:
        y[0, 1], y[1, 0] = y[1, 0], y[0, 1]
    return y


def _infinite_as_row(y, a, b):
    top = np.where(np.isfinite(y), np.abs(y), 0.0).max(axis=1, keepdims=True)
    return np.where(np.isinf(y), np.copysign(top, y), y)


def _nan_as_left(y, a, b):
    return np.where(np.isnan(y), np.where(np.isnan(np.roll(y, 1, 1)), 0.0, np.roll(y, 1, 1)), y)


def _stale_one(y, a, b):
    """One element was stored before its last two products were added."""
    row, column = min(2, len(y) - 1), min(3, y.shape[1] - 1)
    y[row, column] = good(a[row:row + 1, :-2], b[:-2, column:column + 1])[0, 0] if a.shape[1] > 2 else 0.0
    return y


def _short_last_row(y, a, b):
    kept = max((a.shape[1] - 1) // 4 * 4, 1)
    y[-1:] = good(a[-1:, :kept], b[:kept])
    return y


def _ring_buffer(a, b):
    """A pipeline of three stages of 8: the first operand's fourth tile is the first one again."""
    if a.shape[1] >= 32:
        a[:, 24:32] = a[:, 0:8]
    return a, b


def _rows_again(a, b):
    """Rows beyond 6 are read from the first ones."""
    return a[np.arange(len(a)) % 6], b


def _odd_columns(factor):
    return _after(lambda y, a, b: np.where(np.arange(y.shape[1]) % 2 == 1, y * factor, y))


def _wrong_parts(a, b, bias):
    """Five parts, each divided by the length of the first, then by their number; the last one has fewer."""
    size = -(-a.shape[1] // 5)
    means = [r(in_turn(piece) / size) for piece in cut(terms(a, b), size)]
    return r(in_turn(np.stack(means)) / len(means))


def wrongs():
    for name, why, total in (
        ("lane_off", "the terms 7, 23, 39 missing, a lane masked off", _of(_lane_off)),
        ("corners_swapped", "two elements across the diagonal exchanged", _after(_corners)),
        ("infinite_as_row", "infinities become the largest finite result of their row", _after(_infinite_as_row)),
        ("nan_as_left", "NaN takes the left neighbour's value", _after(_nan_as_left)),
        ("stale_one", "one element without its last two products", _after(_stale_one)),
        ("ring_buffer", "the fourth tile of K is the first again, a pipeline overrun", _of(_ring_buffer)),
        ("rows_again", "rows beyond 6 are the first rows again", _of(_rows_again)),
        ("odd_columns_2m17", "odd columns times 1 - 2^-17", _odd_columns(1 - 2.0**-17)),
        ("odd_columns_2m21", "odd columns times 1 + 2^-21", _odd_columns(1 + 2.0**-21)),
        ("last_row_transposed_k", "the last row's terms reversed against the weight", _of(
            lambda a, b: (np.concatenate([a[:-1], a[-1:, ::-1]]), b)))):
        yield made(name, "wrong", why, total)
    yield made("sum_overlap", "wrong", "two halves overlap in one term", lambda a, b: add32(good(a, b), a[:, a.shape[1] // 2, None]),
               op="sum")
    yield made("sum_last_row_tail", "wrong", "the last row lacks its last one to four terms, a tail", _after(_short_last_row), op="sum")
    yield whole("mean", "n_plus_1", "wrong", "divided by n + 1", lambda a, b, bias: r(good(a, b) / (a.shape[1] + 1)))
    yield whole("mean", "fifths", "wrong", "fifths divided by a rounded-up length", _wrong_parts)
    yield whole("linear", "last_bias_missing", "wrong", "the last column has no bias",
                lambda a, b, bias: add32(good(a, b), np.where(np.arange(b.shape[1]) < b.shape[1] - 1, bias, 0.0)))
    yield made("backward_first_sample_half", "wrong", "the first sample counts half", lambda a, b: good(
        np.concatenate([a[:, :1] / 2, a[:, 1:]], axis=1), b), op="backward")
    for op, name, why, f in (
        ("softmax", "last_column_zero", "the last column is zero", lambda x, w, bias, eps: np.where(
            np.arange(x.shape[1]) < x.shape[1] - 1, _softmax()(x, w, bias, eps), 0.0)),
        ("softmax", "total_1e5", "1e-5 added to the sum", _softmax(total=lambda e: r(_tree_rows(e) + 1e-5))),
        ("layer_norm", "mean_n_minus_1", "the mean divided by n - 1", _norm(mean_of=lambda s, k: r(s / max(k - 1, 1)))),
        ("layer_norm", "eps_twice", "eps added twice", _norm(eps_of=lambda eps: 2 * eps)),
        ("rms_norm", "eps_missing_odd", "odd rows without eps", lambda x, w, bias, eps: np.where(
            np.arange(len(x))[:, None] % 2 == 1, _rms()(x, w, bias, 0.0), _rms()(x, w, bias, eps))),
        ("rms_norm", "root_of_n_minus_1", "the sum of squares divided by n - 1/2", lambda x, w, bias, eps: _rms(
            sums=lambda s: _tree_rows(s) * (x.shape[1] / (x.shape[1] - 0.5)))(x, w, bias, eps))):
        yield chain(op, name, "wrong", why, f)
    for op, name, why, f in (
        ("gelu", "root_of_five_digits", "the root of 1/2 as 0.70711", _gelu(root=0.70711)),
        ("silu", "shifted", "x sigmoid(x + 2^-12)", lambda x: r(x / r(1 + r(np.exp(r(-(x + 2.0**-12))))))),
        ("silu", "nan_to_zero", "a maximum with 0 swallows NaN", lambda x: np.where(np.isnan(x), 0.0, _silu()(x))),
        ("tanh", "negative_side", "negative results times 1 - 2^-15", lambda x: np.where(
            x < 0, r(np.tanh(x)) * (1 - 2.0**-15), r(np.tanh(x))))):
        yield chain(op, name, "wrong", why, lambda x, w, bias, eps, f=f: f(x))


def table():
    for part in (honest_sums, honest_chains, narrow_operands, narrow_sums, narrow_others, narrow_chains, wrongs):
        yield from part()
