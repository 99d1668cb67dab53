"""Inductor's choices by timing, reported from kernels as torch's CachingAutotuner holds them: stand-ins, as no GPU is needed for the
report.

The bundle of ci/gpu runs the real ones; here torch has to know the names that the adapter takes from it.
"""

import os
import sys
from types import SimpleNamespace

from worker import ROOT, main

sys.path.insert(0, os.path.join(ROOT, "backends", "torch_compile"))

import tuned  # noqa: E402


def kernel(name, state, *chosen):
    launchers = [SimpleNamespace(config=SimpleNamespace(kwargs={"XBLOCK": block}, num_warps=2)) for block in chosen]
    return SimpleNamespace(fn=SimpleNamespace(__name__=name), autotune_cache_info=state and {"autotune_cache_state": state},
                           launchers=launchers)


def test_a_choice_is_told_once():
    found = [kernel("softmax_0", "miss", 8), kernel("softmax_0", "miss", 8), kernel("layer_norm_1", "hit", 1)]
    said = tuned.notes(found)
    assert len(said) == 2, said
    assert "layer_norm_1 and keeps XBLOCK 1, 2 warps" in said[0], said
    assert "softmax_0 and keeps XBLOCK 8, 2 warps" in said[1], said


def test_where_there_was_none_nothing_is_told():
    found = [kernel("one_configuration", "only 1 config", 8), kernel("never_run", "miss", 1, 8, 32), kernel("unknown", None, 8)]
    assert tuned.notes(found) == []


def test_torch_has_the_names_it_takes():
    from torch._inductor.codecache import PyCodeCache
    PyCodeCache.modules.append(SimpleNamespace(value=1))
    assert tuned.kernels() == []
    tuned.forget_loaded()
    assert PyCodeCache.modules == []


if __name__ == "__main__":
    main(globals())
