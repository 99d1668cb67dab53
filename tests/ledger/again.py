"""Hybrids once more, in plain PyTorch: a program op by op, with the values of a backend in the place of steps."""
import functools
import os
import pathlib
import sys

import torch
import torch._inductor.codecache
import torch._inductor.config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "harness/python"))
from ulpscope.adapters import _inductor_cache  # noqa: E402


def layer_norm(x, weight=None, bias=None, *, normalized_shape, eps):
    return torch.nn.functional.layer_norm(x, normalized_shape, weight, bias, eps)


TORCH = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "exp": torch.exp, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "matmul": torch.matmul, "linear": torch.nn.functional.linear, "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu,
    "layer_norm": layer_norm, "softmax": torch.softmax, "reshape": torch.reshape, "transpose": torch.transpose,
    "sum": torch.sum, "mean": torch.mean, "cast": torch.Tensor.to,
}
VIEWS = ("reshape", "transpose")
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "BOOL": torch.bool}


def tensor(stored):
    """A tensor from (dtype, shape, bytes), as safetensors have them."""
    dtype, shape, raw = stored
    return torch.frombuffer(bytearray(raw), dtype=DTYPES[dtype]).reshape(shape)


@functools.cache
def share_binaries():
    """A kernel whose C++ a run of ulpscope compiled already is not compiled again: it is found by its source, its compiler's command and its
    header. Which kernels there are, and what their source is, is lowered here. As in such runs, one thread computes."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = _inductor_cache()
    headers = os.path.join(_inductor_cache(), "precompiled_headers")
    torch._inductor.codecache._HEADER_DIR, torch._inductor.codecache._HEADER_LOCK_DIR = headers, os.path.join(headers, "locks")
    torch.set_num_threads(1)


def compiled(f, args, **settings):
    """f(*args) by inductor, lowered anew with these settings."""
    share_binaries()
    torch._dynamo.reset()
    with torch._inductor.config.patch(fx_graph_cache=False, **settings):
        return torch.compile(f, fullgraph=True, dynamic=False)(*args)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def compute(step, values):
    attrs = {key: getattr(torch, value) if key == "dtype" else value for key, value in step.attrs.items()}
    return TORCH[step.op](*(values[each] if isinstance(each, str) else each for each in step.of), **attrs)


def run(steps, inputs, given):
    """Every value of the program; those of `given` are taken as they are. Views are computed: they round nothing."""
    values = dict(inputs)
    for step in steps:
        values[step.name] = given[step.name] if step.name in given and step.op not in VIEWS else compute(step, values)
    return values


def walk(steps, inputs, observed, stored):
    """step -> what `observed` is with the values `stored` up to that step, for each step that does otherwise than PyTorch does with the same
    operands."""
    found, given = {}, {}
    for step in steps:
        if step.name not in stored or step.op in VIEWS:
            continue
        values = run(steps, inputs, given)
        given[step.name] = stored[step.name]
        if not same(values[step.name], stored[step.name]):
            found[step.name] = run(steps, inputs, given)[observed]
    return found
