"""Matrix products of the second set (table_second.py): run(call, **arguments of the row) -> the stored result."""

import torch
import triton
import triton.language as tl
from launch import BF16, F16, F32, FP8, empty, launch
from triton_products import _product, _scaled

_FORMATS = {"float32": tl.float32, "bfloat16": tl.bfloat16, "float16": tl.float16}
_TORCH = {"float32": F32, "bfloat16": BF16, "float16": F16}
cdiv = triton.cdiv


@triton.jit
def plus(x, y):
    return x + y


@triton.jit
def first_of(a, rows, ks, M, K, end):
    """A tile of the first operand [M, K], zero from `end` on."""
    return tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < end), other=0.0)


@triton.jit
def second_of(b, ks, cols, N, sbk, sbn, end):
    return tl.load(b + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks[:, None] < end) & (cols[None, :] < N), other=0.0)


@triton.jit
def truncated(x, DROPPED: tl.constexpr):
    """float32 without its last DROPPED bits: towards zero."""
    return ((x.to(tl.int32, bitcast=True) >> DROPPED) << DROPPED).to(tl.float32, bitcast=True)


@triton.jit
def tile_kernel(a, b, bias, c, M, N, K, sbk, sbn, FORM: tl.constexpr, LIMIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """tl.dot over tiles of K into float32. FORM says what is done otherwise:
    reversed       the last tile comes first
    float64        the sums of tiles are added in float64
    fresh          each tile has an accumulator of its own, which is then added in float32
    widened        operands are widened to bfloat16, which holds them
    bias           the accumulator begins with the bias
    last_bf16      operands of the last tile are rounded to bfloat16
    one_program    the program at (1, 0) rounds its accumulator to bfloat16 after each tile
    triggered      operands of a tile are rounded to bfloat16 where the largest of the first is above LIMIT
    half_k         the first half of K is summed in float16
    stale          the last tile multiplies the first operand of the tile before
    column         the last column of the second operand is read one too early
    store_rz       the result is cut, not rounded, at the store
    mid_rz         the result is cut to bfloat16 before the store"""
    at, beside = tl.program_id(0), tl.program_id(1)
    rows = at * BM + tl.arange(0, BM)
    cols = beside * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    tiles = tl.cdiv(K, BK)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    read = tl.minimum(cols, N - 2) if FORM == "column" else cols
    acc = tl.zeros((BM, BN), dtype=tl.float64 if FORM == "float64" else tl.float32)
    if FORM == "bias":
        acc += tl.load(bias + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    begin = 0
    if FORM == "half_k":
        begin = tiles // 2
        low = tl.zeros((BM, BN), dtype=tl.float16)
        for tile in range(0, begin):
            ks = tile * BK + inner
            low = tl.dot(first_of(a, rows, ks, M, K, K), second_of(b, ks, cols, N, sbk, sbn, K), low, out_dtype=tl.float16)
        acc = low.to(tl.float32)
    for step in range(begin, tiles):
        tile = tiles - 1 - step if FORM == "reversed" else step
        ks = tile * BK + inner
        if FORM == "stale":
            x = first_of(a, rows, tl.minimum(tile, tl.maximum(tiles - 2, 0)) * BK + inner, M, K, K)
        else:
            x = first_of(a, rows, ks, M, K, K)
        w = second_of(b, ks, read, N, sbk, sbn, K)
        if FORM == "widened":
            acc = tl.dot(x.to(tl.bfloat16), w.to(tl.bfloat16), acc)
        elif FORM == "float64":
            acc += tl.dot(x, w, input_precision="ieee").to(tl.float64)
        elif FORM == "fresh":
            acc += tl.dot(x, w, input_precision="ieee")
        else:
            if FORM == "last_bf16":
                if tile == tiles - 1:
                    x = x.to(tl.bfloat16).to(tl.float32)
                    w = w.to(tl.bfloat16).to(tl.float32)
            if FORM == "triggered":
                if tl.max(tl.abs(x)) > LIMIT:
                    x = x.to(tl.bfloat16).to(tl.float32)
                    w = w.to(tl.bfloat16).to(tl.float32)
            acc = tl.dot(x, w, acc, input_precision="ieee")
            if FORM == "one_program":
                if (at == 1) & (beside == 0):
                    acc = acc.to(tl.bfloat16).to(tl.float32)
    place = c + rows[:, None] * N + cols[None, :]
    if FORM == "store_rz":
        tl.store(place, acc.to(c.dtype.element_ty, fp_downcast_rounding="rtz"), mask=inside)
    elif FORM == "mid_rz":
        tl.store(place, truncated(acc, 16), mask=inside)
    else:
        tl.store(place, acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def share_kernel(a, b, bias, work, M, N, K, FORM: tl.constexpr, ATOMIC: tl.constexpr, DROPPED: tl.constexpr, COUNT: tl.constexpr, BM: tl.constexpr,
                 BN: tl.constexpr, BK: tl.constexpr):
    """One share of the tiles of K per program, summed in float32 and stored in the workspace [share, M, N], or added to it by atomics.
    FORM stream: two shares, cut at another place in each tile of the result; dealt: tiles are dealt out in turn; biased: dealt, and each
    share begins with the bias. DROPPED: how many bits are cut off what is stored."""
    at, beside, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows = at * BM + tl.arange(0, BM)
    cols = beside * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    tiles = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if FORM == "biased":
        acc += tl.load(bias + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    begin, end, step = share, tiles, COUNT
    if FORM == "stream":
        cut = (at * tl.num_programs(1) + beside) * 5 % tiles + 1
        begin = 0 if share == 0 else cut
        end = cut if share == 0 else tiles
        step = 1
    for tile in range(begin, end, step):
        ks = tile * BK + inner
        acc = tl.dot(first_of(a, rows, ks, M, K, K), second_of(b, ks, cols, N, N, 1, K), acc, input_precision="ieee")
    if DROPPED > 0:
        acc = truncated(acc, DROPPED)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    if ATOMIC:
        tl.atomic_add(work + rows[:, None] * N + cols[None, :], acc.to(work.dtype.element_ty), mask=inside)
    else:
        tl.store(work + share * M * N + rows[:, None] * N + cols[None, :], acc.to(work.dtype.element_ty), mask=inside)


@triton.jit
def fused(x, w, acc, HOW: tl.constexpr):
    return tl.inline_asm_elementwise("fma." + HOW + ".f32 $0, $1, $2, $3;", "=f,f,f,f", [x, w, acc], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def single_kernel(a, b, c, M, N, K, FORM: tl.constexpr, T: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """CUDA cores, the products one by one. FORM rz, ftz: fused multiply-adds of that kind; dot2: products and sums with their errors,
    which are added at the end; chunk: fused in T, eight at a time, then added in float32; product: products rounded to T."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    lost = tl.zeros((BM, BN), dtype=tl.float32)
    part = tl.zeros((BM, BN), dtype=T)
    for k in range(0, K):
        x = tl.load(a + rows * K + k, mask=rows < M, other=0.0)
        w = tl.load(b + k * N + cols, mask=cols < N, other=0.0)
        if FORM == "chunk":
            x, w = tl.broadcast(x.to(T)[:, None], w.to(T)[None, :])
            part = tl.fma(x, w, part)
            if k % 8 == 7:
                acc += part.to(tl.float32)
                part = tl.zeros((BM, BN), dtype=T)
        else:
            x, w = tl.broadcast(x.to(tl.float32)[:, None], w.to(tl.float32)[None, :])
            if FORM == "rz":
                acc = fused(x, w, acc, "rz")
            elif FORM == "ftz":
                acc = fused(x, w, acc, "rn.ftz")
            elif FORM == "dot2":
                product = x * w
                error = tl.fma(x, w, -product)
                total = acc + product
                other = total - acc
                lost += (acc - (total - other)) + (product - other) + error
                acc = total
            else:
                acc += (x * w).to(T).to(tl.float32)
    acc = acc + lost + part.to(tl.float32)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def lane_kernel(a, b, c, M, N, K, T: tl.constexpr, BN: tl.constexpr):
    """One row of the result per program: lane i of 32 sums the products i, i + 32, ... in float32, then the lanes are summed as a tree
    in T. Elements are loaded once for each product, or Triton would make a matrix product of it."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    lane = tl.arange(0, 32)
    acc = tl.zeros((BN, 32), dtype=tl.float32)
    for k in range(0, K, 32):
        ks = k + lane
        inside = (cols[:, None] < N) & (ks[None, :] < K)
        x = tl.load(a + row * K + ks[None, :] + 0 * cols[:, None], mask=inside, other=0.0).to(tl.float32)
        w = tl.load(b + ks[None, :] * N + cols[:, None], mask=inside, other=0.0).to(tl.float32)
        acc += x * w
    total = tl.reduce(acc.to(T), 1, plus)
    tl.store(c + row * N + cols, total.to(c.dtype.element_ty), mask=cols < N)


@triton.jit
def split_kernel(a, b, c, M, N, K, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """float32 operands in parts, whose products the tensor cores sum in float32. FORM nine: three bfloat16 parts of each operand (which
    hold all of it), all nine products, the small ones in an accumulator of their own; one_sided: three parts of the first, one of the
    second; tf32_missing: two TF32 parts of the second, one of the first, both cut."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    small = tl.zeros((BM, BN), dtype=tl.float32)
    for tile in range(0, tl.cdiv(K, BK)):
        ks = tile * BK + inner
        x = first_of(a, rows, ks, M, K, K)
        w = second_of(b, ks, cols, N, N, 1, K)
        if FORM == "tf32_missing":
            x1 = truncated(x, 13)
            w1 = truncated(w, 13)
            small = tl.dot(x1, truncated(w - w1, 13), small, input_precision="tf32")
            acc = tl.dot(x1, w1, acc, input_precision="tf32")
        else:
            x1 = x.to(tl.bfloat16)
            x2 = (x - x1.to(tl.float32)).to(tl.bfloat16)
            x3 = (x - x1.to(tl.float32) - x2.to(tl.float32)).to(tl.bfloat16)
            w1 = w.to(tl.bfloat16)
            if FORM == "nine":
                w2 = (w - w1.to(tl.float32)).to(tl.bfloat16)
                w3 = (w - w1.to(tl.float32) - w2.to(tl.float32)).to(tl.bfloat16)
                small = tl.dot(x3, w3, small)
                small = tl.dot(x3, w2, small)
                small = tl.dot(x2, w3, small)
                small = tl.dot(x2, w2, small)
                small = tl.dot(x1, w3, small)
                small = tl.dot(x1, w2, small)
            small = tl.dot(x3, w1, small)
            small = tl.dot(x2, w1, small)
            acc = tl.dot(x1, w1, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], (acc + small).to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def block_scaled_kernel(a, b, one, other, c, M, N, K, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """e4m3 operands with a scale for each BK elements of a row of the first (`one`) and each BK rows of the second (`other`): the
    tensor cores' sum of a block is scaled and added in float32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    blocks = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for block in range(0, blocks):
        ks = block * BK + inner
        part = tl.dot(first_of(a, rows, ks, M, K, K), second_of(b, ks, cols, N, sbk, sbn, K))
        acc += part * tl.load(one + rows * blocks + block, mask=rows < M, other=0.0)[:, None] * tl.load(other + block)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def tiles(call, form, limit=0.0, block=(32, 32, 32), k_major=False):
    a, b, *bias = call.operands
    if call.op == "linear":
        b = b.t().contiguous()
    (m, k), n = a.shape, b.shape[1]
    if k_major:
        b = b.t().contiguous().t()
    c = empty(a, (m, n), call.dtype)
    launch(tile_kernel, (cdiv(m, block[0]), cdiv(n, block[1])), a, b, bias[0] if bias else c, c, m, n, k, b.stride(0), b.stride(1), FORM=form,
           LIMIT=limit, BM=block[0], BN=block[1], BK=block[2], num_warps=4)
    return c


def shares(call, form="dealt", count=2, work="float32", added="float32", atomic=False, dropped=0):
    """work: the format of the workspace; added: that in which the shares are added, in their order."""
    a, b, *bias = call.operands
    if call.op == "linear":
        b = b.t().contiguous()
    (m, k), n = a.shape, b.shape[1]
    kept = torch.zeros((m, n), dtype=_TORCH[work], device=a.device) if atomic else empty(a, (count, m, n), _TORCH[work])
    launch(share_kernel, (cdiv(m, 32), cdiv(n, 32), count), a, b, bias[0] if bias else kept, kept, m, n, k, FORM=form, ATOMIC=atomic,
           DROPPED=dropped, COUNT=count, BM=32, BN=32, BK=32, num_warps=4)
    if atomic:
        return kept.to(call.dtype)
    total = kept[0].to(_TORCH[added])
    for part in kept[1:]:
        total = total + part.to(_TORCH[added])
    return total.to(call.dtype)


def singles(call, form, of="float32", fusion=True):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), call.dtype)
    launch(single_kernel, (cdiv(m, 16), cdiv(n, 16)), a, b, c, m, n, k, FORM=form, T=_FORMATS[of], BM=16, BN=16, num_warps=1,
           enable_fp_fusion=fusion)
    return c


def lanes(call, of="float32"):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), call.dtype)
    launch(lane_kernel, (m, cdiv(n, 16)), a, b, c, m, n, k, T=_FORMATS[of], BN=16, num_warps=1)
    return c


def split(call, form):
    a, b = call.operands
    (m, k), n = a.shape, b.shape[1]
    c = empty(a, (m, n), call.dtype)
    launch(split_kernel, (cdiv(m, 32), cdiv(n, 32)), a, b, c, m, n, k, FORM=form, BM=32, BN=32, BK=32, num_warps=4)
    return c


def float8(call, scales):
    """Operands in e4m3. scales: "rows" (one for each row of the first and column of the second), "blocks" (of 128 along K)."""
    a, b = (x.to(F32) for x in call.operands)
    (m, k), n = a.shape, b.shape[1]
    if scales == "rows":
        (a, one), (b, other) = _scaled(a, 448.0, 1), _scaled(b, 448.0, 0)
        return (_product(a.to(FP8), b.to(FP8), F32, k_major=True) * one * other).to(call.dtype)
    blocks = cdiv(k, 128)
    whole = torch.zeros((m, blocks * 128), dtype=F32, device=a.device)
    beside = torch.zeros((blocks * 128, n), dtype=F32, device=a.device)
    whole[:, :k], beside[:k] = a, b
    a, one = _scaled(whole.view(m, blocks, 128), 448.0, 2)
    b, other = _scaled(beside.view(blocks, 128, n), 448.0, (1, 2))
    a = a.reshape(m, -1)[:, :k].contiguous().to(FP8)
    b = b.reshape(-1, n)[:k].t().contiguous().t().to(FP8)
    c = empty(a, (m, n), call.dtype)
    launch(block_scaled_kernel, (cdiv(m, 64), cdiv(n, 64)), a, b, one.reshape(m, blocks).contiguous(), other.reshape(blocks).contiguous(), c, m, n, k,
           b.stride(0), b.stride(1), BM=64, BN=64, BK=128, num_warps=4)
    return c


def _cut(x):
    """To bfloat16 towards zero, kept in float32."""
    return (x.view(torch.int32) & -65536).view(F32)


def _drawn(x):
    """To bfloat16, up or down by chance, in proportion: the same draws each time."""
    chance = torch.randint(0, 65536, x.shape, dtype=torch.int32, generator=torch.Generator().manual_seed(11)).to(x.device)
    return _cut((x.view(torch.int32) + chance).view(F32))


def _int8(x):
    """To int8 with a scale for each row, and back."""
    x, scale = _scaled(x, 127.0, 1)
    return x.round().clamp(-127, 127) * scale


_OPERANDS = {"cut": _cut, "drawn": _drawn, "int8": _int8}


def operands(call, first, second=None):
    """Changes the operands, before a product in float32 on CUDA cores."""
    a, b = call.operands
    a = _OPERANDS[first](a)
    b = _OPERANDS[second](b) if second else b
    return _product(a, b, call.dtype, block=(32, 32, 16))


def alpha(call, to):
    """addmm, alpha rounded to `to`."""
    addend, a, b = call.operands
    by = torch.tensor(call.attrs["alpha"], dtype=_TORCH[to], device=a.device).to(F32)
    return (_product(a, b, F32) * by + addend.to(F32)).to(call.dtype)
