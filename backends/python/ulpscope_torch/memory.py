"""peak_bytes: the most memory that a program's values took at one time, beyond the tensors that it was given.

It is measured in an execution of its own, after one that has compiled everything. On a CPU the allocator reports each block to
torch.profiler (profile_memory); on CUDA the caching allocator counts by itself, in blocks of 512 bytes. Importing this file imports no
torch.
"""

import contextlib

WORD = "peak_bytes"
_BEGIN = "ulpscope: the inputs are there"


def peak_bytes(run):
    """Executes `run`, an Execution that was executed before, once more; the peak in bytes."""
    return _on_cuda(run) if str(run.device).startswith("cuda") else _on_cpu(run)


@contextlib.contextmanager
def _begins(run, marked):
    """Calls `marked` when the inputs are there and nothing has been computed. Nobody else listens meanwhile: one profiler ends another."""
    before = run.begin

    def begin():
        before()
        marked()

    run.begin, run.watch = begin, contextlib.nullcontext
    try:
        yield
    finally:
        del run.begin, run.watch


def _on_cuda(run):
    import torch
    run.env = {}
    held = []

    def marked():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held.append(torch.cuda.memory_allocated())

    with _begins(run, marked):
        run.execute()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - held[0]


def _on_cpu(run):
    import torch

    def marked():
        with torch.profiler.record_function(_BEGIN):
            pass

    with _begins(run, marked), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run.execute()
    events = sorted(profile.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    return peak_of((event.name() == _BEGIN, event.nbytes() if event.name() == "[memory]" else 0) for event in events)


def peak_of(events):
    """The most bytes above what was held at the beginning, from (whether this is the beginning, bytes taken or given back) in order."""
    held = base = peak = 0
    begun = False
    for begins, count in events:
        held += count
        if begins:
            begun, base = True, held
        if begun:
            peak = max(peak, held - base)
    return peak
