#!/usr/bin/env python3
"""The cost of judging: processor seconds and memory of `ulpscope judge` on recorded runs, per product size and per block.

    tests/bench/judging.py [--backend NAME] [--repeats N] [--only REGEX]

Each case is run once; then the recorded run is judged N times, and the least processor time of all threads counts, with what
reading the run and writing the report cost. The gates are in processor seconds of one value's judging; for programs also of
memory. `growth`: how much longer than the row before, beside how many more multiplications the program makes.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE, ulpscope  # noqa: E402

BF16, F32 = "bfloat16", "float32"


def tensor(dtype, *shape):
    return f"{{dtype: {dtype}, shape: [{', '.join(map(str, shape))}], fill: normal}}"


def product(dtype, m, k, n):
    return {
        "tensors": {"a": tensor(dtype, m, k), "b": tensor(dtype, k, n)},
        "program": ["{op: matmul, of: [a, b], as: y}"],
        "observe": "y",
        "work": m * k * n,
    }


def mlp(tokens, width, hidden):
    """Llama's feed-forward block."""
    return {
        "tensors": {
            "x": tensor(BF16, tokens, width),
            "gate": tensor(BF16, hidden, width),
            "up": tensor(BF16, hidden, width),
            "down": tensor(BF16, width, hidden),
        },
        "program": [
            "{op: linear, of: [x, gate], as: a}",
            "{op: silu, of: [a], as: s}",
            "{op: linear, of: [x, up], as: u}",
            "{op: mul, of: [s, u], as: g}",
            "{op: linear, of: [g, down], as: y}",
        ],
        "observe": "y",
        "work": 3 * tokens * width * hidden,
    }


def attention(heads, length, width):
    """Attention by hand, step by step."""
    return {
        "tensors": {name: tensor(BF16, heads, length, width) for name in "qkv"},
        "program": [
            "{op: transpose, of: [k], dim0: 1, dim1: 2, as: kt}",
            "{op: matmul, of: [q, kt], as: scores}",
            f"{{op: mul, of: [scores, {width ** -0.5}], as: scaled}}",
            "{op: softmax, of: [scaled], dim: 2, as: p}",
            "{op: matmul, of: [p, v], as: o}",
        ],
        "observe": "o",
        "work": 2 * heads * length * length * width,
    }


# name -> (case, most processor seconds, most MiB or None)
CASES = {
    "product_64_bfloat16": (product(BF16, 64, 64, 64), 0.12, None),
    "product_64_float32": (product(F32, 64, 64, 64), 0.12, None),
    "product_16x16_K4096_bfloat16": (product(BF16, 16, 4096, 16), 1.0, None),
    "product_16x16_K4096_float32": (product(F32, 16, 4096, 16), 1.0, None),
    "product_256_bfloat16": (product(BF16, 256, 256, 256), 2.0, None),
    "product_256_float32": (product(F32, 256, 256, 256), 2.0, None),
    "mlp_8x64": (mlp(8, 64, 96), 0.3, None),
    "mlp_64x512": (mlp(64, 512, 1376), 3.0, None),
    "mlp_16x4096": (mlp(16, 4096, 11008), 90.0, 4096),
    "attention_8x128x64": (attention(8, 128, 64), 3.0, None),
}


def text(name, case):
    lines = ["about: What judging costs.", "cases:", f"  - name: {name}", "    tensors:"]
    lines += [f"      {key}: {value}" for key, value in case["tensors"].items()]
    lines += ["    program:", *(f"      - {step}" for step in case["program"]), f"    observe: [{case['observe']}]",
              "    contract: {status: unspecified, accept: any}"]
    return "\n".join(lines) + "\n"


def judged(run):
    """Processor seconds and peak memory in MiB of judging a recorded run once; None where judging failed."""
    process = subprocess.Popen([ULPSCOPE, "judge", run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024) if process.returncode in (0, 1) else None


def row(name, case, folder, options):
    """(processor seconds, MiB); stops where the case does not run."""
    cases, run = folder / f"{name}.yaml", folder / name
    cases.write_text(text(name, case))
    ended = ulpscope("run", cases, "-b", options.backend, "--no-trace", "-q", "-o", run, timeout=1800)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{name}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    found = [judged(run) for _ in range(options.repeats)]
    if None in found:
        raise SystemExit(f"{name}: the recorded run was not judged")
    return min(seconds for seconds, _ in found), max(size for _, size in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="torch-eager", help="whose results are judged (torch-eager)")
    parser.add_argument("--repeats", type=int, default=3, help="judgings of each run (3)")
    parser.add_argument("--only", default="", help="rows whose names match")
    options = parser.parse_args()
    rows = {name: each for name, each in CASES.items() if re.search(options.only, name)}
    print(f"{'case':30} {'processor':>12} {'at most':>9} {'memory':>10} {'growth':>8} {'of work':>8}")
    within, before = [], None
    with tempfile.TemporaryDirectory(prefix="judging-") as name_of_folder:
        for name, (case, most, most_mib) in rows.items():
            seconds, mib = row(name, case, pathlib.Path(name_of_folder), options)
            good = seconds <= most and (most_mib is None or mib <= most_mib)
            family = name.split("_")[0]
            growth = (f"{seconds / before[1]:7.1f}x {case['work'] / before[2]:7.1f}x"
                      if before and before[0] == family and case["work"] > before[2] else "")
            print(f"{name:30} {seconds:10.3f} s {most:7.2f} s {mib:6.0f} MiB {growth}{'' if good else '  ABOVE'}", flush=True)
            within.append(good)
            before = (family, seconds, case["work"])
    print(f"judging: {sum(within)} of {len(within)} rows within their gates")
    return 0 if within and all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
