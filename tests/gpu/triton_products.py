"""Matrix products in Triton. Each function is what a row of table.py calls: run(call, **arguments of the row) -> the stored result."""

import torch
import triton
import triton.language as tl
from launch import BF16, F16, F32, F64, FP8, empty, launch

_FORMATS = {"float32": tl.float32, "bfloat16": tl.bfloat16, "float16": tl.float16, "int32": tl.int32}
_TORCH = {"float32": F32, "bfloat16": BF16, "float16": F16}
cdiv = triton.cdiv


@triton.jit
def dot_kernel(a, b, c, M, N, K, taken, sbk, sbn, PREC: tl.constexpr, IMPRECISE: tl.constexpr, ACC: tl.constexpr, KEPT: tl.constexpr,
               EVERY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """tl.dot over tiles of K into one accumulator of format ACC, rounded to KEPT after each EVERY tiles (0: never); the first `taken`
    products alone are read."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for tile in range(0, tl.cdiv(taken, BK)):
        ks = tile * BK + inner
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < taken), other=0.0)
        w = tl.load(b + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks[:, None] < taken) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc, input_precision=PREC, max_num_imprecise_acc=IMPRECISE, out_dtype=ACC)
        if EVERY > 0:
            if (tile + 1) % EVERY == 0:
                acc = acc.to(KEPT).to(ACC)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def integer_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """int8 products, summed in int32: exact."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for tile in range(0, tl.cdiv(K, BK)):
        ks = tile * BK + inner
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0)
        w = tl.load(b + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0)
        acc = tl.dot(x, w, acc, out_dtype=tl.int32)
    tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def mixed_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """float32 everywhere, but for the tile at (1, 1), whose operands are taken in TF32."""
    at, beside = tl.program_id(0), tl.program_id(1)
    rows = at * BM + tl.arange(0, BM)
    cols = beside * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tile in range(0, tl.cdiv(K, BK)):
        ks = tile * BK + inner
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        w = tl.load(b + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        if at * beside == 1:
            acc = tl.dot(x, w, acc, input_precision="tf32")
        else:
            acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def part_kernel(a, b, work, M, N, K, length, ATOMIC: tl.constexpr, PREC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    """One contiguous part of K per program, summed in float32; stored in the format of `work`, or added to it by atomics."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    inner = tl.arange(0, BK)
    end = tl.minimum(K, (part + 1) * length)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tile in range(0, tl.cdiv(length, BK)):
        ks = part * length + tile * BK + inner
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < end), other=0.0)
        w = tl.load(b + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < end) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc, input_precision=PREC)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    if ATOMIC:
        tl.atomic_add(work + rows[:, None] * N + cols[None, :], acc, mask=inside)
    else:
        tl.store(work + part * M * N + rows[:, None] * N + cols[None, :], acc.to(work.dtype.element_ty), mask=inside)


@triton.jit
def step_kernel(a, b, c, M, N, K, FORM: tl.constexpr, T: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """CUDA cores: one product per output at a time, in the order of K. FORM wide: multiply and add in T (one rounding where fp_fusion
    makes an fma of it); fma: one fused multiply-add in T; via: added in float32, then rounded to T; rounded: so, and the product is
    rounded to T before (without fp_fusion, which would take that rounding away)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=T)
    for k in range(0, K):
        x = tl.load(a + rows * K + k, mask=rows < M, other=0.0)
        w = tl.load(b + k * N + cols, mask=cols < N, other=0.0)
        if FORM == "wide":
            acc = acc + x.to(T)[:, None] * w.to(T)[None, :]
        elif FORM == "fma":
            wide_x, wide_w = tl.broadcast(x.to(T)[:, None], w.to(T)[None, :])
            acc = tl.fma(wide_x, wide_w, acc)
        else:
            product = x.to(tl.float32)[:, None] * w.to(tl.float32)[None, :]
            if FORM == "rounded":
                product = product.to(T).to(tl.float32)
            acc = (acc.to(tl.float32) + product).to(T)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def tree_kernel(a, b, c, M, N, K, SPREAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """float32 products, those of a tile summed as a tree, the tiles one after the other. SPREAD: elements are loaded once for each
    product; otherwise Triton finds a matrix product in tl.sum of a product of broadcasts, and takes its operands in TF32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tile in range(0, tl.cdiv(K, BK)):
        ks = tile * BK + inner
        w = tl.load(b + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0).to(tl.float32)
        if SPREAD:
            at = rows[:, None, None] * K + ks[None, :, None] + 0 * cols[None, None, :]
            x = tl.load(a + at, mask=(rows[:, None, None] < M) & (ks[None, :, None] < K) & (cols[None, None, :] >= 0), other=0.0)
            acc += tl.sum(x.to(tl.float32) * w[None, :, :], axis=1)
        else:
            x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0).to(tl.float32)
            acc += tl.sum(x[:, :, None] * w[None, :, :], axis=1)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def _product(a, b, out, prec="ieee", imprecise=None, acc="float32", kept="float32", every=0, taken=None, block=(64, 64, 64), k_major=False):
    """The stored product of contiguous a [M, K] and b [K, N]."""
    m, k = a.shape
    n = b.shape[1]
    c = empty(a, (m, n), out)
    if k_major:
        b = b.t().contiguous().t()
    launch(dot_kernel, (cdiv(m, block[0]), cdiv(n, block[1])), a, b, c, m, n, k, k if taken is None else taken, b.stride(0), b.stride(1),
           PREC=prec, IMPRECISE=imprecise, ACC=_FORMATS[acc], KEPT=_FORMATS[kept], EVERY=every, BM=block[0], BN=block[1], BK=block[2],
           num_warps=4)
    return c


def dot(call, operands=None, mid=None, **how):
    """operands: a format that both are rounded to before; mid: one that the float32 sum is rounded to before the store."""
    a, b = call.operands
    if operands:
        a, b = (x if name is None else x.to(_TORCH[name]) for x, name in zip((a, b), operands))
        a, b = (x if x.dtype == y.dtype else x.to(F32) for x, y in ((a, b), (b, a)))
    if mid:
        return _product(a, b, F32, **how).to(_TORCH[mid]).to(call.dtype)
    return _product(a, b, call.dtype, **how)


def short(call, left_out, block=64):
    """left_out: how many of the last products are not taken; "tile": those beyond the last whole tile."""
    a, b = call.operands
    k = a.shape[1]
    return _product(a, b, call.dtype, taken=k // block * block if left_out == "tile" else k - left_out, block=(64, 64, block))


def mixed(call):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), F32)
    launch(mixed_kernel, (cdiv(m, 32), cdiv(n, 32)), a, b, c, m, n, k, BM=32, BN=32, BK=32, num_warps=4)
    return c


def parts(call, count, work, added="float32"):
    """Split-K. work: the format of the workspace, or "atomic"; added: the format in which the parts are added, in their order."""
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    atomic = work == "atomic"
    length = cdiv(k, count)
    kept = torch.zeros((m, n), dtype=F32, device=a.device) if atomic else empty(a, (count, m, n), _TORCH[work])
    launch(part_kernel, (cdiv(m, 64), cdiv(n, 64), count), a, b, kept, m, n, k, length, ATOMIC=atomic, PREC="ieee", BM=64, BN=64, BK=16,
           num_warps=4)
    if atomic:
        return kept.to(call.dtype)
    total = kept[0].to(_TORCH[added])
    for part in kept[1:]:
        total = total + part.to(_TORCH[added])
    return total.to(call.dtype)


def steps(call, form, of, fusion=True):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), call.dtype)
    formats = {**_FORMATS, "float64": tl.float64}
    launch(step_kernel, (cdiv(m, 16), cdiv(n, 16)), a, b, c, m, n, k, FORM=form, T=formats[of], BM=16, BN=16, num_warps=1,
           enable_fp_fusion=fusion)
    return c


def tree(call, spread=True):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), call.dtype)
    launch(tree_kernel, (cdiv(m, 16), cdiv(n, 16)), a, b, c, m, n, k, SPREAD=spread, BM=16, BN=16, BK=32, num_warps=4)
    return c


def _scaled(x, largest, dim):
    """x over a scale by which its largest element (of all, or along dim) is `largest`, and the scale."""
    x = x.to(F32)
    size = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    scale = size / largest
    return x / scale, scale


def float8(call, imprecise=None):
    """Operands in e4m3, one scale for each tensor."""
    (a, one), (b, other) = (_scaled(x, 448.0, None) for x in call.operands)
    return (_product(a.to(FP8), b.to(FP8), F32, imprecise=imprecise, k_major=True) * (one * other)).to(call.dtype)


def integers(call):
    """Operands in int8, one scale for each row of the first and column of the second; the sum is exact."""
    (a, one), (b, other) = _scaled(call.operands[0], 127.0, 1), _scaled(call.operands[1], 127.0, 0)
    a, b = (x.round().clamp(-127, 127).to(torch.int8) for x in (a, b))
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros((m, n), dtype=torch.int32, device=a.device)
    launch(integer_kernel, (cdiv(m, 64), cdiv(n, 64)), a, b, c, m, n, k, BM=64, BN=64, BK=64, num_warps=4)
    return (c.to(F32) * one * other).to(call.dtype)


def added(call, mid="float32"):
    """linear: the product, rounded to `mid`, then the bias in float32, then the store."""
    x, w, bias = call.operands
    product = _product(x, w.t().contiguous(), F32)
    return (product.to(_TORCH[mid]).to(F32) + bias.to(F32)).to(call.dtype)


def scaled(call, mid="float32"):
    """addmm: alpha times the product as rounded to `mid`, plus the addend."""
    bias, a, b = call.operands
    product = _product(a, b, F32).to(_TORCH[mid]).to(F32)
    return (product * call.attrs["alpha"] + bias.to(F32)).to(call.dtype)


__all__ = ["F64", "added", "dot", "float8", "integers", "mixed", "parts", "scaled", "short", "steps", "tree"]
