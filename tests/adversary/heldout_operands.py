"""Held out: operands in formats that share exponents, have tables, zero points or no significand at all, and split operands."""

import numpy as np
from heldout_tools import ALL, F32, HALF, add32, blockwise, good, largest, made, recipe, words
from rounding import bfloat16, float16, float32, ranged, rounding

OTHER = words("other", acc="float32")
SECOND = words("as_is", "other", acc="float32")
NF4 = np.array([-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.0795803, 0.1609302,
                0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1.0])


def _posit(bits, es):
    """Posits of `bits` bits: the further from 1, the fewer fraction bits."""
    def convert(x):
        with np.errstate(all="ignore"):
            e = np.frexp(x)[1] - 1
            regime = np.floor(e / 2.0**es)
            fraction = np.clip(bits - 1 - es - np.where(regime >= 0, regime + 2, 1 - regime), 0, None)
            quantum = 2.0**(e - fraction)
            reach = 2.0**((bits - 2) * 2**es)
            y = np.where(x == 0, 0.0, np.copysign(np.clip(np.abs(np.rint(x / quantum) * quantum), 1 / reach, reach), x))
        return np.where(np.isfinite(x), y, np.nan)

    return convert


def _logarithms(fraction):
    """Numbers held as a sign and a logarithm to base 2 of so many fraction bits."""
    def convert(x):
        with np.errstate(all="ignore"):
            size = 2.0**(np.rint(np.log2(np.abs(x)) * 2.0**fraction) / 2.0**fraction)
        return np.where(np.isfinite(x) & (x != 0), np.copysign(size, x), x)

    return convert


def _scaled(element, reach, axis, size, scale="power"):
    """Blocks of `size`: one scale (a power of two, or so that the largest becomes `reach`), elements by `element`."""
    def change(x):
        def blocks(v):
            top = largest(v)
            if scale == "power":
                unit = 2.0**(np.frexp(top)[1] - np.frexp(reach)[1])
            else:
                unit = rounding(scale)(top / reach)
                unit = np.where(unit > 0, unit, 1.0)
            return np.clip(element(np.clip(v / unit, -reach, reach)), -reach, reach) * unit

        return blockwise(x, axis, size, blocks)

    return change


def _shared(bits, axis, size, cut=False):
    """Block floating point: one exponent for `size` elements of `bits` bits with their signs."""
    def change(x):
        def blocks(v):
            unit = 2.0**(np.frexp(largest(v))[1] - (bits - 1))
            return np.clip((np.trunc if cut else np.rint)(v / unit), -2**(bits - 1) + 1, 2**(bits - 1) - 1) * unit

        return blockwise(x, axis, size, blocks)

    return change


def _zero_point(x, axis=None):
    """Unsigned 8-bit integers with a scale and a zero point."""
    finite = np.where(np.isfinite(x), x, 0.0)
    low, high = (np.minimum(finite.min(axis=axis, keepdims=True), 0.0), np.maximum(finite.max(axis=axis, keepdims=True), 0.0))
    scale = float32(np.where(high > low, (high - low) / 255.0, 1.0))
    scale = np.where(scale > 0, scale, 1.0)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def _nf4(x, axis):
    def blocks(v):
        top = largest(v)
        near = np.abs((v / top)[..., None] - NF4)
        return np.where(np.isfinite(v), NF4[near.argmin(axis=-1)], np.nan) * top

    return blockwise(x, axis, 64, blocks)


def _ternary(x, axis):
    size = np.where(np.isfinite(x), np.abs(x), 0.0).mean(axis=axis, keepdims=True)
    return np.clip(np.rint(x / np.where(size > 0, size, 1.0)), -1, 1) * size


def _two_of_four(x, axis):
    """The two largest of every four."""
    def blocks(v):
        return np.where(np.argsort(np.argsort(-np.abs(v), axis=-1, kind="stable"), axis=-1) < 2, v, 0.0)

    return blockwise(x, axis, 4, blocks)


def _small_left_out(limit):
    return lambda x: np.where(np.abs(x) < limit * largest(x, None), 0.0, x)


def _clipped(limit):
    return lambda x: np.clip(x, -limit, limit)


def _drawn_bfloat16(x):
    p8 = rounding("p8_sr")
    return np.where(np.isfinite(x), p8(x), x)


def _by(first, second=None):
    return lambda a, b: good(first(a) if first else a, (second or first)(b))


def _along(change, *rest, **more):
    """A change along the axis of the sum, of both operands."""
    return lambda a, b: good(change(a, 1, *rest, **more), change(b, 0, *rest, **more))


def _block(maker, *rest, **more):
    def total(a, b):
        size = rest[-1]
        return good(maker(*rest[:-1], 1, size, **more)(a), maker(*rest[:-1], 0, size, **more)(b))

    return total


def _parts(x, narrow, count):
    pieces = []
    for _ in range(count):
        pieces.append(narrow(x))
        x = np.where(np.isfinite(pieces[-1]), x - pieces[-1], 0.0)
    return pieces


def _passes(narrow, pairs, count=2, lift=1.0):
    """Products of the pieces, the smallest first, each a float32 sum. lift: by what the second pieces are scaled up meanwhile."""
    def total(a, b):
        if lift != 1.0:
            high_a, high_b = narrow(a), narrow(b)
            a = [high_a, narrow((a - high_a) * lift)]
            b = [high_b, narrow((b - high_b) * lift)]
        else:
            a, b = _parts(a, narrow, count), _parts(b, narrow, count)
        y = None
        for i, j in pairs:
            one = good(a[i], b[j]) * lift**-(i + j)
            y = one if y is None else add32(y, one)
        return y

    return total


def _three_for_four(narrow):
    """(ah + al)(bh + bl) - ah bh - al bl in place of the cross products, as complex numbers are multiplied by three products."""
    def total(a, b):
        (high_a, low_a), (high_b, low_b) = _parts(a, narrow, 2), _parts(b, narrow, 2)
        high, low = good(high_a, high_b), good(low_a, low_b)
        crossed = good(narrow(high_a + low_a), narrow(high_b + low_b))
        return add32(high, add32(low, add32(add32(crossed, -high), -low)))

    return total


def table():
    def both(name, why, total, truth=OTHER, inputs=ALL, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    e2m1, e2m3, e3m2, e4m3 = (ranged(2, low=0), ranged(4, low=0), ranged(3, low=-2), ranged(4, low=-6))
    yield both("posit16", "operands are posits of 16 bits", _by(_posit(16, 1)), inputs=F32)
    yield both("posit8", "operands are posits of 8 bits", _by(_posit(8, 1)))
    yield both("posit16_weight", "the second operand is made of posits of 16 bits", _by(None, _posit(16, 2)), SECOND, F32)
    yield both("logarithms7", "operands are logarithms of 7 fraction bits", _by(_logarithms(7)))
    yield both("logarithms14", "operands are logarithms of 14 fraction bits", _by(_logarithms(14)), inputs=F32)
    yield both("mxfp8", "e4m3 with a power of two per 32", _block(_scaled, e4m3, 448.0, 32))
    yield both("mxfp6_e2m3", "e2m3 with a power of two per 32", _block(_scaled, e2m3, 7.5, 32))
    yield both("mxfp6_e3m2", "e3m2 with a power of two per 32", _block(_scaled, e3m2, 28.0, 32))
    yield both("mxfp4", "e2m1 with a power of two per 32", _block(_scaled, e2m1, 6.0, 32))
    yield both("nvfp4", "e2m1 with an e4m3 scale per 16", _block(_scaled, e2m1, 6.0, 16, scale="e4m3_sat"))
    yield both("fp8_scaled", "e4m3 with a float32 scale per 64", _block(_scaled, e4m3, 448.0, 64, scale="float32"))
    yield both("weight_fp6", "the second operand in e3m2 with a float16 scale per 16",
               lambda a, b: good(a, _scaled(e3m2, 28.0, 0, 16, "float16")(b)), SECOND)
    yield both("shared8", "8 bits and one exponent per 16", _block(_shared, 8, 16))
    yield both("shared12_cut", "12 bits, cut, and one exponent per 16", lambda a, b: good(_shared(12, 1, 16, True)(a),
                                                                                        _shared(12, 0, 16, True)(b)))
    yield both("shared16", "16 bits and one exponent per 32", _block(_shared, 16, 32), inputs=F32)
    yield both("shared24", "24 bits and one exponent per 32", _block(_shared, 24, 32), inputs=F32)
    yield both("zero_point", "8-bit integers with zero points", _by(_zero_point))
    yield both("zero_point_channel", "8-bit integers, a zero point per channel of the second operand",
               lambda a, b: good(a, _zero_point(b, 0)), SECOND)
    yield both("int4_groups", "4-bit integers, a scale per 32, of the second operand",
               lambda a, b: good(a, _scaled(np.rint, 7.0, 0, 32, "float16")(b)), SECOND)
    yield both("int16_channel", "16-bit integers, a scale per row of products", lambda a, b: good(
        _scaled(np.rint, 32767.0, 1, a.shape[1], "float32")(a), _scaled(np.rint, 32767.0, 0, a.shape[1], "float32")(b)), inputs=F32)
    yield both("nf4", "the second operand from a table of 16", lambda a, b: good(a, _nf4(b, 0)), SECOND)
    yield both("ternary", "the second operand is -1, 0 or 1 times a scale", lambda a, b: good(a, _ternary(b, 0)), SECOND)
    yield both("two_of_four", "the second operand pruned to two of four", lambda a, b: good(a, _two_of_four(b, 0)), {})
    yield both("small_left_out", "elements below 2^-6 of the largest are zero", _by(_small_left_out(2.0**-6)), {})
    yield both("tiny_left_out", "elements below 2^-10 of the largest are zero", _by(_small_left_out(2.0**-10)), {})
    yield both("clipped", "elements clipped to 3", _by(_clipped(3.0)), {})
    yield both("drawn_bfloat16", "operands stochastically rounded to bfloat16", _by(_drawn_bfloat16), inputs=F32)
    yield both("float16_scaled", "float16 operands of 2^-8 times the size", _by(lambda x: float16(x * 2.0**-8) * 2.0**8), {}, F32)
    yield both("odd_terms_bfloat16", "every other product of bfloat16 operands", lambda a, b: good(
        np.where(np.arange(a.shape[1]) % 2, bfloat16(a), a), b), words("other", "as_is", acc="float32"), F32)
    yield both("large_bfloat16", "elements above 1 through bfloat16", _by(lambda x: np.where(np.abs(x) > 1, bfloat16(x), x)),
               inputs=F32)
    yield both("negative_tf32", "negative elements through tf32", _by(lambda x: np.where(x < 0, ranged(11)(x), x)), inputs=F32)
    yield recipe("in_p23", "narrow", "the first operand without its last bit", inputs=F32, a="p23_rz", order="lanes12")
    yield recipe("mixed_formats", "narrow", "e5m2 times bfloat16", a="e5m2_sat", b="bfloat16")
    yield recipe("float16_by_tf32", "narrow", "float16 times tf32", inputs=F32, a="float16", b="tf32", order="lanes6")
    tf32 = ranged(11)
    for name, why, total in (
        ("bf16_cross_missing", "bf16 high and low, one cross product missing", _passes(bfloat16, [(1, 0), (0, 0)])),
        ("tf32_cross_missing", "tf32 high and low, one cross product missing", _passes(tf32, [(0, 1), (0, 0)])),
        ("bf16_second_cross_missing", "three pieces of bf16, a second-order product missing",
         _passes(bfloat16, [(1, 1), (2, 0), (1, 0), (0, 1), (0, 0)], 3)),
        ("bf16_eight", "three pieces of bf16, eight of nine products",
         _passes(bfloat16, [(2, 1), (1, 2), (2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0)], 3)),
        ("float16_lifted", "float16 high and low, the low ones lifted by 2^11", _passes(float16, [(1, 0), (0, 1), (0, 0)],
                                                                                   lift=2.0**11)),
        ("float16_low_lost", "float16 high and low, neither scaled", _passes(float16, [(1, 0), (0, 1), (0, 0)])),
        ("bf16_large_first", "bf16 high and low, the large products first", _passes(bfloat16, [(0, 0), (0, 1), (1, 0)])),
        ("bf16_three_for_four", "three bf16 products in place of four", _three_for_four(bfloat16)),
        ("tf32_three_for_four", "three tf32 products in place of four", _three_for_four(tf32))):
        yield both(name, why, total, {}, F32)
    yield both("linear_nf4", "the weight from a table of 16", lambda a, b: good(a, _nf4(b, 0)), SECOND, op="linear")
    yield both("linear_int4", "the weight in 4-bit integers, a scale per 32", lambda a, b: good(
        a, _scaled(np.rint, 7.0, 0, 32, "float16")(b)), SECOND, op="linear")
    yield both("linear_mxfp8", "activations in e4m3 with a power of two per 32", lambda a, b: good(
        _scaled(e4m3, 448.0, 1, 32)(a), b), words("other", "as_is", acc="float32"), op="linear")
    yield both("backward_shared8", "the incoming gradient with one exponent per 16", lambda a, b: good(
        _shared(8, 1, 16)(a), b), words("other", "as_is", acc="float32", op="backward"), op="backward")
    yield both("backward_clipped", "the incoming gradient clipped to 1", lambda a, b: good(np.clip(a, -1, 1), b), {}, op="backward")
    yield both("sum_shared8", "terms with one exponent per 16", lambda a, b: good(_shared(8, 1, 16)(a), b),
               words("other", acc="float32", op="sum"), HALF + F32, op="sum")
