"""The kernels: the computation of each is known from its source, and so are the true findings on its results. `table.py` alone prints them.

A row tells the true mechanism in words, and for each facet of a model which words are true of it, as patterns; a facet without an
entry is not held against anything. kind: honest (within the contract), narrow (a rounding that the contract forbids), wrong (no
rounding explains it), formula (another formula in float32 steps, of whose accuracy a contract does not speak), open (the library
chooses, and does not say). table_second.py holds further ones.
"""

from dataclasses import dataclass, field

F32, BF16, F16, FP8 = "float32", "bfloat16", "float16", "float8_e4m3fn"
HALF, ALL = (BF16, F16), (F32, BF16, F16)
# A product of the tensor cores that keeps the width of float32: the block and the extra bits are the hardware's.
UNIT = r"blockfma\(\d+,2\d,rz\)"
PLAIN = {"in": "as_is", "prod": "exact|float32", "acc": "float32", "mid": "none"}
CORES = {**PLAIN, "acc": UNIT}
# Accumulators for which there is no single word: no reported word may lie within the contract.
BELOW = r"(?!float32$|float32_rz$|float64$|exact$|compensated$|blockfma\(\d+,2\d,rz\)$).*"
TF32 = {**CORES, "in": "tf32_r(ne|na|z)"}


@dataclass(frozen=True)
class Row:
    name: str
    op: str
    kind: str
    why: str
    run: str  # module:function
    how: dict = field(default_factory=dict)  # the function's arguments
    inputs: tuple = ALL
    wide: object = None  # whether results of 16-bit operands are asked for in float32: True, False, or None for both
    outputs: tuple = ()  # dtypes of the result, in place of what `wide` says
    words: dict = field(default_factory=dict)
    falls: str = ""  # the facet of the contract that does not hold; "values" where no rounding explains it
    deterministic: bool = True
    attrs: dict = field(default_factory=dict)  # of the step
    lengths: tuple = ()  # of sums, in place of the usual ones
    fills: tuple = ("normal", )
    interpreted: bool = True  # whether Triton's interpreter can run it


def products():
    def row(name, kind, why, function="dot", how=None, words=None, falls="", **more):
        return Row(name=name, op=more.pop("op", "matmul"), kind=kind, why=why, run=f"triton_products:{function}", how=how or {},
                   words=CORES if words is None else words, falls=falls, **more)

    f32 = {"inputs": (F32, )}
    yield row("dot_ieee", "honest", "tl.dot in float32 on CUDA cores: fused multiply-adds in the order of K", how={"prec": "ieee", "block": (32, 32, 16)},
              words=PLAIN, **f32)
    yield row("dot_tf32", "narrow", "tl.dot of float32 operands that the tensor cores take in TF32", how={"prec": "tf32"}, words=TF32,
              falls="in", **f32)
    yield row("dot_tf32x3", "narrow", "tl.dot of float32 operands as two TF32 parts each, the smallest product left out",
              how={"prec": "tf32x3", "block": (64, 64, 32)}, words={**CORES, "in": "tf32x3"}, falls="in", **f32)
    yield row("dot_bf16x3", "narrow", "float32 operands as two bfloat16 parts each", how={"prec": "bf16x3", "block": (64, 64, 32)},
              words={**CORES, "in": "bf16x3"}, falls="in", **f32)
    yield row("dot_bf16x6", "narrow", "float32 operands as three bfloat16 parts each", how={"prec": "bf16x6", "block": (64, 64, 32)},
              words={**CORES, "in": "bf16x6"}, falls="in", **f32)
    yield row("dot_f32acc", "honest", "tl.dot of 16-bit operands, float32 accumulator", inputs=HALF)
    yield row("dot_small_tile", "honest", "the same in tiles of 32, which takes the older instruction", how={"block": (32, 32, 32)}, inputs=HALF)
    yield row("dot_f16acc", "narrow", "tl.dot of float16 with a float16 accumulator", how={"acc": F16}, inputs=(F16, ),
              words={**CORES, "acc": r"blockfma\(\d+,2\d,rne_float16\)|float16(_via_float32)?"}, falls="acc")
    yield row("dot_in_bf16", "narrow", "float32 operands cast to bfloat16 before tl.dot", how={"operands": (BF16, BF16)},
              words={**CORES, "in": "bfloat16_rne"}, falls="in", **f32)
    yield row("dot_in_f16", "narrow", "float32 operands cast to float16 before tl.dot", how={"operands": (F16, F16)},
              words={**CORES, "in": "float16_rne"}, falls="in", **f32)
    yield row("dot_b_in_bf16", "narrow", "the second operand alone cast to bfloat16, then float32", how={"operands": (None, BF16), "block": (32, 32, 16)},
              words={**PLAIN, "in": "x:as_is,w:bfloat16_rne"}, falls="in", **f32)
    for kept in HALF:
        short = "bf16" if kept == BF16 else "f16"
        yield row(f"tiles_{short}", "narrow", f"the accumulator kept in {kept} between tiles of 32 of K",
                  how={"kept": kept, "every": 1, "block": (64, 64, 32)}, inputs=HALF, words={**CORES, "acc": BELOW}, falls="acc")
    yield row("store_bf16_128", "narrow", "the accumulator stored to bfloat16 after each 128 of K",
              how={"kept": BF16, "every": 2}, inputs=HALF, words={**CORES, "acc": BELOW}, falls="acc")
    yield row("mid_bf16", "narrow", "the float32 sum rounded to bfloat16 before a float32 store", how={"mid": BF16},
              inputs=HALF, wide=True, words={**CORES, "mid": BF16}, falls="mid")
    yield row("mid_f16", "narrow", "the float32 sum rounded to float16 before the store", how={"mid": F16, "prec": "ieee", "block": (32, 32, 16)},
              words={**PLAIN, "mid": F16}, falls="mid", **f32)
    yield row("splitk_atomic", "honest", "eight parts of K, added in float32 by atomics in any order", "parts", {"count": 8, "work": "atomic"},
              deterministic=False, words={**PLAIN, "acc": f"float32|{UNIT}"}, inputs=(F32, BF16))
    yield row("splitk_f32", "honest", "eight parts of K in a float32 workspace, added in float32", "parts", {"count": 8, "work": F32},
              words={**PLAIN, "acc": f"float32|{UNIT}"}, inputs=(F32, F16))
    for work, added in ((BF16, F32), (BF16, BF16), (F16, F32), (F16, F16)):
        short = {BF16: "bf16", F16: "f16", F32: "f32"}
        yield row(f"splitk_{short[work]}_{short[added]}", "narrow", f"eight parts of K in a {work} workspace, added in {added}", "parts",
                  {"count": 8, "work": work, "added": added}, words={**PLAIN, "acc": rf"split_k\({work},{added}\)"}, falls="acc",
                  inputs=(work, F32) if added == F32 else (work, ))
    yield row("steps_f32", "honest", "CUDA cores, float32 fused multiply-adds one by one", "steps", {"form": "wide", "of": F32}, words=PLAIN)
    yield row("steps_muladd", "honest", "CUDA cores, float32 multiply, then add", "steps", {"form": "wide", "of": F32, "fusion": False},
              words=PLAIN, inputs=(F32, ))
    yield row("steps_f64", "honest", "CUDA cores, float64 throughout", "steps", {"form": "wide", "of": "float64"},
              words={**PLAIN, "acc": "float64|exact"}, inputs=(F32, BF16))
    yield row("tree_f32", "honest", "CUDA cores, float32 products, 32 at a time summed as a tree", "tree", words=PLAIN)
    yield row("tree_as_dot", "narrow", "tl.sum of a product of broadcasts, in float32 as it is written: Triton makes a TF32 product of it", "tree",
              {"spread": False}, TF32, "in", **f32)
    for of in HALF:
        short = "bf16" if of == BF16 else "f16"
        narrow = {**PLAIN, "acc": f"{of}(_via_float32)?"}
        yield row(f"steps_{short}_fma", "narrow", f"CUDA cores, fused multiply-adds in {of}", "steps", {"form": "fma", "of": of}, inputs=(of, ),
                  words=narrow, falls="acc")
        yield row(f"steps_{short}_via", "narrow", f"CUDA cores, added in float32 and rounded to {of} after each term", "steps",
                  {"form": "via", "of": of}, inputs=(of, ), words=narrow, falls="acc")
        yield row(f"steps_{short}_rounded", "narrow", f"CUDA cores, products rounded to {of}, added in float32, rounded to {of}", "steps",
                  {"form": "rounded", "of": of, "fusion": False}, inputs=(of, ), words={**narrow, "prod": of}, falls="acc")
    yield row("fp8_cast", "narrow", "operands cast to e4m3 with a scale each, accumulator left to the tensor cores", "float8", falls="in",
              words={"in": r"(?!as_is$).*"}, inputs=(F32, BF16), interpreted=False)
    native = {"inputs": (FP8, ), "wide": True, "falls": "acc", "interpreted": False}
    for name, imprecise in (("default", None), ("32", 32), ("64", 64)):
        yield row(f"fp8_imprecise_{name}", "narrow",
                  "tl.dot of e4m3, some 13 bits kept in the tensor cores' sums, which are " +
                  ("those of all of K" if imprecise is None else f"added in float32 after each {imprecise} of K"),
                  how={"imprecise": imprecise, "k_major": True}, words={**CORES, "acc": r"blockfma\(\d+,1\d,rz\)" if imprecise is None else BELOW},
                  **native)
    yield row("fp8_imprecise_0", "honest", "tl.dot of e4m3, max_num_imprecise_acc 0: operands widened to float16, float32 accumulator",
              how={"imprecise": 0, "k_major": True}, inputs=(FP8, ), wide=True, interpreted=False)
    yield row("int8", "narrow", "operands quantised to int8, exact int32 sum", "integers", words={"in": r"(?!as_is$).*"}, falls="in",
              inputs=(F32, BF16))
    yield row("bias_honest", "honest", "linear: the bias added to the float32 sum", "added", op="linear", inputs=HALF, wide=False,
              words={**CORES, "acc": f"float32|{UNIT}"})
    yield row("bias_after_bf16", "narrow", "linear: the bias added after rounding to bfloat16", "added", {"mid": BF16}, op="linear",
              inputs=HALF, wide=False, words={**CORES, "acc": f"float32|{UNIT}", "mid": BF16}, falls="mid")
    yield row("alpha_honest", "honest", "addmm: alpha times the float32 sum", "scaled", op="addmm", attrs={"alpha": 0.7}, inputs=HALF, words={})
    yield row("alpha_after_bf16", "narrow", "addmm: alpha times the sum as rounded to bfloat16", "scaled", {"mid": BF16}, op="addmm",
              attrs={"alpha": 0.7}, inputs=HALF, words={"mid": BF16}, falls="mid")
    yield row("last_tile_dropped", "wrong", "the last partial tile of K is not read", "short", {"left_out": "tile"}, falls="values",
              words={}, lengths=(100, 1000), inputs=(BF16, F16))
    yield row("mask_off_by_one", "wrong", "the mask leaves the last product out", "short", {"left_out": 1}, falls="values", words={},
              inputs=(BF16, F16))
    yield row("one_tile_tf32", "narrow", "one tile of four in TF32, the others in float32", "mixed", words={"acc": f"float32|{UNIT}", "mid": "none"}, falls="in", **f32)


def libraries():
    def row(name, kind, why, how=None, words=None, falls="", function="matmul", op="matmul", **more):
        return Row(name=name, op=op, kind=kind, why=why, run=f"torch_kernels:{function}", how=how or {}, words=words or {}, falls=falls, **more)

    f32 = {"inputs": (F32, )}
    yield row("torch_f32", "honest", "torch.matmul, allow_tf32 off", words=PLAIN, **f32)
    yield row("torch_tf32", "narrow", "torch.matmul, allow_tf32 on", {"allow_tf32": True}, TF32, "in", **f32)
    yield row("torch_half", "honest", "torch.matmul and torch.mm(out_dtype=), reduced-precision reduction off", words=CORES, inputs=HALF)
    yield row("torch_reduced", "open", "the same with reduced-precision reduction allowed: parts may be stored in 16 bits",
              {"allow_fp16_reduced_precision_reduction": True, "allow_bf16_reduced_precision_reduction": True}, inputs=HALF)
    yield row("torch_f16acc", "narrow", "torch.matmul, allow_fp16_accumulation on: sums in float16", {"allow_fp16_accumulation": True},
              {**CORES, "acc": r"blockfma\(\d+,2\d,rne_float16\)|float16(_via_float32)?"}, "acc", inputs=(F16, ), wide=False)
    yield row("torch_cast_after", "narrow", "the product stored in 16 bits, then cast to float32", {"mid": True},
              {**CORES, "mid": "bfloat16|float16"}, "mid", inputs=HALF, wide=True)
    for fast in (True, False):
        yield row(f"scaled_mm_{'fast' if fast else 'slow'}", "narrow",
                  f"torch._scaled_mm of e4m3, use_fast_accum={fast}: " +
                  ("sums of some 13 bits" if fast else "short sums of some 13 bits, added in float32"), {"fast": fast},
                  {**CORES, "acc": r"blockfma\(\d+,1\d,rz\)" if fast else BELOW}, "acc", "scaled_mm", inputs=(FP8, ),
                  outputs=(F32, BF16), interpreted=False)
    for op in ("sum", "softmax", "layer_norm", "rms_norm", "gelu", "silu"):
        words = {"in": "as_is", "acc": "float32", "mid": "none"} if op == "sum" else {"mid": "none"}
        yield row(f"torch_{op}", "honest", f"eager {op}: float32 inside, one rounding at the store", function="op", op=op, words=words)
        if op in ("sum", "softmax", "layer_norm"):
            yield row(f"inductor_{op}", "honest", f"torch.compile of {op}", {"compiled": True}, words, function="op", op=op,
                      inputs=(BF16, ) if op == "softmax" else (F32, BF16), interpreted=False)
    yield row("torch_sum_narrow", "narrow", "torch.sum stored in 16 bits, then cast to float32", {"narrow": BF16},
              {"in": "as_is", "acc": "float32", "mid": BF16}, "mid", "op", "sum", inputs=(BF16, ), wide=True)
    yield row("torch_norm_bf16", "narrow", "layer_norm of operands cast to bfloat16", {"to": BF16}, {}, "in", "cast_first", "layer_norm", **f32)


def chains():
    def row(op, name, kind, why, how=None, falls="", words=None, function="", **more):
        functions = {"sum": "sums", "softmax": "online", "layer_norm": "layer_norm", "rms_norm": "rms_norm"}
        return Row(name=f"{op.replace('layer_norm', 'norm').replace('rms_norm', 'rms')}_{name}", op=op, kind=kind, why=why,
                   run=f"triton_chains:{function or functions.get(op, 'activation')}", how=how or {}, falls=falls, words=words or {}, **more)

    total = {"in": "as_is", "acc": "float32", "mid": "none"}
    f32 = {"inputs": (F32, )}
    yield row("sum", "tree", "honest", "float32, as a tree with shuffles", words=total)
    yield row("sum", "sequential", "honest", "float32, one by one", {"form": "sequential"}, words=total, inputs=(F32, BF16))
    yield row("sum", "kahan", "honest", "float32 with Kahan's correction", {"form": "kahan"}, words={**total, "acc": "compensated|float64|exact"}, **f32)
    yield row("sum", "f64", "honest", "float64", {"of": "float64"}, words={**total, "acc": "float64|exact"}, inputs=(F32, BF16))
    yield row("sum", "f16_tree", "narrow", "a tree in float16, shuffles included", {"of": F16}, "acc", {"acc": "float16(_via_float32)?"}, inputs=(F16, ))
    yield row("sum", "bf16_tree", "narrow", "a tree in bfloat16", {"of": BF16}, "acc", {"acc": "bfloat16(_via_float32)?"}, inputs=(BF16, ))
    yield row("sum", "bf16_steps", "narrow", "bfloat16, one by one", {"form": "sequential", "of": BF16}, "acc",
              {"acc": "bfloat16(_via_float32)?"}, inputs=(BF16, ))
    yield row("sum", "last_left_out", "wrong", "the last term is masked", {"form": "short"}, "values", inputs=(F32, BF16))

    fine = {"mid": "none"}
    yield row("softmax", "online", "honest", "online, exp2 with log2(e) in float32", words=fine, fills=("normal", "steep"))
    yield row("softmax", "whole", "honest", "the row at once, a division rounded to nearest", function="softmax", words=fine, inputs=(F32, BF16))
    yield row("softmax", "rescale_bf16", "narrow", "online, the rescaling of the sum in bfloat16", {"alpha": BF16}, "steps",
              fills=("normal", "steep"), **f32)
    yield row("softmax", "l_f16", "narrow", "online, the running sum in float16", {"total": F16}, "acc", **f32)
    yield row("softmax", "p_bf16", "narrow", "exponentials in bfloat16", {"p": BF16}, "steps", **f32)
    yield row("softmax", "sum_bf16", "narrow", "the sum of the exponentials as a tree in bfloat16", {"of": BF16}, "acc", function="softmax",
              inputs=(F32, BF16))
    yield row("softmax", "no_maximum", "formula", "the maximum is not subtracted", {"maximum": False}, fills=("normal", "steep"), **f32)

    yield row("layer_norm", "two_pass", "honest", "float32, mean before variance", words=fine)
    yield row("layer_norm", "one_pass", "formula", "E[x^2] - mean^2 in float32", {"form": "one_pass"}, fills=("normal", "shifted"), **f32)
    yield row("layer_norm", "instruction", "honest", "the root by rsqrt.approx.ftz.f32, an ulp or two", {"root": "instruction"}, words=fine,
              interpreted=False, **f32)
    yield row("layer_norm", "eps_outside", "wrong", "eps beside the root", {"form": "outside"}, "values", **f32)
    yield row("layer_norm", "n_minus_1", "wrong", "n - 1 in place of n", {"form": "less"}, "values", inputs=(F32, BF16))
    yield row("layer_norm", "stats_bf16", "narrow", "mean and inverse root in bfloat16", {"stats": BF16}, "steps", inputs=(F32, BF16))
    yield row("layer_norm", "stats_f16", "narrow", "mean and inverse root in float16", {"stats": F16}, "steps", **f32)
    yield row("rms_norm", "f32", "honest", "float32", words=fine)
    yield row("rms_norm", "cast_early", "narrow", "bfloat16 before the weight", {"early": BF16}, "steps", inputs=(F32, BF16))
    yield row("rms_norm", "squares_f16", "narrow", "squares formed and summed in float16", {"squares": F16}, "acc", **f32)

    yield row("gelu", "erf", "honest", "erf in float32", {"form": "gelu_erf"}, words=fine)
    yield row("gelu", "erf_bf16", "narrow", "1 + erf in bfloat16", {"form": "gelu_erf", "mid": BF16}, "steps", **f32)
    yield row("gelu", "tanh", "honest", "the tanh form, as asked for, in float32", {"form": "gelu_tanh"}, attrs={"approximate": "tanh"}, **f32)
    yield row("gelu", "tanh_instruction", "narrow", "the tanh form, as asked for, by tanh.approx.f32 (some 11 bits)",
              {"form": "gelu_tanh_instruction"}, "steps", attrs={"approximate": "tanh"}, interpreted=False, **f32)
    yield row("gelu", "tanh_for_erf", "wrong", "the tanh form where erf is asked for", {"form": "gelu_tanh"}, "values", **f32)
    yield row("gelu", "sigmoid", "wrong", "x sigmoid(1.702 x)", {"form": "gelu_sigmoid"}, "values", inputs=(F32, BF16))
    yield row("silu", "f32", "honest", "float32, a division rounded to nearest", {"form": "silu"}, words=fine)
    yield row("silu", "fast", "honest", "the division by rcp.approx.ftz.f32, an ulp or two", {"form": "silu_fast"}, interpreted=False, **f32)
    yield row("silu", "ex2", "honest", "the exponential by ex2.approx.ftz.f32", {"form": "silu_ex2"}, interpreted=False, **f32)
    yield row("silu", "sigmoid_bf16", "narrow", "the sigmoid in bfloat16", {"form": "silu_sigmoid", "mid": BF16}, "steps", **f32)
    yield row("silu", "tanh_instruction", "narrow", "the sigmoid by tanh.approx.f32 (some 11 bits)", {"form": "silu_tanh_instruction"}, "steps",
              interpreted=False, **f32)


def load():
    import table_second  # whose rows are this module's
    rows = {}
    for part in (products, libraries, chains, table_second.rows):
        for row in part():
            if row.name in rows:
                raise ValueError(f"two kernels are called {row.name}")
            rows[row.name] = row
    return rows


if __name__ == "__main__":
    for each in load().values():
        print(f"{each.name:24} {each.op:10} {each.kind:8} {each.falls or '-':7} {each.why}")
    print(len(load()), "kernels")
