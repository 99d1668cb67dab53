"""Apart: products that are narrow in operands, products, accumulators, joins or stores, everywhere or in one place alone."""

import numpy as np
from apart_orders import ozaki
from apart_tools import ALL, F32, HALF, cut, drawn, filled, made, once, parts_of, recipe, shuffled, tree, two_sum_in, whole
from heldout_operands import _scaled, _shared, _zero_point
from heldout_tools import add32, adding, blockwise, good, in_turn, largest, terms, words
from products import Recipe, accumulate, block_sum
from rounding import add_odd, bfloat16, flushed, float16, float32 as r, odd32, ranged, rounding

OTHER = words("other", acc="float32")
SECOND = words("as_is", "other", acc="float32")
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}
tf32, daz = rounding("tf32"), rounding("daz")


# operands
def _where_k(choose, narrow, first=True):
    """Operands of some k through a format; first: the first operand too."""
    def total(a, b):
        at, n = choose(np.arange(a.shape[1])), rounding(narrow)
        return good(np.where(at & first, n(a), a), np.where(at[:, None], n(b), b))

    return total


def _outliers(a, b):
    """LLM.int8: columns with an outlier in float16, the rest in int8 by row and by column."""
    size = np.where(np.isfinite(a), np.abs(a), np.inf)
    far = (size > 6 * np.median(size)).any(axis=0)
    int8 = _scaled(np.rint, 127.0, 1, a.shape[1], "float32"), _scaled(np.rint, 127.0, 0, a.shape[1], "float32")
    return add32(good(int8[0](np.where(far, 0.0, a)), int8[1](np.where(far[:, None], 0.0, b))),
                 good(float16(np.where(far, a, 0.0)), float16(np.where(far[:, None], b, 0.0))))


def _rotated(a, b):
    """Both operands turned by a Hadamard matrix along K, then int8, as QuaRot."""
    k = 1 << (a.shape[1] - 1).bit_length()
    h = np.array([[1.0]])
    while len(h) < k:
        h = np.block([[h, h], [h, -h]])
    a, b = np.pad(a, ((0, 0), (0, k - a.shape[1]))), np.pad(b, ((0, k - b.shape[0]), (0, 0)))
    return good(_scaled(np.rint, 127.0, 1, k, "float32")(r(a @ h)), _scaled(np.rint, 127.0, 0, k, "float32")(r(h @ b))) / k


def _delayed(x):
    """e4m3 under a power of two that follows from half the largest element: the largest saturate."""
    unit = 2.0**np.floor(np.log2(largest(x, None) / 2 / 448.0))
    return rounding("e4m3_sat")(x / np.where(unit > 0, unit, 1.0)) * unit


def _ceil_scale(element, reach, size):
    """Powers of two per block, rounded up so that nothing saturates."""
    def change(x, axis):
        def blocks(v):
            unit = 2.0**np.ceil(np.log2(largest(v) / reach))
            return element(v / np.where(unit > 0, unit, 1.0)) * unit

        return blockwise(x, axis, size, blocks)

    return lambda a, b: good(change(a, 1), change(b, 0))


def _two_level(x, axis):
    """NVFP4: a float32 scale per tensor, an e4m3 scale per 16, e2m1 elements."""
    tensor = r(largest(x, None) / (6.0 * 448.0))
    tensor = np.where(tensor > 0, tensor, 1.0)
    return _scaled(ranged(2, low=0), 6.0, axis, 16, "e4m3_sat")(x / tensor) * tensor


def _int4_zero(b):
    def blocks(v):
        low, high = np.minimum(v.min(-1, keepdims=True), 0), np.maximum(v.max(-1, keepdims=True), 0)
        scale = float16(np.where(high > low, (high - low) / 15, 1.0))
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        zero = np.rint(-low / scale)
        return (np.clip(np.rint(v / scale) + zero, 0, 15) - zero) * scale

    return blockwise(b, 0, 32, blocks)


def operands():
    def row(name, why, total, truth=OTHER, inputs=F32, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    yield row("late_k_bfloat16", "operands of K beyond 48 in bfloat16, an old cache", _where_k(lambda k: k >= 48, "bfloat16"), {})
    yield row("early_k_tf32", "operands of the first 8 of K in tf32, a prologue", _where_k(lambda k: k < 8, "tf32"), {})
    yield row("odd_tiles_tf32", "every other tile of 8 along K in tf32, warps of two kinds", _where_k(
        lambda k: k // 8 % 2 == 1, "tf32"), {})
    yield row("tail_tf32", "what 16 leaves over of K in tf32", _where_k(lambda k: k >= len(k) // 16 * 16, "tf32"), {})
    yield row("late_weight_float16", "the second operand beyond 32 of K in float16, offloaded", _where_k(
        lambda k: k >= 32, "float16", False), {})
    yield row("outliers", "LLM.int8", _outliers, {}, ALL)
    yield row("rotated_int8", "QuaRot: int8 after a Hadamard rotation", _rotated, {}, ALL)
    yield row("delayed_e4m3", "fp8 with a scale that lags behind", lambda a, b: good(_delayed(a), _delayed(b)), OTHER, ALL)
    yield row("mx_e5m2", "MX: e5m2, scales rounded up per 32", _ceil_scale(rounding("e5m2"), 57344.0, 32), OTHER, ALL)
    yield row("mx_int8", "MXINT8: seven bits and a sign, a power of two per 32", lambda a, b: good(
        _shared(8, 1, 32)(a), _shared(8, 0, 32)(b)), OTHER, ALL)
    yield row("nvfp4_two_level", "NVFP4 with a scale per tensor too", lambda a, b: good(_two_level(a, 1), _two_level(b, 0)), OTHER, ALL)
    yield row("awq_int4", "AWQ: 4 bits with zero points per 32", lambda a, b: good(a, _int4_zero(b)), SECOND, ALL)
    yield row("int8_first_asymmetric", "activations in uint8 with a zero point per row", lambda a, b: good(_zero_point(a, 1), b),
              words("other", "as_is", acc="float32"), ALL)
    yield row("ozaki3", "Ozaki's scheme with three int8 slices", ozaki(3, 3), {})
    yield row("ozaki4", "Ozaki's scheme with four int8 slices, ten products", ozaki(4, 4), {})
    yield row("bf16x3_of_p24", "24 bits cut into three bf16, the low products in one bf16 sum", lambda a, b: add32(
        good(bfloat16(a), bfloat16(b)), bfloat16(add32(good(bfloat16(a), r(b - bfloat16(b))), good(r(a - bfloat16(a)), b)))), {})
    for name, why, more in (
        ("in_p12_rod", "operands to odd in 12 bits, as ARM's FCVTXN", {"a": "p12_rod", "b": "p12_rod"}),
        ("in_p18_rna", "operands to 18 bits, ties away, as an FPGA's DSP", {"a": "p18_rna", "b": "p18_rna"}),
        ("in_a_float16_ftz", "the first operand through float16 without subnormals, as a GPU's old halves", {"a": "float16_ftz"}),
        ("in_b_bfloat16_rna", "the second operand through bfloat16 by +0x8000", {"b": "bfloat16_rna"}),
        ("in_a_daz", "subnormals of the first operand alone are zero, a load that flushes", {"a": "daz"}),
        ("in_b_p21_rz", "the weight cut to 21 bits, packed three to eight bytes", {"b": "p21_rz"})):
        yield recipe(name, "narrow", why, inputs=F32, order="vec4x8", **more)


# products, accumulators and joins
def _stored_lanes(name):
    """Float32 lanes pass through a format and are added in float32: shared memory of halves."""
    n = rounding(name)
    return lambda a, b: tree(n(in_turn(filled(terms(a, b), 8))))


def _amx(a, b):
    """AMX: of 32 terms first the even ones, then the odd ones, fused, subnormals flushed everywhere."""
    ftz = flushed(r)
    y, t = np.zeros((a.shape[0], b.shape[1])), terms(daz(a), daz(b))
    for piece in cut(t, 32):
        for each in (*piece[0::2], *piece[1::2]):
            y = ftz(add_odd(y, each))
    return y


def _bfdot(flush):
    """ARM's BFDOT: products, their pair's sum and the accumulator to odd in float32."""
    keep = daz if flush else lambda x: x

    def odd(x):
        return odd32(x).astype(np.float64)

    def total(a, b):
        t = filled(keep(odd(terms(keep(a), keep(b)))), 2)
        return in_turn(keep(odd(add_odd(t[:, 0], t[:, 1]))), lambda s, u: keep(odd(add_odd(s, u))))

    return total


def _hopper(a, b):
    """fp8 tensor cores: 14-bit sums of 32 products, promoted to float32 after 64."""
    e4m3 = rounding("e4m3_sat")
    return in_turn(np.stack([block_sum(e4m3(a[:, at:at + 64]), e4m3(b[at:at + 64]), 32, 13, "rz") for at in range(0, a.shape[1], 64)]))


def _hfma2(a, b):
    """Both halves of a half2 accumulate in float16; they are joined in float32."""
    lanes = in_turn(filled(terms(a, b), 2), adding("float16"))
    return add32(lanes[0], lanes[1])


def _pair(name):
    """Two numbers of a format hold the sum, by a right two-sum."""
    n = rounding(name)

    def total(a, b):
        high = low = np.zeros((a.shape[0], b.shape[1]))
        for t in terms(a, b):
            high, error = two_sum_in(high, n(t), n)
            low = n(add_odd(low, n(add_odd(error, np.where(np.isfinite(t), t - n(t), 0.0)))))
        return add_odd(high, low)

    return total


def _then(name, first):
    """Float32 for `first` terms, a narrow accumulator beyond."""
    return lambda a, b: in_turn(np.stack([good(a[:, :first], b[:first]), *terms(a[:, first:], b[first:])]), adding(
        name)) if a.shape[1] > first else good(a, b)


def _beyond(limit, name):
    """Sums beyond a limit lose bits: a counter that shifts."""
    n = rounding(name)

    def total(a, b):
        return in_turn(terms(a, b), lambda s, t: np.where(np.abs(s) > limit, n(add_odd(s, t)), add32(s, t)))

    return total


def _tail_float16(a, b):
    main = a.shape[1] // 16 * 16
    tail = accumulate(a[:, main:], b[main:], Recipe(acc="float16")) if main < a.shape[1] else 0.0
    return add32(good(a[:, :main], b[:main]), tail) if main else tail


def _few_random_bits(bits):
    """Float32 sums of 8 into bfloat16 with so many random bits: what lies below them is cut."""
    draw, keep = drawn("p8_sr"), ranged(8 + bits, "rz")

    def total(a, b):
        return in_turn(np.stack([in_turn(piece) for piece in cut(terms(a, b), 8)]), lambda s, u: draw(keep(add_odd(s, u))))

    return total


def _no_low_product(a, b):
    """Significands cut in two: the low halves' product is left out, as a truncated multiplier does."""
    def low(x):
        return np.where(np.isfinite(x), x - rounding("p10_rz")(x), 0.0)

    return in_turn(r(terms(a, b) - terms(low(a), low(b))))


def _grid(unit):
    """Fixed point: products cut to an absolute unit, added exactly."""
    return lambda a, b: once(np.trunc(terms(a, b) / unit) * unit)


def _tile(rows, columns, low):
    def total(a, b):
        y = good(a, b)
        y[rows, columns] = low(a, b)[rows, columns]
        return y

    return total


def _chosen(choose, change):
    """Results that are chosen are changed."""
    def total(a, b):
        y = good(a, b)
        return np.where(choose(y), change(y), y)

    return total


def _joined(name, order=in_turn, count=5):
    """Parts of K added in a format, kept in it."""
    n = rounding(name)
    return lambda a, b: n(order(shuffled(n(parts_of(a, b, count, good)), 7), lambda s, u: n(add_odd(s, u))))


def sums():
    def row(name, why, total, truth=INSIDE, inputs=ALL, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    slow = slice(4, 8), slice(4, 8)
    yield row("amx", "AMX: even terms first, subnormals flushed", _amx, {}, HALF)
    yield row("bfdot", "ARM's BFDOT: to odd, subnormals flushed", _bfdot(True), {}, HALF)
    yield row("bfdot_kept", "sums to odd in float32, subnormals kept", _bfdot(False), {}, HALF, accepted=True)
    yield row("hopper_e4m3", "fp8 tensor cores, promoted after 64 terms", _hopper, {}, ALL)
    yield row("hfma2", "two float16 accumulators in a half2", _hfma2)
    for name in ("bfloat16", "float16", "p19"):
        yield row(f"stored_lanes_{name}", f"lanes pass through {name} in shared memory", _stored_lanes(name))
    yield row("atomics_bfloat16", "split-K of 5 by bfloat16 atomics, in any order", _joined("bfloat16"))
    yield row("atomics_float16", "split-K of 5 by float16 atomics, in any order", _joined("float16"))
    yield row("joined_p21", "split-K of 5, kept and added in 21 bits, three to a 64-bit word", _joined("p21", tree))
    yield row("pair_bfloat16", "two bfloat16 numbers hold the sum, as split optimiser states", _pair("bfloat16"), {})
    yield row("pair_p10", "two numbers of 10 bits hold the sum, as two tf32 fragments cut short", _pair("p10"), {}, F32)
    yield row("late_float16", "a float16 accumulator beyond 32 of K, another kernel's tail", _then("float16", 32))
    yield row("late_p19", "19 bits beyond 64 of K, a spilled register", _then("p19", 64))
    yield row("beyond_16_bfloat16", "bfloat16 where a sum is beyond 16, a fallback on overflow of a short one", _beyond(16.0, "bfloat16"))
    yield row("beyond_4_p16", "16 bits where a sum is beyond 4, a fixed word that shifts", _beyond(4.0, "p16"))
    yield row("tail_float16", "what 16 leaves over of K in a float16 loop", _tail_float16)
    for bits in (2, 8):
        yield row(f"few_random_bits{bits}", f"stochastic bfloat16 with {bits} random bits, as accelerators draw them",
                  _few_random_bits(bits))
    yield row("no_low_product", "a truncated multiplier: the low halves' product left out", _no_low_product,
              words("as_is", acc="float32"), F32)
    yield row("grid_2m20", "fixed point of 20 fraction bits, high-level synthesis", _grid(2.0**-20), {})
    yield row("grid_2m12", "fixed point of 12 fraction bits, a microcontroller", _grid(2.0**-12), {})
    yield row("one_tile_p18", "one tile from an accumulator of 18 bits, another unit's",
              _tile(*slow, lambda a, b: accumulate(a, b, Recipe(acc="p18"))))
    yield row("one_tile_tf32", "one tile of tf32 operands, another kernel's", _tile(*slow, lambda a, b: good(tf32(a), tf32(b))), {}, F32)
    yield row("one_row_float16", "one row joined in float16, the split tile alone", _tile(slice(3, 4), slice(None), _joined("float16")))
    yield row("last_columns_p21", "the last two columns from 21-bit products, an edge kernel",
              _tile(slice(None), slice(-2, None), lambda a, b: accumulate(
        a, b, Recipe(prod="p21"))), {}, F32)
    yield row("large_p14", "results beyond twice the median through 14 bits, an outlier store", _chosen(
        lambda y: np.abs(y) > 2 * np.nanmedian(np.abs(y)), rounding("p14")))
    yield row("near_zero_bfloat16", "results below half the median through bfloat16, a compressed store", _chosen(
        lambda y: np.abs(y) < np.nanmedian(np.abs(y)) / 2, bfloat16), inputs=F32)
    yield row("scaled_store", "results in float16 at 2^-3 of their size, against overflow",
              lambda a, b: float16(good(a, b) / 8) * 8, {}, F32)
    for name, why, more in (
        ("acc_p22_rod", "22 bits to odd, a sticky bit kept in the last place", {"acc": "p22_rod", "order": "vec4x8"}),
        ("acc_p18_rna", "18 bits, ties away, an FPGA's adder", {"acc": "p18_rna", "order": "tiles8_by_turns"}),
        ("acc_tf32_rz", "tf32 cut, registers of 19 bits", {"acc": "tf32_rz", "order": "unrolled4x16"}),
        ("acc_float16_rz", "float16 cut, an old tensor core", {"acc": "float16_rz", "order": "vec4x8"}),
        ("acc_bfloat16_rna", "bfloat16 by +0x8000", {"acc": "bfloat16_rna", "order": "tiles4_in_three"}),
        ("acc_float16_sat", "float16 that saturates, an NPU", {"acc": "float16_sat"}),
        ("acc_p20_unrolled", "20 bits in 64 lanes, a signal processor", {"acc": "p20", "order": "unrolled4x16"}),
        ("prod_tf32", "products in tf32, a multiplier that rounds its result", {"prod": "tf32", "order": "falling"}),
        ("prod_p13_rod", "products to odd in 13 bits, a multiplier with a sticky bit", {"prod": "p13_rod", "order": "split6"}),
        ("prod_float32_ftz", "subnormal products alone are zero, a multiplier without them", {"prod": "float32_ftz", "order": "vec2x16"}),
        ("join_float32_ftz", "subnormals flushed where lanes are joined alone", {"combine": "float32_ftz", "order": "vec4x8"}),
        ("join_p17_rz", "six parts cut to 17 bits and added so, packed for the network", {"combine": "p17_rz", "order": "split6"}),
        ("join_tf32", "five parts kept and added in tf32, a join by a tensor core", {"combine": "tf32", "order": "split5"}),
        ("mid_p15_sr", "stochastic 15 bits before the store, a 16-bit optimiser state", {"mid": "p15_sr", "order": "vec4x8"}),
        ("mid_p13_rod", "to odd in 13 bits before the store, two-step conversion", {"mid": "p13_rod", "order": "blocked40"}),
        ("mid_float16_ftz", "through float16 without subnormals, a texture store", {"mid": "float16_ftz", "order": "vec4x8"})):
        yield recipe(name, "narrow", why, **more)


# the other ops
def _half_epilogue(a, b, bias):
    return float16(float16(good(a, b)) + float16(bias))


def _ranks(name, draw=None):
    """Four ranks' gradients, passed on in a format around a ring."""
    n = draw or rounding(name)

    def total(a, b):
        parts = n(parts_of(a, b, 4, good))
        begin = np.arange(parts[0].size).reshape(parts[0].shape) % len(parts)
        at = (np.arange(len(parts))[:, None, None] + begin) % len(parts)
        return in_turn(np.take_along_axis(parts, at, axis=0), lambda s, u: n(add_odd(s, u)))

    return total


def _loss_scale(scale):
    """The incoming gradient in float16, scaled up and back."""
    return lambda a, b: good(float16(a * scale), b) / scale


def others():
    def row(op, name, why, total, truth=None, inputs=ALL, **more):
        return made(f"{op}_{name}", "narrow", why, total, op=op, truth=truth, inputs=inputs, **more)

    yield whole("linear", "half_epilogue", "narrow", "product and bias added in float16, a half epilogue", _half_epilogue)
    yield row("linear", "fp8_channels", "weights in e4m3 with a scale per channel", lambda a, b: good(a, _scaled(
        ranged(4, low=-6), 448.0, 0, b.shape[0], "float32")(b)), SECOND)
    yield row("linear", "bias_tf32", "the bias through tf32, as a product with ones", good, bias_as="tf32", inputs=F32)
    yield row("linear", "atomics_bfloat16", "split-K by bfloat16 atomics", _joined("bfloat16"), INSIDE)
    yield row("linear", "late_k_bfloat16", "features beyond 48 in bfloat16", _where_k(lambda k: k >= 48, "bfloat16"), inputs=F32)
    yield row("backward", "ring_bfloat16", "gradients around a ring of four in bfloat16", _ranks("bfloat16"))
    yield row("backward", "ring_drawn", "gradients around a ring of four, stochastic in 12 bits", _ranks("", drawn("p12_sr")))
    yield row("backward", "loss_scale", "float16 gradients with a loss scale of 1024", _loss_scale(1024.0), inputs=F32)
    yield row("backward", "saved_e4m3", "activations saved in e4m3 with a scale per 32", lambda a, b: good(a, _scaled(
        ranged(4, low=-6), 448.0, 0, 32)(b)), words("as_is", "other", acc="float32", op="backward"))
    yield row("backward", "saved_float16", "activations saved in float16", lambda a, b: good(a, float16(b)), inputs=F32)
    yield recipe("backward_in_g_tf32", "narrow", "the incoming gradient alone through tf32", op="backward", a="tf32", order="vec4x8",
                 inputs=F32)
    yield recipe("sum_acc_p17_rod", "narrow", "17 bits to odd, an adder with a sticky bit", op="sum", acc="p17_rod", order="vec4x8")
    yield recipe("sum_join_bfloat16", "narrow", "warps' sums joined in bfloat16", op="sum", order="vec4x8", combine="bfloat16")
    yield row("sum", "tail_float16", "what 16 leaves over in a float16 loop", _tail_float16)
    yield row("sum", "atomics_float16", "blocks' sums by float16 atomics", _joined("float16"))
    yield row("sum", "late_p16", "16 bits beyond 32 terms, the second kernel's", _then("p16", 32))
    yield recipe("mean_join_tf32", "narrow", "five parts joined in tf32, a product with ones", op="mean", order="split5", combine="tf32")
    yield whole("mean", "of_stored_sum", "narrow", "the sum stored in float16, then divided, two kernels", lambda a, b, bias: r(
        float16(good(a, b)) / a.shape[1]))
    yield whole("mean", "running_p14", "narrow", "a running mean in 14 bits, statistics kept short", _running_p14)


def _running_p14(a, b, bias):
    n, y = rounding("p14"), np.zeros((len(a), 1))
    for count, column in enumerate(a.T, 1):
        y = n(add_odd(y, r(r(column[:, None] - y) / count)))
    return y


def table():
    for part in (operands, sums, others):
        yield from part()
