"""Twelve fused kernels as people write them, each as a right one and a narrow one, beside the program that both are to compute.

A right one accumulates in float32 and rounds once, at the end; some go in tiles, in another order or in another form than the program. A
narrow one keeps one thing in fewer bits. None is written with the judge's own roundings: PyTorch's 16-bit tensors do them.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


@dataclasses.dataclass
class Fused:
    """`narrow_says`: a regular expression for what the refusal of the narrow kernel has to name."""

    reference: object
    args: tuple
    right: object
    narrow: object
    narrow_says: str


def _random(*shape, seed, dtype=BF16, scale=1.0):
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def tiled(a, b, tile=32):
    """a @ b in float32, one tile of the inner dimension after the other."""
    total = torch.zeros(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    for k in range(0, a.shape[-1], tile):
        total += a[..., k:k + tile].float() @ b[..., k:k + tile, :].float()
    return total


def one_by_one(a, b, dtype):
    """a @ b, each product added to a total of that dtype."""
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=dtype)
    for k in range(a.shape[-1]):
        total = (total.float() + a[..., k:k + 1].float() * b[..., k:k + 1, :].float()).to(dtype)
    return total


# A product with a bias and an activation


def gemm_bias_gelu(x, w, b):
    return F.gelu(x @ w + b, approximate="tanh")


def right_gemm_bias_gelu(x, w, b):
    s = tiled(x, w) + b.float()
    return (s / (1 + torch.exp(-2 * math.sqrt(2 / math.pi) * (s + 0.044715 * s * s * s)))).to(BF16)


def narrow_gemm_bias_gelu(x, w, b):
    total = torch.zeros(x.shape[0], w.shape[1], dtype=BF16)
    for k in range(0, x.shape[1]):
        total += x[:, k:k + 1] * w[k:k + 1]
    return F.gelu(total.float() + b.float(), approximate="tanh").to(BF16)


def gemm_bias_relu(x, w, b):
    return torch.relu(F.linear(x, w, b))


def right_gemm_bias_relu(x, w, b):
    total = b.float().expand(x.shape[0], -1).clone()  # the accumulator begins with the bias
    for k in range(0, x.shape[1], 16):
        total += x[:, k:k + 16].float() @ w[:, k:k + 16].float().t()
    return total.clamp(min=0).to(F16)


def narrow_gemm_bias_relu(x, w, b):
    product = (x.float() @ w.float().t()).to(F16)
    return torch.relu(product + b)


# Quantised weights


def int8_gemm(x, q, scale):
    return ((x.float() @ q.float()) * scale).to(BF16)


def right_int8_gemm(x, q, scale):
    return tiled(x, q.float() * scale).to(BF16)  # scaled while it is read, in float32


def narrow_int8_gemm(x, q, scale):
    return (one_by_one(x, q, F16).float() * scale).to(BF16)


def fp8_gemm(x, w, rows, columns):
    return ((x.float() @ w.float()) * rows * columns).to(BF16)


def right_fp8_gemm(x, w, rows, columns):
    return (tiled(x, w, 64) * (rows * columns)).to(BF16)


def narrow_fp8_gemm(x, w, rows, columns):
    total = torch.zeros(x.shape[0], w.shape[1], dtype=BF16)
    for k in range(0, x.shape[1], 32):  # tiles are exact, their total is not
        total = (total.float() + x[:, k:k + 32].float() @ w[k:k + 32].float()).to(BF16)
    return (total.float() * rows * columns).to(BF16)


# Attention


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _flash(q, k, v, keep, block=32):
    """Causal attention with an online softmax; `keep` is done to what is accumulated of the result after each block."""
    q = q.float() * q.shape[-1]**-0.5
    length = k.shape[-2]
    largest = torch.full((*q.shape[:-1], 1), -math.inf)
    total = torch.zeros(*q.shape[:-1], 1)
    result = torch.zeros(*q.shape[:-1], v.shape[-1])
    for first in range(0, length, block):
        s = q @ k[..., first:first + block, :].float().transpose(-1, -2)
        seen = torch.arange(q.shape[-2])[:, None] >= torch.arange(first, min(length, first + block))[None]
        s = torch.where(seen, s, -math.inf)
        now = torch.maximum(largest, s.amax(-1, keepdim=True))
        p = torch.exp2((s - now) * math.log2(math.e))
        left = torch.exp2((largest - now) * math.log2(math.e))
        total = total * left + p.sum(-1, keepdim=True)
        result = keep(result * left + p.to(v.dtype).float() @ v[..., first:first + block, :].float())
        largest = now
    return (result / total).to(v.dtype)


def right_attention(q, k, v):
    return _flash(q, k, v, lambda result: result)


def narrow_attention(q, k, v):
    return _flash(q, k, v, lambda result: result.to(BF16).float())


# Positions


def rope(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def right_rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half].float(), x[..., half:].float()
    c, s = cos.float(), sin.float()
    return torch.cat((a * c[..., :half] - b * s[..., :half], b * c[..., half:] + a * s[..., half:]), -1).to(BF16)


def narrow_rope(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin  # as it is written, in bfloat16 tensors


# Norms and softmax


def rms_norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1], ), weight, eps)


def right_rms_norm(x, weight, eps):
    wide = x.float()
    return (wide / torch.sqrt((wide * wide).sum(-1, keepdim=True) / x.shape[-1] + eps) * weight.float()).to(BF16)


def narrow_rms_norm(x, weight, eps):
    wide = x.float()
    inverse = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps).to(BF16)
    return (wide * inverse.float() * weight.float()).to(BF16)


def softmax(x):
    return torch.softmax(x, -1)


def right_softmax(x):
    wide = x.float() * math.log2(math.e)
    power = torch.exp2(wide - wide.amax(-1, keepdim=True))
    return (power * (1 / power.sum(-1, keepdim=True))).to(F16)


def narrow_softmax(x):
    power = torch.exp(x.float() - x.float().amax(-1, keepdim=True))
    total = torch.zeros(*x.shape[:-1], dtype=F16)
    for k in range(x.shape[-1]):
        total = total + power[..., k].to(F16)
    return (power / total.float().unsqueeze(-1)).to(F16)


def layer_norm_residual(x, residual, weight, bias):
    return F.layer_norm(x + residual, (x.shape[-1], ), weight, bias, 1e-5)


def right_layer_norm_residual(x, residual, weight, bias):
    s = x.float() + residual.float()
    mean = s.mean(-1, keepdim=True)
    variance = (s * s).mean(-1, keepdim=True) - mean * mean  # in one pass
    return ((s - mean) * torch.rsqrt(variance + 1e-5) * weight.float() + bias.float()).to(BF16)


def narrow_layer_norm_residual(x, residual, weight, bias):
    s = (x + residual).float()
    return F.layer_norm(s, (x.shape[-1], ), weight.float(), bias.float(), 1e-5).to(BF16)


# Two products, one vector, a batch


def swiglu(x, gate, up):
    return F.silu(x @ gate) * (x @ up)


def right_swiglu(x, gate, up):
    g, u = tiled(x, gate), tiled(x, up)
    return (g / (1 + torch.exp(-g)) * u).to(BF16)


def narrow_swiglu(x, gate, up):
    g, u = tiled(x, gate).to(BF16).float(), tiled(x, up)
    return (g * torch.sigmoid(g) * u).to(BF16)


def gemv(w, x):
    return w @ x


def right_gemv(w, x):
    lanes = torch.zeros(w.shape[0], 32)
    for k in range(0, w.shape[1], 32):
        lanes += w[:, k:k + 32].float() * x[k:k + 32].float()
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0].to(BF16)


def narrow_gemv(w, x):
    total = torch.zeros(w.shape[0], dtype=BF16)
    for k in range(w.shape[1]):
        total = total + w[:, k] * x[k]
    return total


def batched_gemm(a, b):
    return torch.bmm(a, b)


def right_batched_gemm(a, b):
    return torch.stack([tiled(a[i], b[i], 48) for i in range(a.shape[0])]).to(BF16)


def narrow_batched_gemm(a, b):
    half = a.shape[-1] // 2  # two parts, each stored
    return tiled(a[..., :half], b[..., :half, :]).to(BF16) + tiled(a[..., half:], b[..., half:, :]).to(BF16)


def _e4m3(*shape, seed):
    return _random(*shape, seed=seed, dtype=F32).to(torch.float8_e4m3fn)


def _angles(length, width):
    angle = torch.arange(length)[:, None] * 10000.0**(-torch.arange(0, width, 2) / width)
    return torch.cat((angle, angle), -1)


KERNELS = {
    "gemm_bias_gelu": Fused(gemm_bias_gelu, (_random(32, 128, seed=1), _random(128, 64, seed=2, scale=0.1), _random(64, seed=3)),
                            right_gemm_bias_gelu, narrow_gemm_bias_gelu, "matmul accumulated in bfloat16"),
    "gemm_bias_relu": Fused(gemm_bias_relu, (_random(32, 96, seed=4, dtype=F16), _random(64, 96, seed=5, dtype=F16),
                                             _random(64, seed=6, dtype=F16)),
                            right_gemm_bias_relu, narrow_gemm_bias_relu, "the product inside linear rounded to float16"),
    "int8_gemm": Fused(int8_gemm, (_random(32, 128, seed=7), (_random(128, 64, seed=8, dtype=F32) * 40).clamp(-127, 127).to(torch.int8),
                                   _random(64, seed=9, dtype=F32).abs() * 0.01),
                       right_int8_gemm, narrow_int8_gemm, "matmul accumulated in float16"),
    "fp8_gemm": Fused(fp8_gemm, (_e4m3(32, 128, seed=10), _e4m3(128, 64, seed=11), _random(32, 1, seed=12, dtype=F32).abs(),
                                 _random(64, seed=13, dtype=F32).abs()),
                      right_fp8_gemm, narrow_fp8_gemm, "matmul accumulated in bfloat16"),
    "attention": Fused(attention, (_random(1, 2, 128, 32, seed=14), _random(1, 2, 128, 32, seed=15), _random(1, 2, 128, 32, seed=16)),
                       right_attention, narrow_attention, "the second product inside result accumulated in bfloat16 after each block of 32 keys"),
    "rope": Fused(rope, (_random(2, 4, 64, 32, seed=17), _angles(64, 32).cos().to(BF16), _angles(64, 32).sin().to(BF16)),
                  right_rope, narrow_rope, "every step rounded to bfloat16"),
    "rms_norm": Fused(rms_norm, (_random(32, 256, seed=18), _random(256, seed=19), 1e-6),
                      right_rms_norm, narrow_rms_norm, "the reciprocal deviation inside result rounded to bfloat16"),
    "softmax": Fused(softmax, (_random(32, 256, seed=20, dtype=F16), ), right_softmax, narrow_softmax,
                     "the total inside result accumulated in float16"),
    "layer_norm_residual": Fused(layer_norm_residual, (_random(32, 128, seed=21), _random(32, 128, seed=22), _random(128, seed=23),
                                                       _random(128, seed=24)),
                                 right_layer_norm_residual, narrow_layer_norm_residual, "add rounded to bfloat16"),
    "swiglu": Fused(swiglu, (_random(32, 96, seed=25), _random(96, 64, seed=26, scale=0.1), _random(96, 64, seed=27, scale=0.1)),
                    right_swiglu, narrow_swiglu, "matmul rounded to bfloat16"),
    "gemv": Fused(gemv, (_random(64, 256, seed=28), _random(256, seed=29)), right_gemv, narrow_gemv, "result accumulated in bfloat16"),
    "batched_gemm": Fused(batched_gemm, (_random(4, 16, 96, seed=30), _random(4, 96, 16, seed=31)), right_batched_gemm, narrow_batched_gemm,
                          "result accumulated in bfloat16, in 2 parts"),
}
