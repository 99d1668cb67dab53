"""The configuration of each Triton kernel, which inductor chooses by timing on a GPU.

Inductor times several configurations (block sizes, warps) and keeps the fastest, in a file beside the kernel's source; every later process
of the machine reads it there. Another block size adds in another order. On an H200 (torch 2.11), layer_norm, softmax and sum over 64 terms
have other bits with XBLOCK 1 than with 8 and 32, and fresh caches chose now one, now another.
"""


def forget_loaded():
    """Before a program is compiled: kernels loaded by an earlier one are loaded anew, with the choice that stands in the file.

    A kernel that is loaded twice in one process with the graph cache off, as this adapter has it, is timed again
    (CachingAutotuner._make_launchers makes all launchers where only the fastest was left). No user of the graph cache meets that, so that
    a difference between two runs would be this adapter's doing.
    """
    from torch._inductor.async_compile import CompiledTritonKernels
    from torch._inductor.codecache import PyCodeCache
    CompiledTritonKernels.cache_clear()
    PyCodeCache.cache_clear()


def kernels():
    """The kernels that are loaded, as torch's CachingAutotuner."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    return [value for module in PyCodeCache.modules for value in vars(module).values() if isinstance(value, CachingAutotuner)]


def notes(found):
    """A line for each of the kernels `found` that had a choice."""
    lines = set()
    for kernel in found:
        facts = kernel.autotune_cache_info or {}
        chosen = [launcher.config for launcher in kernel.launchers]
        if facts.get("autotune_cache_state") not in ("hit", "miss") or len(chosen) != 1:  # had no choice, or was not run
            continue
        words = [f"{name} {value}" for name, value in sorted(chosen[0].kwargs.items())] + [f"{chosen[0].num_warps} warps"]
        lines.add(f"inductor timed several configurations of {kernel.fn.__name__} and keeps {', '.join(words)}: another may add in "
                  "another order")
    return sorted(lines)
