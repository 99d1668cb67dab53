"""Knobs of the torch.compile backends: how each is set, and how torch states it afterwards."""

import os

_ON_OFF = {"on": True, "off": False}
_TRUE_FALSE = {"true": True, "false": False}

COMMON = {
    "threads": ["1", "N"],
    "float32_matmul_precision": ["highest", "high", "medium"],
    "mkldnn": ["on", "off"],
    "deterministic": ["off", "on"],
    "flush_denormal": ["off", "on"],
    "sdpa_backend": ["default", "math", "flash", "efficient"]
}
INDUCTOR = {name: ["false", "true"] for name in ("emulate_precision_casts", "freezing", "max_autotune")}
CUDA = {"reduced_precision_reduction": ["default", "on", "off"]}
_INDUCTOR_ONLY = "it configures inductor (torch-inductor, torch-aoti)"
# Why a knob of the family is not served where it is not.
REASONS = {
    **dict.fromkeys(INDUCTOR, _INDUCTOR_ONLY),
    "freezing": "it folds the parameters of a module (torch-inductor)",
    "reduced_precision_reduction": "it acts on matrix products on CUDA only"
}


def served(backend, device):
    """knob -> values, of the knobs that act on this backend and device."""
    inductor = INDUCTOR if backend == "torch-inductor" else {}
    return {**COMMON, **inductor, **(CUDA if device.startswith("cuda") else {})}


def set_before_import(knobs):
    """The thread count is read by OpenMP when torch loads it."""
    threads = knobs.get("threads", "1")
    if threads.isdigit():
        os.environ["OMP_NUM_THREADS"] = threads


def apply(knobs):
    """Sets the knobs of a worker; values have been checked against what is served."""
    import torch
    import torch._inductor.config as inductor
    torch.set_num_threads(int(knobs.get("threads", "1")))
    torch.set_float32_matmul_precision(knobs.get("float32_matmul_precision", "highest"))
    torch.backends.mkldnn.set_flags(_ON_OFF[knobs.get("mkldnn", "on")])
    torch.use_deterministic_algorithms(_ON_OFF[knobs.get("deterministic", "off")])
    torch.set_flush_denormal(_ON_OFF[knobs.get("flush_denormal", "off")])
    _select_sdpa(knobs.get("sdpa_backend", "default"))
    for name in INDUCTOR:
        setattr(inductor, name, _TRUE_FALSE[knobs.get(name, "false")])
    reduced = knobs.get("reduced_precision_reduction", "default")
    if reduced != "default":
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = _ON_OFF[reduced]
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = _ON_OFF[reduced]


def read_back(backend, device):
    """knob -> value, as torch states it. flush_denormal has no getter: it is tried."""
    import torch
    import torch._inductor.config as inductor
    from ulpscope_adapter.fpenv import subnormals_kept
    values = {
        "threads": str(torch.get_num_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "mkldnn": "on" if torch._C._get_mkldnn_enabled() else "off",
        "deterministic": "on" if torch.are_deterministic_algorithms_enabled() else "off",
        "flush_denormal": "off" if subnormals_kept() else "on",
        "sdpa_backend": _sdpa()
    }
    if backend in ("torch-inductor", "torch-aoti"):
        # A package takes its weights as inputs: freezing has nothing to fold there and is not offered.
        kept = [name for name in INDUCTOR if (backend, name) != ("torch-aoti", "freezing")]
        values.update({name: str(getattr(inductor, name)).lower() for name in kept})
    if device.startswith("cuda"):
        matmul = torch.backends.cuda.matmul
        flags = (matmul.allow_bf16_reduced_precision_reduction, matmul.allow_fp16_reduced_precision_reduction)
        words = ["on" if flag else "off" for flag in flags]
        values["reduced_precision_reduction"] = \
            words[0] if words[0] == words[1] else f"bfloat16 {words[0]}, float16 {words[1]}"
    return values


def _select_sdpa(value):
    """One kernel of scaled_dot_product_attention alone, or all of them. They are process-wide flags, though torch
    keeps them with its CUDA settings; on a CPU there are math and flash."""
    import torch
    every = value == "default"
    torch.backends.cuda.enable_math_sdp(every or value == "math")
    torch.backends.cuda.enable_flash_sdp(every or value == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(every or value == "efficient")
    torch.backends.cuda.enable_cudnn_sdp(every)


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
