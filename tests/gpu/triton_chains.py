"""Sums, norms, softmax and activations in Triton, float32 inside unless a row states otherwise."""

import triton
import triton.language as tl
from launch import empty, launch

_FORMATS = {"float32": tl.float32, "bfloat16": tl.bfloat16, "float16": tl.float16, "float64": tl.float64}


@triton.jit
def plus(x, y):
    return x + y


@triton.jit
def sum_kernel(x, y, K, FORM: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    """One row per program. FORM tree: a tile as a tree in T, shuffles between lanes included; sequential and kahan: one by one in T;
    short: a tree that leaves the last term out."""
    row = tl.program_id(0)
    if FORM == "sequential":
        total = tl.load(x + row * K).to(T)
        for k in range(1, K):
            total = (total + tl.load(x + row * K + k).to(T)).to(T)
    elif FORM == "kahan":
        total = tl.load(x + row * K).to(T)
        lost = total - total
        for k in range(1, K):
            term = tl.load(x + row * K + k).to(T) - lost
            new = total + term
            lost = (new - total) - term
            total = new
    else:
        at = tl.arange(0, BLOCK)
        values = tl.load(x + row * K + at, mask=at < (K - 1 if FORM == "short" else K), other=0.0).to(T)
        total = tl.reduce(values, 0, plus)
    tl.store(y + row, total.to(y.dtype.element_ty))


@triton.jit
def online_kernel(x, y, K, ALPHA: tl.constexpr, L: tl.constexpr, P: tl.constexpr, MAXIMUM: tl.constexpr, BLOCK: tl.constexpr):
    """Softmax in one pass over tiles: m and l are rescaled as the maximum grows; then the quotients. ALPHA, L and P are the formats
    that the rescaling, the sum and the exponentials are rounded to."""
    LOG2E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    m = tl.max(tl.load(x + row * K + at, mask=at < K, other=float("-inf")).to(tl.float32), 0)
    if not MAXIMUM:
        m = m * 0.0
    total = m * 0.0
    for tile in range(0, tl.cdiv(K, BLOCK)):
        place = tile * BLOCK + at
        values = tl.load(x + row * K + place, mask=place < K, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(values, 0)) if MAXIMUM else m
        alpha = tl.exp2((m - new) * LOG2E).to(ALPHA).to(tl.float32)
        p = tl.exp2((values - new) * LOG2E).to(P).to(tl.float32)
        total = ((total * alpha).to(ALPHA).to(tl.float32) + tl.sum(p, 0)).to(L).to(tl.float32)
        m = new
    for tile in range(0, tl.cdiv(K, BLOCK)):
        place = tile * BLOCK + at
        values = tl.load(x + row * K + place, mask=place < K, other=float("-inf")).to(tl.float32)
        p = tl.exp2((values - m) * LOG2E).to(P).to(tl.float32)
        tl.store(y + row * K + place, (p / total).to(y.dtype.element_ty), mask=place < K)


@triton.jit
def softmax_kernel(x, y, K, SUM: tl.constexpr, BLOCK: tl.constexpr):
    """The row at once: the maximum taken away, tl.exp, the sum as a tree in SUM, a division rounded to nearest."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * K + at, mask=at < K, other=float("-inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, 0))
    total = tl.reduce(e.to(SUM), 0, plus).to(tl.float32)
    tl.store(y + row * K + at, tl.div_rn(e, tl.zeros_like(e) + total).to(y.dtype.element_ty), mask=at < K)


@triton.jit
def norm_kernel(x, w, b, y, K, eps, FORM: tl.constexpr, STATS: tl.constexpr, ROOT: tl.constexpr, BLOCK: tl.constexpr):
    """Layer norm of a row. FORM two_pass, one_pass (E[x^2] - mean^2), less (n - 1), outside (eps beside the root); STATS: the format
    of mean and inverse root; ROOT: plain, or the instruction rsqrt.approx.ftz.f32."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < K
    values = tl.load(x + row * K + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / K
    if FORM == "one_pass":
        variance = tl.sum(values * values, 0) / K - mean * mean
    else:
        d = tl.where(inside, values - mean, 0.0)
        variance = tl.sum(d * d, 0) / (K - 1 if FORM == "less" else K)
    if ROOT == "instruction":
        inverse = tl.inline_asm_elementwise("rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [variance + eps], dtype=tl.float32, is_pure=True,
                                            pack=1)
    elif FORM == "outside":
        inverse = 1.0 / (tl.sqrt_rn(variance) + eps)
    else:
        inverse = 1.0 / tl.sqrt_rn(variance + eps)
    mean = mean.to(STATS).to(tl.float32)
    inverse = inverse.to(STATS).to(tl.float32)
    weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * K + at, ((values - mean) * inverse * weight + bias).to(y.dtype.element_ty), mask=inside)


@triton.jit
def rms_kernel(x, w, y, K, eps, SQUARES: tl.constexpr, EARLY: tl.constexpr, OUTSIDE: tl.constexpr, BLOCK: tl.constexpr):
    """SQUARES: the format in which squares are formed and summed; EARLY: that of the normalised values before the weight."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * K + at, mask=at < K, other=0.0).to(tl.float32)
    kept = values.to(SQUARES)
    mean = tl.reduce(kept * kept, 0, plus).to(tl.float32) / K
    inverse = 1.0 / (tl.sqrt_rn(mean) + eps) if OUTSIDE else 1.0 / tl.sqrt_rn(mean + eps)
    weight = tl.load(w + at, mask=at < K, other=0.0).to(tl.float32)
    tl.store(y + row * K + at, ((values * inverse).to(EARLY).to(tl.float32) * weight).to(y.dtype.element_ty), mask=at < K)


@triton.jit
def tanh_instruction(x):
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def tanh_exact(x):
    """By expm1-free exponentials of the size: 1 - 2 / (e^2|x| + 1), and a polynomial where that cancels."""
    size = tl.abs(x)
    x2 = x * x
    small = x * (1.0 + x2 * (-0.3333333333333333 + x2 * (0.13333333333333333 + x2 * (-0.05396825396825397 + x2 * (
        0.021869488536155203 + x2 * (-0.008863235529902197 + x2 * 0.003592128036572481))))))
    large = 1.0 - tl.div_rn(tl.zeros_like(x) + 2.0, tl.exp(2.0 * size) + 1.0)
    return tl.where(size < 0.35, small, tl.where(x < 0, -large, large))


@triton.jit
def activation_kernel(x, y, n, FORM: tl.constexpr, MID: tl.constexpr, BLOCK: tl.constexpr):
    """MID: the format of the one factor before x multiplies it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    if FORM == "gelu_erf":
        r = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476)).to(MID).to(tl.float32)
    elif FORM == "gelu_tanh_instruction":
        r = 0.5 * v * (1.0 + tanh_instruction(0.7978845608028654 * (v + 0.044715 * v * v * v)))
    elif FORM == "gelu_tanh":
        r = 0.5 * v * (1.0 + tanh_exact(0.7978845608028654 * (v + 0.044715 * v * v * v)))
    elif FORM == "gelu_sigmoid":
        r = tl.div_rn(v, 1.0 + tl.exp(-1.702 * v))
    elif FORM == "silu":
        r = tl.div_rn(v, 1.0 + tl.exp(-v))
    elif FORM == "silu_fast":
        r = v * tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [1.0 + tl.exp(-v)], dtype=tl.float32, is_pure=True,
                                          pack=1)
    elif FORM == "silu_ex2":
        e = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v * -1.4426950408889634], dtype=tl.float32, is_pure=True,
                                      pack=1)
        r = tl.div_rn(v, 1.0 + e)
    elif FORM == "silu_tanh_instruction":
        r = 0.5 * v * (1.0 + tanh_instruction(0.5 * v))
    else:
        r = v * tl.div_rn(tl.zeros_like(v) + 1.0, 1.0 + tl.exp(-v)).to(MID).to(tl.float32)
    tl.store(y + at, r.to(y.dtype.element_ty), mask=at < n)


def _block(k):
    return max(16, triton.next_power_of_2(k))


def sums(call, form="tree", of="float32"):
    x = call.operands[0]
    y = empty(x, x.shape[:1], call.dtype)
    launch(sum_kernel, (x.shape[0], ), x, y, x.shape[1], FORM=form, T=_FORMATS[of], BLOCK=_block(x.shape[1]),
           num_warps=1 if form in ("sequential", "kahan") else 4)
    return y


def online(call, alpha="float32", total="float32", p="float32", maximum=True):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    launch(online_kernel, (x.shape[0], ), x, y, x.shape[1], ALPHA=_FORMATS[alpha], L=_FORMATS[total], P=_FORMATS[p], MAXIMUM=maximum,
           BLOCK=32, num_warps=1)
    return y


def softmax(call, of="float32"):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    launch(softmax_kernel, (x.shape[0], ), x, y, x.shape[1], SUM=_FORMATS[of], BLOCK=_block(x.shape[1]), num_warps=4)
    return y


def layer_norm(call, form="two_pass", stats="float32", root="plain"):
    x, w, b = call.operands
    y = empty(x, x.shape, call.dtype)
    launch(norm_kernel, (x.shape[0], ), x, w, b, y, x.shape[1], call.attrs.get("eps", 1e-5), FORM=form, STATS=_FORMATS[stats], ROOT=root,
           BLOCK=_block(x.shape[1]), num_warps=4)
    return y


def rms_norm(call, squares="float32", early="float32", outside=False):
    x, w = call.operands
    y = empty(x, x.shape, call.dtype)
    launch(rms_kernel, (x.shape[0], ), x, w, y, x.shape[1], call.attrs["eps"], SQUARES=_FORMATS[squares], EARLY=_FORMATS[early],
           OUTSIDE=outside, BLOCK=_block(x.shape[1]), num_warps=4)
    return y


def activation(call, form, mid="float32"):
    x = call.operands[0]
    y = empty(x, x.shape, call.dtype)
    launch(activation_kernel, (triton.cdiv(x.numel(), 256), ), x, y, x.numel(), FORM=form, MID=_FORMATS[mid], BLOCK=256, num_warps=4)
    return y
