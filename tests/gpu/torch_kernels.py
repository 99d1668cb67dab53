"""PyTorch's own kernels on CUDA: eager ops, cuBLAS by its switches, and inductor."""

import contextlib
import functools
import os

import torch
from launch import BF16, F16, F32, FP8

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
_TORCH = {"float32": F32, "bfloat16": BF16, "float16": F16}


@contextlib.contextmanager
def switched(**switches):
    """Switches of torch.backends.cuda.matmul, put back afterwards."""
    home = torch.backends.cuda.matmul
    before = {name: getattr(home, name) for name in switches}
    try:
        for name, value in switches.items():
            setattr(home, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(home, name, value)


def matmul(call, mid=None, **switches):
    """mid: the dtype of the product before it is cast to the requested one; otherwise cuBLAS stores the wider result itself."""
    a, b = call.operands
    switches = {"allow_tf32": False, "allow_fp16_reduced_precision_reduction": False, "allow_bf16_reduced_precision_reduction": False,
                **switches}
    with switched(**switches):
        if mid or call.dtype == a.dtype:
            return torch.matmul(a, b).to(call.dtype)
        return torch.mm(a, b, out_dtype=call.dtype)


def scaled_mm(call, fast):
    a, b = call.operands
    one = torch.ones((), dtype=F32, device=a.device)
    return torch._scaled_mm(a.to(FP8), b.to(FP8).t().contiguous().t(), scale_a=one, scale_b=one, out_dtype=call.dtype, use_fast_accum=fast)


def _sum(x, dtype):
    return torch.sum(x, -1, dtype=dtype)


def _softmax(x, dtype):
    return torch.softmax(x, -1, dtype=dtype)


def _layer_norm(x, w, b, eps):
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


def _rms_norm(x, w, eps):
    return torch.nn.functional.rms_norm(x, w.shape, w, eps)


_OPS = {"sum": _sum, "softmax": _softmax, "layer_norm": _layer_norm, "rms_norm": _rms_norm, "gelu": torch.nn.functional.gelu,
        "silu": torch.nn.functional.silu}


@functools.cache
def _compiled(op):
    return torch.compile(_OPS[op], dynamic=False)


def op(call, compiled=False, narrow=None):
    """narrow: the dtype in which a wider result is formed before it is cast."""
    function = _compiled(call.op) if compiled else _OPS[call.op]
    if call.op in ("sum", "softmax"):
        return function(*call.operands, _TORCH[narrow] if narrow else call.dtype).to(call.dtype)
    if call.op in ("layer_norm", "rms_norm"):
        return function(*call.operands, call.attrs["eps"])
    return function(*call.operands)


def cast_first(call, to):
    """The op on operands cast to a narrower dtype, and its result cast back."""
    operands = [x.to(_TORCH[to]) for x in call.operands]
    return op(type(call)(call.op, operands, _TORCH[to], call.attrs)).to(call.dtype)
