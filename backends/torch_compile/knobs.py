"""Knobs of the torch.compile backends: how each is set, and how torch states it afterwards.

harness/words/knobs.cc lists which backend takes which knob, with which values.
"""

import os

from ulpscope_adapter.knobs import offered

_WORDS = {True: "on", False: "off"}


def set_before_import(knobs):
    """The thread count is read by OpenMP when torch loads it."""
    threads = knobs.get("threads", "1")
    if threads.isdigit():
        os.environ["OMP_NUM_THREADS"] = threads


def apply(backend, device, knobs):
    """Sets the knobs of a worker; values have been checked against what is offered."""
    effects = _effects()
    for name, values in offered(backend, device).items():
        value = knobs.get(name, values[0])
        if value != "default":
            effects[name][0](value)


def read_back(backend, device):
    """knob -> value, as torch states it."""
    return {name: effect[1]() for name, effect in _effects().items() if name in offered(backend, device)}


def _effects():
    """knob -> (how it is set, how it is read)"""
    import torch
    import torch._inductor.config as inductor
    from ulpscope_adapter.fpenv import subnormals_kept

    def of_inductor(name):
        return lambda value: setattr(inductor, name, value == "true"), lambda: str(getattr(inductor, name)).lower()

    return {
        "threads": (lambda value: torch.set_num_threads(int(value)), lambda: str(torch.get_num_threads())),
        "float32_matmul_precision": (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision),
        "mkldnn": (lambda value: torch.backends.mkldnn.set_flags(value == "on"),
                   lambda: _WORDS[torch._C._get_mkldnn_enabled()]),
        "deterministic": (lambda value: torch.use_deterministic_algorithms(value == "on"),
                          lambda: _WORDS[torch.are_deterministic_algorithms_enabled()]),
        # It has no getter: it is tried.
        "flush_denormal": (lambda value: torch.set_flush_denormal(value == "on"),
                           lambda: _WORDS[not subnormals_kept()]),
        "sdpa_backend": (_select_sdpa, _sdpa),
        "reduced_precision_reduction": (_set_reduced, _reduced),
        **{name: of_inductor(name) for name in ("emulate_precision_casts", "freezing", "max_autotune")}
    }


def _set_reduced(value):
    import torch
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = value == "on"
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = value == "on"


def _reduced():
    import torch
    matmul = torch.backends.cuda.matmul
    words = [_WORDS[bool(flag)] for flag in (matmul.allow_bf16_reduced_precision_reduction,
                                             matmul.allow_fp16_reduced_precision_reduction)]
    return words[0] if words[0] == words[1] else f"bfloat16 {words[0]}, float16 {words[1]}"


def _select_sdpa(value):
    """One kernel of scaled_dot_product_attention alone. They are process-wide flags, though torch keeps them with its CUDA
    settings; on a CPU there are math and flash."""
    import torch
    torch.backends.cuda.enable_math_sdp(value == "math")
    torch.backends.cuda.enable_flash_sdp(value == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(value == "efficient")
    torch.backends.cuda.enable_cudnn_sdp(False)


def _sdpa():
    import torch
    cuda = torch.backends.cuda
    enabled = {
        "math": cuda.math_sdp_enabled(),
        "flash": cuda.flash_sdp_enabled(),
        "efficient": cuda.mem_efficient_sdp_enabled(),
        "cudnn": cuda.cudnn_sdp_enabled()
    }
    if all(enabled.values()):
        return "default"
    return "+".join(name for name, on in enabled.items() if on) or "none"
