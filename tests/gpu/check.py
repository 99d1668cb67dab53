"""Compiles for sm_90 what the kernels would run, without a GPU, and reports which instructions do their arithmetic.

usage: check.py [--only REGEX] [--ptx FOLDER]

Needs Triton and PyTorch, of which the CPU's will do. Rows that are PyTorch's alone have nothing to compile here. Exits 1 where
something does not compile.
"""

import argparse
import collections
import importlib
import pathlib
import re
import sys
import time

import cases
import launch
import table
import torch
import triton
from kernels import Call
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float8_e4m3fn: "*fp8e4nv", torch.int8: "*i8",
         torch.int32: "*i32", torch.float64: "*fp64"}
OPTIONS = ("num_warps", "enable_fp_fusion", "num_stages")
# Instructions that compute in a floating format, as PTX spells them.
ARITHMETIC = re.compile(r"\b((?:wgmma\.mma_async|mma)\.sync\.\S+|"
                        r"(?:fma|add|mul|sub|div|sqrt|rsqrt|rcp|ex2|tanh|lg2|cvt|max)\.\S*(?:f32|f16|bf16|f64|tf32)\S*)")


def compiled(kernel, args, constants):
    names = kernel.arg_names
    signature, constexprs, attrs = {}, {}, {}
    for place, (name, value) in enumerate(zip(names, args)):
        if torch.is_tensor(value):
            signature[name] = TYPES[value.dtype]
            attrs[(place, )] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif value == 1:
            signature[name] = "constexpr"
            constexprs[(place, )] = 1
        else:
            signature[name] = "i32"
            if value % 16 == 0:
                attrs[(place, )] = [["tt.divisibility", 16]]
    for name in names[len(args):]:
        signature[name] = "constexpr"
        constexprs[(names.index(name), )] = constants[name]
    source = ASTSource(kernel, signature, constexprs, attrs)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={k: v for k, v in constants.items() if k in OPTIONS})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels whose names match")
    parser.add_argument("--ptx", type=pathlib.Path, help="keep the PTX there")
    options = parser.parse_args()
    done, failed, began = set(), 0, time.time()
    for cell in cases.chosen(options.only):
        row = table.load()[cell.kernel]
        module, _, function = row.run.partition(":")
        key = (cell.kernel, cell.inputs, cell.output)
        if not module.startswith("triton") or key in done:
            continue
        done.add(key)
        kept = []
        launch.HOOK[:] = [lambda kernel, grid, args, constants, kept=kept: kept.append(compiled(kernel, args, constants))]
        torch.manual_seed(0)
        operands = [torch.randn(shape).to(getattr(torch, cell.inputs)) for shape in cases.tensors(cell).values()]
        begin = time.time()
        try:
            call = Call(cell.op, operands, getattr(torch, cell.output), cases.attributes(cell))
            getattr(importlib.import_module(module), function)(call, **row.how)
        except Exception as error:
            failed += 1
            print(f"{'/'.join(key):44} FAILS {type(error).__name__}: {str(error)[:300]}")
            continue
        for made in kept:
            found = collections.Counter(ARITHMETIC.findall(made.asm["ptx"]))
            said = ", ".join(f"{name.rstrip(';')} x{count}" for name, count in found.most_common(9))
            print(f"{'/'.join(key):44} {time.time() - begin:.1f} s: {said}", flush=True)
            if options.ptx:
                (options.ptx / ("-".join(key) + ".ptx")).write_text(made.asm["ptx"])
    print(f"{len(done) - failed} passed, {failed} failed, in {time.time() - began:.0f} s")
    sys.exit(1 if failed or not done else 0)


if __name__ == "__main__":
    main()
