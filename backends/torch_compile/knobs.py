"""Knobs of the torch.compile backends: how each is set, and how torch states it afterwards."""

import os

_ON_OFF = {"on": True, "off": False}
_TRUE_FALSE = {"true": True, "false": False}

COMMON = {
    "threads": ["1", "N"],
    "float32_matmul_precision": ["highest", "high", "medium"],
    "mkldnn": ["on", "off"],
    "deterministic": ["off", "on"],
    "flush_denormal": ["off", "on"]
}
INDUCTOR = {"emulate_precision_casts": ["false", "true"]}


def set_before_import(knobs):
    """The thread count is read by OpenMP when torch loads it."""
    threads = knobs.get("threads", "1")
    if threads.isdigit():
        os.environ["OMP_NUM_THREADS"] = threads


def apply(knobs):
    """Sets the knobs of a worker; values have been checked against COMMON and INDUCTOR."""
    import torch
    import torch._inductor.config as inductor
    torch.set_num_threads(int(knobs.get("threads", "1")))
    torch.set_float32_matmul_precision(knobs.get("float32_matmul_precision", "highest"))
    torch.backends.mkldnn.set_flags(_ON_OFF[knobs.get("mkldnn", "on")])
    torch.use_deterministic_algorithms(_ON_OFF[knobs.get("deterministic", "off")])
    torch.set_flush_denormal(_ON_OFF[knobs.get("flush_denormal", "off")])
    inductor.emulate_precision_casts = _TRUE_FALSE[knobs.get("emulate_precision_casts", "false")]


def read_back(backend):
    """knob -> value, as torch states it. flush_denormal has no getter: the harness sees it in MXCSR."""
    import torch
    import torch._inductor.config as inductor
    values = {
        "threads": str(torch.get_num_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "mkldnn": "on" if torch._C._get_mkldnn_enabled() else "off",
        "deterministic": "on" if torch.are_deterministic_algorithms_enabled() else "off"
    }
    if backend == "torch-inductor":
        values["emulate_precision_casts"] = str(inductor.emulate_precision_casts).lower()
    return values
