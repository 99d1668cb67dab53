"""Apart: conforming sums as libraries have them: unrolled vectors, cascades, stream-K, joins by chance, compensated, exact."""

import numpy as np
from apart_tools import F32, cut, filled, kahan, made, once, parts_of, recipe, shuffled, tree, two_sum_in, whole
from heldout_tools import add32, good, in_turn, terms, words
from products import MORE_ORDERS, Recipe, accumulate, _blocks, _lanes, _parts
from rounding import float32 as r


def _vectors(lanes, width, slots=False):
    """Loads of `width` neighbours by each of `lanes` threads; slots: an accumulator for every place in the load."""
    def order(k):
        index = np.concatenate([np.arange(k), np.full(-k % (lanes * width), -1)]).reshape(-1, lanes, width)
        return index.reshape(len(index), -1) if slots else index.transpose(0, 2, 1).reshape(-1, lanes)

    return order


def _ragged(lanes):
    longest = max(map(len, lanes))
    return np.array([[*lane, *[-1] * (longest - len(lane))] for lane in lanes]).T


def _tiles_by_turns(k, size=8, count=2):
    return _ragged([[i for i in range(k) if i // size % count == lane] for lane in range(count)])


def _falling(k):
    """Parts that halve, the longest first, as recursive doubling leaves them."""
    parts, start = [], 0
    while start < k:
        size = max((k - start + 1) // 2, 1)
        parts.append(range(start, start + size))
        start += size
    return _ragged(parts)


MORE_ORDERS.update({
    "vec4x8": (_vectors(8, 4), "halves"),
    "vec2x16": (_vectors(16, 2), "halves"),
    "vec4_slots": (_vectors(4, 4, True), "tree"),
    "lanes64": (lambda k: _lanes(64, k), "halves"),
    "unrolled4x16": (lambda k: _lanes(64, k)[:, [16 * j + i for i in range(16) for j in range(4)]], "tree"),
    "tiles8_by_turns": (_tiles_by_turns, "sequential"),
    "tiles4_in_three": (lambda k: _tiles_by_turns(k, 4, 3), "sequential"),
    "falling": (_falling, "sequential"),
    "split5": (lambda k: _parts(5, k), "sequential"),
    "split6": (lambda k: _parts(6, k), "halves"),
    "blocked40": (lambda k: _blocks(40, k), "sequential"),
    "blocked12": (lambda k: _blocks(12, k), "tree"),
})
REASONS = {"vec4x8": "16-byte loads by 8 threads, warp shuffles", "vec2x16": "8-byte loads by 16 threads, warp shuffles",
           "vec4_slots": "float4 accumulators, joined by their neighbours", "lanes64": "a wavefront of 64",
           "unrolled4x16": "four AVX-512 accumulators", "tiles8_by_turns": "two warp groups that take tiles of K by turns",
           "tiles4_in_three": "three stages of a pipeline, each its accumulator", "falling": "recursive halving of K, left to right",
           "split5": "split-K of 5", "split6": "split-K of 6, joined by halves", "blocked40": "a BLAS with depth blocks of 40",
           "blocked12": "depth blocks of 12, joined as a tree"}


def numpy_pairwise(t):
    """As numpy.add.reduce: eight accumulators in blocks of up to 128, halves above."""
    n = len(t)
    if n < 8:
        return in_turn(t)
    if n > 128:
        half = n // 2 // 8 * 8
        return add32(numpy_pairwise(t[:half]), numpy_pairwise(t[half:]))
    y = t[:8]
    for at in range(8, n - n % 8, 8):
        y = add32(y, t[at:at + 8])
    y = tree(y)
    for each in t[n - n % 8:]:
        y = add32(y, each)
    return y


def cascade(t):
    """As torch.sum on a CPU: four rows at once, four levels that are carried up as they fill."""
    rows, rest = t[:len(t) // 4 * 4].reshape(-1, 4, *t.shape[1:]), t[len(t) // 4 * 4:]
    power = max(4, len(rows).bit_length() // 4)
    levels = np.zeros((4, 4, *t.shape[1:]))
    for i, row in enumerate(rows, 1):
        levels[0] = add32(levels[0], row)
        for j in range(1, 4):
            if i % (1 << power * j):
                break
            levels[j], levels[j - 1] = add32(levels[j], levels[j - 1]), 0.0
    lanes = in_turn(levels)
    for each in rest:
        lanes[0] = add32(lanes[0], each)
    return in_turn(lanes)


def _oblivious(a, b):
    """Halves of K down to 16, each in turn with fused steps."""
    k = a.shape[1]
    if k <= 16:
        return in_turn(terms(a, b))
    half = k // 2
    return add32(_oblivious(a[:, :half], b[:half]), _oblivious(a[:, half:], b[half:]))


def _rounded(how):
    """A way to add along the first axis, of products in float32."""
    return lambda a, b: how(r(terms(a, b)))


def _tail_after(a, b):
    """Eight lanes, joined; what is left over follows in turn."""
    t, main = r(terms(a, b)), a.shape[1] // 8 * 8
    y = tree(in_turn(filled(t[:main], 8))) if main else np.zeros(t.shape[1:])
    for each in t[main:]:
        y = add32(y, each)
    return y


def _stream(a, b):
    """Stream-K: tiles of 4 by 4 are each cut elsewhere along K, two workers a tile, joined in float32."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for i in range(0, len(y), 4):
        for j in range(0, y.shape[1], 4):
            at = (5 * (i // 4) + 11 * (j // 4)) % a.shape[1]
            x, w = a[i:i + 4], b[:, j:j + 4]
            y[i:i + 4, j:j + 4] = add32(good(x[:, :at], w[:at]), good(x[:, at:], w[at:])) if at else good(x, w)
    return y


def _serpentine(a, b):
    y = good(a, b)
    for j in range(0, b.shape[1], 4):
        y[:, j:j + 4] = accumulate(a, b[:, j:j + 4], Recipe(order="reversed" if j // 4 % 2 else "sequential"))
    return y


def _fma_emulated(a, b):
    """(float)((double)a * b + c): a sum of 53 bits, rounded again to 24."""
    return in_turn(terms(a, b), lambda s, t: r(s + t))


def _dots(size):
    """`size` exact products and the accumulator added at once, one rounding to float32."""
    def total(a, b):
        y = np.zeros((a.shape[0], b.shape[1]))
        for piece in cut(terms(a, b), size):
            y = r(once([y, *piece]))
        return y

    return total


def slices(x, axis, count, bits=7):
    """x as `count` integers of `bits` bits under one exponent for each row along `axis`, and that exponent's unit."""
    top = np.where(np.isfinite(x), np.abs(x), 0.0).max(axis=axis, keepdims=True)
    unit = 2.0**np.frexp(np.where(top > 0, top, 1.0))[1]
    rest, found = np.where(np.isfinite(x), x, 0.0) / unit, []
    for _ in range(count):
        rest = rest * 2.0**bits
        found.append(np.trunc(rest))
        rest = rest - found[-1]
    return found, unit


def ozaki(count, kept, bits=7):
    """Products of integer slices, exact, added in float64; rows and columns with infinities or NaN as usual."""
    def total(a, b):
        (xs, ua), (ws, ub) = slices(a, 1, count, bits), slices(b, 0, count, bits)
        y = np.zeros((a.shape[0], b.shape[1]))
        for i, j in sorted(((i, j) for i in range(count) for j in range(count) if i + j < kept), key=lambda ij: -sum(ij)):
            y = y + np.matmul(xs[i], ws[j]) * 2.0**(-bits * (i + j + 2))
        usual = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)[None, :]
        return np.where(usual, y * ua * ub, good(a, b))

    return total


def _prerounded(a, b):
    """Terms cut along common boundaries, so that each level adds up exactly in float64 in any order (Demmel and Nguyen)."""
    t = terms(a, b)
    top = np.abs(np.where(np.isfinite(t), t, 0.0)).max(axis=0)
    reach = 1.5 * 2.0**(np.frexp(top)[1] + len(t).bit_length() + 1)
    levels, rest = [], t
    for _ in range(3):
        high = (rest + reach) - reach
        levels.append(high.sum(axis=0))
        rest, reach = rest - high, reach * 2.0**-40
    return np.where(np.isfinite(t).all(axis=0), levels[2] + levels[1] + levels[0], t.sum(axis=0))


def float_float(t, low):
    """Two float32 numbers hold the sum, with `low` of what a product leaves."""
    high = rest = np.zeros(t.shape[1:])
    for each, left in zip(t, low):
        s, error = two_sum_in(high, each)
        error = r(error + r(rest + np.where(np.isfinite(left), left, 0.0)))
        high = add32(s, error)
        rest = np.where(np.isfinite(high), r(error - r(high - s)), 0.0)
    return high


def _float_float(a, b):
    t = terms(a, b)
    return float_float(r(t), r(t - r(t)))


def _klein(t):
    """Kahan's and Babuska's sum with a second correction (Klein)."""
    y = first = second = np.zeros(t.shape[1:])
    for each in t:
        y, error = two_sum_in(y, each)
        first, error = two_sum_in(first, error)
        second = add32(second, error)
    return add32(y, add32(first, second))


def _lanes_kahan(t):
    return in_turn(kahan(filled(t, 8)))


def _blocks_kahan(t):
    return kahan(np.stack([in_turn(piece) for piece in cut(t, 16)]))


def _padded(a, b):
    """K filled up with zeros of both operands."""
    more = -a.shape[1] % 32
    return good(np.pad(a, ((0, 0), (0, more))), np.pad(b, ((0, more), (0, 0))))


def _edges(a, b):
    """Whole tiles of 4 by 4 fused; the edges by a scalar loop that multiplies and adds, four terms together."""
    t, y = r(terms(a, b)), accumulate(a, b, Recipe(order="vec2x16"))
    slow = in_turn(np.stack([tree(piece) for piece in cut(t, 4)]))
    rows, columns = np.indices(y.shape)
    return np.where((rows < len(y) // 4 * 4) & (columns < y.shape[1] // 4 * 4), y, slow)


def _ring(a, b):
    """Four ranks' parts, added around a ring; every fourth element begins at another rank."""
    parts = parts_of(a, b, 4, good)
    begin = np.arange(parts[0].size).reshape(parts[0].shape) % len(parts)
    at = (np.arange(len(parts))[:, None, None] + begin) % len(parts)
    return in_turn(np.take_along_axis(parts, at, axis=0))


def _running(a, b, bias):
    y = np.zeros((len(a), 1))
    for count, column in enumerate(a.T, 1):
        y = add32(y, r(r(column[:, None] - y) / count))
    return y


def _bias_first(a, b, bias):
    y = np.zeros((len(a), 1)) + bias
    for t in terms(a, b):
        y = add32(y, t)
    return y


def _bias_in_split(a, b, bias):
    third = a.shape[1] // 3
    return add32(_bias_first(a[:, :third], b[:third], bias), good(a[:, third:], b[third:]))


def products():
    for order, why in REASONS.items():
        yield recipe(f"f32_{order}", "honest", f"float32: {why}", order=order, prod="float32")
    for order in ("vec4x8", "unrolled4x16", "tiles8_by_turns", "blocked40"):
        yield recipe(f"fma_{order}", "honest", f"fused float32: {REASONS[order]}", order=order, inputs=F32)
    plain = words("as_is", acc="float32")
    for name, why, total, truth in (
        ("numpy_pairwise", "as numpy.add.reduce adds", _rounded(numpy_pairwise), plain),
        ("cascade", "as torch.sum adds on a CPU", _rounded(cascade), plain),
        ("oblivious", "a cache-oblivious product in float32", _oblivious, plain),
        ("tail_after", "a SIMD loop and its scalar epilogue", _tail_after, plain),
        ("stream_k", "stream-K: every tile is cut elsewhere", _stream, plain),
        ("serpentine", "column tiles walk K to and fro, for the cache", _serpentine, plain),
        ("atomics", "split-K of 5 by float32 atomics, in any order", lambda a, b: in_turn(shuffled(parts_of(a, b, 5, good), 3)), plain),
        ("fma_emulated", "fmaf by double arithmetic, rounded twice", _fma_emulated, plain),
        ("dot2", "two products fused into the accumulator, one rounding", _dots(2), plain),
        ("dot4", "a unit of four products, one rounding", _dots(4), plain),
        ("edges", "fused tiles, scalar edges", _edges, plain),
        ("padded", "K filled up with zeros to 32", _padded, plain),
        ("ozaki", "Ozaki's scheme: ten int8 slices, exact sums", ozaki(10, 19), {}),
        ("prerounded", "reproducible sums on common boundaries, as ReproBLAS", _prerounded, {}),
        ("float_float", "two float32 numbers hold the sum, as GPUs without float64 do", _float_float, {}),
        ("klein", "two corrections, as Klein's sum", _rounded(_klein), {}),
        ("kahan_lanes", "Kahan's sum in eight SIMD lanes", _rounded(_lanes_kahan), {}),
        ("kahan_blocks", "float32 sums of 16, added by Kahan's sum", _rounded(_blocks_kahan), {})):
        yield made(name, "honest", why, total, truth=truth)
    yield recipe("split5_float64", "honest", "five float32 parts added in float64, as a reduction kernel does", order="split5",
                 combine="float64")
    yield recipe("acc_p27_sr", "honest", "27 bits with stochastic rounding, as an accumulator with guard bits", acc="p27_sr",
                 order="vec4x8")


def others():
    for op, order in (("sum", "vec4x8"), ("sum", "falling"), ("mean", "unrolled4x16"), ("linear", "vec4x8"), ("linear", "split6"),
                      ("backward", "tiles8_by_turns")):
        yield recipe(f"{op}_{order}", "honest", f"float32: {REASONS[order]}", op=op, order=order, prod="float32")
    total = words("as_is", acc="float32", op="sum")
    yield made("sum_numpy_pairwise", "honest", "as numpy.sum", _rounded(numpy_pairwise), op="sum", truth=total)
    yield made("sum_cascade", "honest", "as torch.sum on a CPU", _rounded(cascade), op="sum", truth=total)
    yield made("sum_prerounded", "honest", "a reproducible sum", _prerounded, op="sum")
    yield made("sum_float_float", "honest", "two float32 numbers hold the sum", _float_float, op="sum")
    yield whole("mean", "reciprocal", "honest", "times 1/n, as CUDA means have it",
                lambda a, b, bias: r(numpy_pairwise(a.T[:, :, None]) * r(1 / a.shape[1])))
    yield whole("mean", "running", "honest", "a running mean in float32", _running)
    yield whole("mean", "scaled_first", "honest", "terms times 1/n before they are added, so that none overflows",
                lambda a, b, bias: in_turn(filled(r(a.T[:, :, None] * r(1 / a.shape[1])), 4).transpose(1, 0, 2, 3).reshape(
                    -1, len(a), 1)))
    yield whole("linear", "bias_first", "honest", "the accumulator begins as the bias, as a GEMM with beta 1", _bias_first)
    yield whole("linear", "bias_in_split", "honest", "the bias begins one of two parts of K", _bias_in_split)
    yield whole("linear", "once", "honest", "products and bias added exactly, rounded once",
                lambda a, b, bias: once([*terms(a, b), np.broadcast_to(bias, (len(a), b.shape[1]))]))
    yield made("backward_ring", "honest", "gradients of four ranks around a ring, in float32", _ring, op="backward",
               truth=words("as_is", acc="float32", op="backward"))
    yield made("backward_micro", "honest", "micro-batches of 8, added into a float32 gradient", lambda a, b: in_turn(
        np.stack([in_turn(piece) for piece in cut(terms(a, b), 8)])), op="backward", truth=words("as_is", acc="float32", op="backward"))


def table():
    for part in (products, others):
        yield from part()
