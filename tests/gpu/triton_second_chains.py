"""Sums, norms, softmax and activations of the second set (table_second.py), float32 inside unless a row states otherwise."""

import torch
import triton
import triton.language as tl
from launch import empty, launch
from triton.language.extra import libdevice

_FORMATS = {"float32": tl.float32, "bfloat16": tl.bfloat16, "float16": tl.float16}


@triton.jit
def plus(x, y):
    return x + y


@triton.jit
def sum_kernel(x, y, K, FORM: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    """One row per program. FORM tree: all of it as a tree in T; lanes: 32 sums in float32, added as a tree in T; rz: one by one, each
    sum cut; fixed: integers of 2^-40, whose sum is exact; coarse: integers of 2^-12; whole: tiles of BLOCK, the last partial one is
    not read; atomic: a tile per program, added in float32 by atomics."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if FORM == "lanes" or FORM == "whole":
        sums = tl.zeros((BLOCK, ), dtype=tl.float32)
        for tile in range(0, K // BLOCK if FORM == "whole" else tl.cdiv(K, BLOCK)):
            place = tile * BLOCK + at
            sums += tl.load(x + row * K + place, mask=place < K, other=0.0).to(tl.float32)
        tl.store(y + row, tl.reduce(sums.to(T), 0, plus).to(y.dtype.element_ty))
    elif FORM == "rz":
        total = tl.load(x + row * K).to(tl.float32)
        for k in range(1, K):
            term = tl.load(x + row * K + k).to(tl.float32)
            total = tl.inline_asm_elementwise("add.rz.f32 $0, $1, $2;", "=f,f,f", [total, term], dtype=tl.float32, is_pure=True, pack=1)
        tl.store(y + row, total.to(y.dtype.element_ty))
    elif FORM == "fixed" or FORM == "coarse":
        UNIT: tl.constexpr = 2.0**40 if FORM == "fixed" else 2.0**12
        values = tl.load(x + row * K + at, mask=at < K, other=0.0).to(tl.float64) * UNIT
        total = tl.sum(tl.floor(values + 0.5).to(tl.int64), 0)
        tl.store(y + row, (total.to(tl.float64) / UNIT).to(y.dtype.element_ty))
    elif FORM == "atomic":
        place = tl.program_id(1) * BLOCK + at
        values = tl.load(x + row * K + place, mask=place < K, other=0.0).to(tl.float32)
        tl.atomic_add(y + row, tl.sum(values, 0))
    else:
        values = tl.load(x + row * K + at, mask=at < K, other=0.0).to(T)
        tl.store(y + row, tl.reduce(values, 0, plus).to(y.dtype.element_ty))


@triton.jit
def two_to(t, DEGREE: tl.constexpr):
    """2^t for t <= 0 by a polynomial: of degree 3 on [0, 1) (some 13 bits), or of degree 8 on [-1/2, 1/2]."""
    t = tl.maximum(t, -120.0)
    if DEGREE == 3:
        n = tl.floor(t)
        f = t - n
        p = 1.0 + f * (0.695146143436431884765625 + f * (0.227564394474029541015625 + f * 0.077119089663028717041015625))
    else:
        n = tl.floor(t + 0.5)
        f = (t - n) * 0.6931471805599453
        p = 1.0 + f * (1.0 + f * (0.5 + f * (0.16666666666666666 + f * (0.041666666666666664 + f * (0.008333333333333333 + f * (
            0.001388888888888889 + f * (0.0001984126984126984 + f * 2.48015873015873e-05)))))))
    return p * ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def half_two_to(t):
    """2^t of float16 by the instruction for two of them."""
    return tl.inline_asm_elementwise("ex2.approx.f16x2 $0, $1;", "=r,r", [t], dtype=tl.float16, is_pure=True, pack=2)


@triton.jit
def softmax_kernel(x, y, K, FORM: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr):
    """The row at once. FORM says how an exponential is formed (natural: exp2 with log2(e) in float32; log2e_bf16: that constant in
    bfloat16; poly3, poly8; half: ex2.approx.f16x2), or that the maximum is rounded to bfloat16 (max_bf16: any will do), or that the
    quotient is a product with rcp.approx.ftz (rcp). SUM: the format of the sum."""
    LOG2E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < K
    values = tl.load(x + row * K + at, mask=inside, other=float("-inf")).to(tl.float32)
    largest = tl.max(values, 0)
    if FORM == "max_bf16":
        largest = largest.to(tl.bfloat16).to(tl.float32)
    t = values - largest
    if FORM == "log2e_bf16":
        e = tl.exp2(t * 1.4453125)
    elif FORM == "poly3":
        e = two_to(t * LOG2E, 3)
    elif FORM == "poly8":
        e = two_to(t * LOG2E, 8)
    elif FORM == "half":
        e = half_two_to((t * LOG2E).to(tl.float16)).to(tl.float32)
    else:
        e = tl.exp(t)
    e = tl.where(inside, e, 0.0)
    total = tl.reduce(e.to(SUM), 0, plus).to(tl.float32)
    if FORM == "rcp":
        total = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [total], dtype=tl.float32, is_pure=True, pack=1)
        quotient = e * total
    else:
        quotient = tl.div_rn(e, tl.zeros_like(e) + total)
    tl.store(y + row * K + at, quotient.to(y.dtype.element_ty), mask=inside)


@triton.jit
def online_kernel(x, y, K, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """One pass over tiles. FORM lazy: the maximum is taken on only where it grows by more than 4, and may be stale by that; forgotten:
    in the second tile it is taken on, but the sum of the first is not rescaled."""
    LOG2E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    m = tl.max(tl.load(x + row * K + at, mask=at < K, other=float("-inf")).to(tl.float32), 0)
    total = m * 0.0
    tiles = tl.cdiv(K, BLOCK)
    for tile in range(0, tiles):
        place = tile * BLOCK + at
        values = tl.load(x + row * K + place, mask=place < K, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(values, 0))
        if FORM == "lazy":
            new = tl.where(new - m > 4.0, new, m)
        alpha = tl.exp2((m - new) * LOG2E)
        if FORM == "forgotten":
            alpha = tl.where(tile == 1, 1.0, alpha)
        total = total * alpha + tl.sum(tl.exp2((values - new) * LOG2E), 0)
        m = new
    for tile in range(0, tiles):
        place = tile * BLOCK + at
        values = tl.load(x + row * K + place, mask=place < K, other=float("-inf")).to(tl.float32)
        e = tl.exp2((values - m) * LOG2E)
        tl.store(y + row * K + place, tl.div_rn(e, tl.zeros_like(e) + total).to(y.dtype.element_ty), mask=place < K)


@triton.jit
def merged(mean, m2, count, other_mean, other_m2, other_count):
    """Welford's mean, sum of squares and count of two parts."""
    both = count + other_count
    share = tl.where(both == 0.0, 0.0, tl.div_rn(other_count, tl.where(both == 0.0, 1.0, both)))
    delta = other_mean - mean
    return mean + delta * share, m2 + other_m2 + delta * delta * count * share, both


@triton.jit
def norm_kernel(x, w, b, y, K, eps, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """Layer norm of a row. FORM welford: parts merged as a tree; halves_bf16: E[x^2] and E[x] in bfloat16, variance their difference;
    affine_bf16: the normalised value, its product with the weight and the sum with the bias each rounded to bfloat16; pivot:
    E[d^2] - E[d]^2 of the distances d from the row's first element."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < K
    values = tl.load(x + row * K + at, mask=inside, other=0.0).to(tl.float32)
    if FORM == "welford":
        count = tl.where(inside, 1.0, 0.0)
        mean, m2, both = tl.reduce((values, tl.zeros_like(values), count), 0, merged)
        variance = m2 / K
    elif FORM == "halves_bf16":
        mean = (tl.sum(values, 0) / K).to(tl.bfloat16).to(tl.float32)
        square = (tl.sum(values * values, 0) / K).to(tl.bfloat16).to(tl.float32)
        variance = tl.maximum(square - mean * mean, 0.0)
    elif FORM == "pivot":
        pivot = tl.load(x + row * K).to(tl.float32)
        d = tl.where(inside, values - pivot, 0.0)
        off = tl.sum(d, 0) / K
        variance = tl.sum(d * d, 0) / K - off * off
        mean = pivot + off
    else:
        mean = tl.sum(values, 0) / K
        d = tl.where(inside, values - mean, 0.0)
        variance = tl.sum(d * d, 0) / K
    inverse = 1.0 / tl.sqrt_rn(variance + eps)
    weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
    r = (values - mean) * inverse
    if FORM == "affine_bf16":
        r = r.to(tl.bfloat16).to(tl.float32) * weight.to(tl.bfloat16).to(tl.float32)
        r = (r.to(tl.bfloat16).to(tl.float32) + bias.to(tl.bfloat16).to(tl.float32)).to(tl.bfloat16).to(tl.float32)
    else:
        r = r * weight + bias
    tl.store(y + row * K + at, r.to(y.dtype.element_ty), mask=inside)


@triton.jit
def rms_kernel(x, w, y, K, eps, FORM: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """FORM root_bf16: the inverse root in bfloat16; newton: by the integer guess and STEPS steps; one_plus: the weight is 1 + w; no_eps:
    eps is left out."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < K
    values = tl.load(x + row * K + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values * values, 0) / K
    if FORM != "no_eps":
        mean += eps
    if FORM == "newton":
        inverse = (0x5F3759DF - (mean.to(tl.int32, bitcast=True) >> 1)).to(tl.float32, bitcast=True)
        for _ in tl.static_range(STEPS):
            inverse = inverse + 0.5 * inverse * (1.0 - mean * inverse * inverse)
    else:
        inverse = 1.0 / tl.sqrt_rn(mean)
    if FORM == "root_bf16":
        inverse = inverse.to(tl.bfloat16).to(tl.float32)
    weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    if FORM == "one_plus":
        weight += 1.0
    tl.store(y + row * K + at, (values * inverse * weight).to(y.dtype.element_ty), mask=inside)


@triton.jit
def activation_kernel(x, y, n, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """gelu_erfc: x / 2 erfc(-x / sqrt 2); gelu_bf16: erf of an argument rounded to bfloat16; silu_double: in float64; silu_factor: x is
    rounded to bfloat16 where it multiplies; silu_half: each step rounded to float16; silu_hard: x clip(x / 6 + 1 / 2, 0, 1)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    if FORM == "gelu_erfc":
        r = 0.5 * v * libdevice.erfc(v * -0.7071067811865476)
    elif FORM == "gelu_bf16":
        r = 0.5 * v * (1.0 + tl.erf((v * 0.7071067811865476).to(tl.bfloat16).to(tl.float32)))
    elif FORM == "silu_double":
        d = v.to(tl.float64)
        r = d / (1.0 + tl.exp(-d))
    elif FORM == "silu_factor":
        r = v.to(tl.bfloat16).to(tl.float32) * tl.div_rn(tl.zeros_like(v) + 1.0, 1.0 + tl.exp(-v))
    elif FORM == "silu_half":
        e = half_two_to((v.to(tl.float16).to(tl.float32) * -1.4426950408889634).to(tl.float16)).to(tl.float32)
        s = tl.div_rn(tl.zeros_like(v) + 1.0, (1.0 + e).to(tl.float16).to(tl.float32)).to(tl.float16).to(tl.float32)
        r = (v.to(tl.float16).to(tl.float32) * s).to(tl.float16).to(tl.float32)
    else:
        r = v * tl.minimum(tl.maximum(v * 0.16666666666666666 + 0.5, 0.0), 1.0)
    tl.store(y + at, r.to(y.dtype.element_ty), mask=at < n)


def _block(k):
    return max(16, triton.next_power_of_2(k))


def sums(call, form, of="float32", block=None, long=0):
    """long: the format `of` is kept for rows longer than that."""
    x = call.operands[0]
    m, k = x.shape
    atomic = form == "atomic"
    y = torch.zeros(m, dtype=call.dtype, device=x.device) if atomic else empty(x, (m, ), call.dtype)
    block = block or _block(k)
    of = _FORMATS[of if k > long else "float32"]
    launch(sum_kernel, (m, triton.cdiv(k, block)) if atomic else (m, ), x, y, k, FORM=form, T=of, BLOCK=block,
           num_warps=1 if form in ("lanes", "rz", "atomic") else 4)
    return y


def softmax(call, form="natural", of="float32", long=0):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    of = _FORMATS[of if x.shape[1] > long else "float32"]
    launch(softmax_kernel, (x.shape[0], ), x, y, x.shape[1], FORM=form, SUM=of, BLOCK=_block(x.shape[1]), num_warps=2)
    return y


def online(call, form):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    launch(online_kernel, (x.shape[0], ), x, y, x.shape[1], FORM=form, BLOCK=32, num_warps=1)
    return y


def layer_norm(call, form):
    x, w, b = call.operands
    y = empty(x, x.shape, call.dtype)
    launch(norm_kernel, (x.shape[0], ), x, w, b, y, x.shape[1], call.attrs["eps"], FORM=form, BLOCK=_block(x.shape[1]), num_warps=4,
           enable_fp_fusion=form != "affine_bf16")
    return y


def rms_norm(call, form, steps=0):
    x, w = call.operands
    y = empty(x, x.shape, call.dtype)
    launch(rms_kernel, (x.shape[0], ), x, w, y, x.shape[1], call.attrs["eps"], FORM=form, STEPS=steps, BLOCK=_block(x.shape[1]), num_warps=4)
    return y


def activation(call, form):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    launch(activation_kernel, (triton.cdiv(x.numel(), 256), ), x, y, x.numel(), FORM=form, BLOCK=256, num_warps=4)
    return y
