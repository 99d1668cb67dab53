"""Programs of PyTorch's eager ops, of the second set (table_second.py)."""

import torch
from launch import BF16, F16, F32, F64
from torch_kernels import switched

_EXACT = {"allow_tf32": False, "allow_fp16_reduced_precision_reduction": False, "allow_bf16_reduced_precision_reduction": False}
_TORCH = {"float32": F32, "bfloat16": BF16, "float16": F16, "float64": F64}


def pieces(call, length):
    """The products of pieces of K, each stored in the operands' dtype, added there one after the other."""
    a, b = call.operands
    with switched(**_EXACT):
        total = a[:, :length] @ b[:length]
        for k in range(length, a.shape[1], length):
            total = total + a[:, k:k + length] @ b[k:k + length]
    return total.to(call.dtype)


def wide(call):
    a, b = call.operands
    return (a.double() @ b.double()).to(call.dtype)


def autocast(call, to):
    a, b = call.operands
    with switched(**_EXACT), torch.autocast(a.device.type, dtype=_TORCH[to]):
        return (a @ b).to(call.dtype)


def softmax(call, form):
    """steps: eager ops in the operand's dtype; logsumexp: e^(x - log sum e^x)."""
    x = call.operands[0]
    if form == "logsumexp":
        return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).to(call.dtype)


def layer_norm(call):
    """In eager steps, one per op of the formula."""
    x, w, b = call.operands
    d = x - x.mean(-1, keepdim=True)
    return d / torch.sqrt((d * d).mean(-1, keepdim=True) + call.attrs["eps"]) * w + b


def llama(call):
    """rms_norm in float32, rounded to the operand's dtype before the weight."""
    x, w = call.operands
    wide = x.to(F32)
    normal = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + call.attrs["eps"])
    return w * normal.to(x.dtype)


def cumulated(call):
    """A sum as the last of the running sums."""
    return torch.cumsum(call.operands[0], -1)[:, -1].contiguous()
