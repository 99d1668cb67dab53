#!/usr/bin/env python3
"""The cost of a trace: warm cases with it beside the same without it, for each backend; fails above the gate.

One worker a backend runs each program with and without a trace, in turns, the order changing from round to round, after rounds that are not
counted. The time is the processor time of the worker, all its threads, from the request to the answer: what else runs on the machine does
not count. If the system does not report it, the time is that until the answer. A program's ratio is the median over its pairs; the gate is
on the backend's total, the sum of the medians with a trace over the sum of those without.

    tests/bench/trace_overhead.py [--rounds N] [BACKEND...]
"""

import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "adapters"))

from worker import ROOT, Adapter, normal, start, step  # noqa: E402

GATE = 1.20  # a fifth of a warm case's time
WARM_UP = 2  # rounds that are not counted: the first compiles, the second finds everything in its caches
CPP = {"torch-eager": "ulpscope-torch", "torch-traced": "ulpscope-torch"}
BACKENDS = ("torch-eager", "torch-traced", "torch-aot-eager", "torch-inductor", "jax", "jax-eager")

BF16, F32 = "bfloat16", "float32"
# name -> (tensors, steps, observed, leaves that take a gradient): the seeds' shapes, and a chain.
PROGRAMS = {
    "matmul": ({
        "x": normal(BF16, [32, 7, 1, 8], 1),
        "y": normal(BF16, [32, 7, 8, 1], 2)
    }, [step("matmul", "x", "y", name="p"),
        step("cast", "p", name="r", dtype=F32)], ["r"], ()),
    "square": ({
        "x": normal(BF16, [64, 64], 1),
        "y": normal(BF16, [64, 64], 2)
    }, [step("matmul", "x", "y", name="p"),
        step("cast", "p", name="r", dtype=F32)], ["r"], ()),
    "layer_norm": ({
        "x": normal(BF16, [4, 64, 256], 1),
        "w": normal(BF16, [256], 2),
        "b": normal(BF16, [256], 3)
    }, [step("layer_norm", "x", "w", "b", name="r", normalized_shape=[256], eps=1e-5)], ["r"], ()),
    "linear_backward": ({
        "x": normal(BF16, [22, 44], 1),
        "w": normal(BF16, [66, 44], 2)
    }, [step("linear", "x", "w", name="o"),
        step("sum", "o", name="loss"),
        step("backward", "loss")], ["w.grad"], ("w",)),
    "chain": ({
        "x": normal(BF16, [64, 256], 1),
        "w": normal(BF16, [256, 128], 2)
    }, [
        step("matmul", "x", "w", name="p"),
        step("gelu", "p", name="g"),
        step("mul", "g", "p", name="m"),
        step("softmax", "m", name="s", dim=-1),
        step("cast", "s", name="r", dtype=F32)
    ], ["r"], ()),
}


def processor_ns(pid):
    """Nanoseconds that the threads of a process have run; None if the system does not report them."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return total or None


def measured(adapter, program, trace):
    """(milliseconds of one run, nodes in its answer)"""
    tensors, steps, observed, leaves = program
    before, begin = processor_ns(adapter.process.pid), time.perf_counter()
    answer = adapter.run(tensors, steps, observed, requires_grad=leaves, trace=trace)
    elapsed = (time.perf_counter() - begin) * 1e3
    if answer["outcome"]["kind"] != "completed":
        raise SystemExit(f"{answer['outcome']}")
    if before is None:
        return elapsed, len(answer["nodes"])
    time.sleep(0.002)  # a thread's account is settled when it goes to sleep
    return (processor_ns(adapter.process.pid) - before) / 1e6, len(answer["nodes"])


def ratio_of(name, adapter, program, rounds):
    """(median ms without, median ms with, median ratio of the pairs, nodes)"""
    times = {True: [], False: []}
    for number in range(WARM_UP + rounds):
        for trace in (True, False) if number % 2 else (False, True):
            spent, nodes = measured(adapter, program, trace)
            if (nodes > 0) != trace:
                raise SystemExit(f"{name}: {nodes} nodes with trace={trace}")
            found = nodes if trace else found if number else 0
            if number >= WARM_UP:
                times[trace].append(spent)
    pairs = [on / off for on, off in zip(times[True], times[False])]
    return statistics.median(times[False]), statistics.median(times[True]), statistics.median(pairs), found


def bench(backend, rounds):
    """Prints a backend's lines; True when it is below the gate."""
    command = [os.path.join(ROOT, "build", "release", "bin", CPP[backend])] if backend in CPP else None
    with Adapter(command, backend) if command else start(backend) as adapter:
        total = {True: 0.0, False: 0.0}
        for name, program in PROGRAMS.items():
            off, on, pair, nodes = ratio_of(name, adapter, program, rounds)
            total[False] += off
            total[True] += on
            print(f"{backend:16} {name:16} {off:9.2f} ms {on:9.2f} ms {pair:7.3f} {nodes:6} nodes",
                  flush=True)
    ratio = total[True] / total[False]
    print(
        f"{backend:16} {'trace overhead':16} {total[False]:9.2f} ms {total[True]:9.2f} ms {ratio:7.3f} "
        f"{'ok' if ratio <= GATE else f'ABOVE {GATE:.2f}'}", flush=True)
    return ratio <= GATE


def missing(backend):
    """Why a backend cannot be measured here; empty when it can."""
    if backend in CPP:
        path = os.path.join("build", "release", "bin", CPP[backend])
        return "" if os.path.exists(os.path.join(ROOT, path)) else f"{path} is not built"
    package = "jax" if backend.startswith("jax") else "torch"
    try:
        __import__(package)
    except ImportError:
        return f"no {package} in {sys.executable}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=f"of {', '.join(BACKENDS)} (all)")
    parser.add_argument("--rounds", type=int, default=11, help="pairs of runs that are counted (11)")
    options = parser.parse_args()
    wanted = options.backends or BACKENDS
    if unknown := set(wanted) - set(BACKENDS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    print(f"{'backend':16} {'program':16} {'without':>12} {'with':>12} {'ratio':>7}")
    below = []
    for backend in wanted:
        if reason := missing(backend):
            print(f"{backend:16} left out: {reason}")
        else:
            below.append(bench(backend, options.rounds))
    print(f"trace overhead: {sum(below)} of {len(below)} backends at most {GATE:.2f}")
    return 0 if below and all(below) else 1


if __name__ == "__main__":
    sys.exit(main())
