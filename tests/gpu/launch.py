"""How a Triton kernel is started: at one place, so that check.py can compile what would run where there is no GPU."""

import torch

BF16, F16, F32, F64, FP8 = torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn
HOOK = []  # called in place of the launch, where there is one


def launch(kernel, grid, *args, **constants):
    if HOOK:
        HOOK[-1](kernel, grid, args, constants)
    else:
        kernel[grid](*args, **constants)


def empty(like, shape, dtype):
    """Not zeros: what a kernel leaves unwritten shows."""
    return torch.full(shape, float("nan"), dtype=dtype, device=like.device)
