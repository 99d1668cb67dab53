"""Settings that XLA reads once a process, when its client is made: the same under JAX and under PyTorch/XLA."""

import os


def set_before_import(knobs):
    """Sets the size of the thread pool, and the flags that `knobs` require."""
    threads = os.environ["NPROC"] = knobs.get("threads", "1")
    flags = [] if threads != "1" else ["--xla_cpu_multi_thread_eigen=false"]
    if knobs.get("xla_allow_excess_precision") == "false":
        flags.append("--xla_allow_excess_precision=false")
    os.environ["XLA_FLAGS"] = " ".join(flags)
