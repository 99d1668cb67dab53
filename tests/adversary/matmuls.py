"""The table of matrix products: honest ones in many orders, and narrow ones whose rounding a recipe names."""

import numpy as np
from kernel import Kernel, from_recipe, row
from products import ORDERS, Recipe, accumulate, block_sum, emulated_split, finish, replace
from rounding import rounding

F32 = ("float32",)
WIDE = ("float32", "float16")


def honest():
    for order in ORDERS:
        yield row(f"f32_{order}", "honest", f"float32 multiply and add, {order}", order=order, prod="float32")
    for order in ("sequential", "lanes8", "pairwise", "blocked64"):
        yield row(f"fma_{order}", "honest", f"float32 fused multiply-add, {order}", order=order, inputs=F32)
    yield row("f64_sequential", "honest", "float64 sum", acc="float64")
    yield row("f64_lanes4", "honest", "float64 sum in four lanes", acc="float64", order="lanes4")
    yield row("f64_then_f32", "honest", "float64 sum, rounded to float32 before the store", acc="float64", mid="float32")
    yield row("exact", "honest", "the exact sum, rounded once", acc="exact")
    yield row("compensated", "honest", "compensated float32 dot product", acc="compensated")
    yield row("f32_blocks_in_f64", "honest", "float32 in parts of 8 lanes, the lanes added in float64", order="lanes8",
              combine="float64")


def operands():
    for bits in (*range(4, 24), ):
        if bits in (8, 11):
            continue
        yield row(f"in_p{bits}", "narrow", f"both operands rounded to {bits} bits", a=f"p{bits}", b=f"p{bits}", order="lanes8",
                  inputs=F32)
    for bits in (6, 9, 10, 13, 16, 20, 22):
        yield row(f"in_p{bits}_rz", "narrow", f"both operands cut to {bits} bits", a=f"p{bits}_rz", b=f"p{bits}_rz", inputs=F32)
    for bits in (7, 10, 12, 16, 19, 23):
        yield row(f"in_a_p{bits}", "narrow", f"the first operand rounded to {bits} bits", a=f"p{bits}", order="lanes16",
                  inputs=F32)
        yield row(f"in_b_p{bits}_rz", "narrow", f"the second operand cut to {bits} bits", b=f"p{bits}_rz", inputs=F32)
    for name in ("bfloat16", "bfloat16_rz", "tf32", "tf32_rna", "tf32_rz", "float16"):
        yield row(f"in_{name}", "narrow", f"both operands through {name}", a=name, b=name, order="lanes8", inputs=F32)
    for name in ("bfloat16", "tf32", "float16"):
        yield row(f"in_a_{name}", "narrow", f"the first operand through {name}", a=name, inputs=F32)
    for name in ("e4m3", "e4m3_sat", "e5m2", "e5m2_sat"):
        yield row(f"in_{name}", "narrow", f"both operands through float8 {name}", a=name, b=name, order="lanes8")
    yield row("in_b_e4m3_sat", "narrow", "the second operand through saturating e4m3", b="e4m3_sat")
    yield row("in_bf16_of_half", "narrow", "float16 operands through bfloat16", a="bfloat16", b="bfloat16",
              inputs=("float16", ))
    yield row("in_daz", "narrow", "subnormal operands taken for zero", a="daz", b="daz")


def sums():
    for bits in range(8, 24):
        yield row(f"acc_p{bits}", "narrow", f"accumulator of {bits} bits", acc=f"p{bits}")
    for bits in (10, 12, 16, 20):
        yield row(f"acc_p{bits}_lanes8", "narrow", f"accumulators of {bits} bits in 8 lanes", acc=f"p{bits}", order="lanes8")
    for bits in (12, 16, 22):
        yield row(f"acc_p{bits}_rz", "narrow", f"accumulator cut to {bits} bits", acc=f"p{bits}_rz")
    yield row("acc_p14_sr", "narrow", "accumulator of 14 bits, stochastically rounded", acc="p14_sr")
    for name in ("bfloat16", "float16", "bfloat16_via_float32", "float16_via_float32"):
        yield row(f"acc_{name}", "narrow", f"accumulator {name}", acc=name)
    yield row("acc_bfloat16_pairwise", "narrow", "pairwise sum in bfloat16", acc="bfloat16", order="pairwise")
    yield row("acc_float16_lanes8", "narrow", "float16 in 8 lanes", acc="float16", order="lanes8")
    yield row("acc_bfloat16_rz", "narrow", "bfloat16 accumulator, cut", acc="bfloat16_rz")
    yield row("acc_float32_rz", "narrow", "float32 accumulator, cut", acc="float32_rz", accepted=True)
    yield row("acc_float32_rz_lanes8", "narrow", "float32 accumulators, cut, in 8 lanes", acc="float32_rz", order="lanes8",
              accepted=True)
    yield row("acc_float32_ftz", "narrow", "float32 accumulator that flushes to zero", acc="float32_ftz")
    for name in ("bfloat16", "float16", "p16", "p12", "p20"):
        yield row(f"prod_{name}", "narrow", f"products rounded to {name}, added in float32", prod=name)
        yield row(f"part4_{name}", "narrow", f"four float32 partial sums, kept and added in {name}", order="split4",
                  combine=name)
    yield row("part8_bfloat16", "narrow", "eight float32 partial sums, kept and added in bfloat16", order="split8",
              combine="bfloat16")
    yield row("prod_p10_rz", "narrow", "products cut to 10 bits", prod="p10_rz", order="lanes8")


def results():
    for name in ("p9", "p10", "p12", "p14", "p16", "p18", "p20", "p22", "p23", "bfloat16", "float16", "tf32"):
        yield row(f"mid_{name}", "narrow", f"float32 sum rounded through {name} before the store", mid=name, order="lanes8")
    for name in ("p12_rz", "p20_rz", "p22_sr", "bfloat16_rz", "e5m2", "bfloat16_of_float16", "float16_sat"):
        yield row(f"mid_{name}", "narrow", f"float32 sum through {name} before the store", mid=name)
    for how in ("rz", "rna", "ftz", "sr"):
        yield row(f"out_{how}", "narrow", f"the store rounds {how}, of an exact sum", acc="exact", out=how)
    yield row("out_rz_of_f32", "narrow", "the store cuts a float32 sum", out="rz", order="lanes8",
              inputs=("bfloat16", "float16"))


def _integers(axis):
    """Symmetric int8 with one scale per tensor (axis None) or per row of products."""
    def quantised(x, along):
        largest = np.abs(x).max(axis=along, keepdims=True) if along is not None else np.abs(x).max()
        with np.errstate(all="ignore"):
            scale = np.where(largest > 0, largest, 1.0) / 127.0
            return np.clip(np.rint(x / scale), -127, 127), scale

    def run(call):
        a, b = (np.asarray(x).astype(np.float64) for x in call.operands)
        (qa, sa), (qb, sb) = quantised(a, 1 if axis else None), quantised(b, 0 if axis else None)
        with np.errstate(all="ignore"):
            total = np.matmul(qa, qb) * sa * sb
        return finish(total, Recipe(), call.dtype)

    return run


def _splits(kind, parts, terms):
    def run(call):
        a, b = (np.asarray(x).astype(np.float64) for x in call.operands)
        return finish(emulated_split(a, b, kind, parts, terms, Recipe(order="lanes8")), Recipe(), call.dtype)

    return run


def _blocks(n, fraction, mode, acc="float32", narrow="as_is"):
    def run(call):
        a, b = (rounding(narrow)(np.asarray(x).astype(np.float64)) for x in call.operands)
        return finish(block_sum(a, b, n, fraction, mode, acc), Recipe(), call.dtype)

    return run


def others():
    def kernel(name, why, run, **more):
        return Kernel(name=name, op="matmul", kind="narrow", why=why, run=run, **more)

    yield kernel("int8_tensor", "int8 operands, one scale per tensor", _integers(None))
    yield kernel("int8_row", "int8 operands, one scale per row and column", _integers(1))
    splits = {f"{kind}x{terms}": _splits(kind, parts, terms)
              for kind, parts, terms in (("bf16", 2, 3), ("tf32", 2, 3), ("bf16", 3, 6), ("bf16", 3, 9))}
    for kind, parts, terms in (("bf16", 2, 2), ("bf16", 2, 3), ("tf32", 2, 3), ("bf16", 3, 6)):
        word = f"{kind}x{terms}"
        # Two products of two pieces are the first piece of x times w in 16 bits.
        inside = {"x": word, "w": word} if terms > 2 else {"x": "bfloat16_rne"}
        words = {"in": inside, "mid": "none"}
        yield kernel(f"{kind}x{terms}", f"operands split into {parts} of {kind}, {terms} products of the pieces",
                     _splits(kind, parts, terms), inputs=F32, words=words, others=splits)
    half = ("bfloat16", "float16")
    for n, fraction, mode in ((4, 23, "rz"), (8, 24, "rz"), (16, 25, "rz"), (16, 24, "rne"), (32, 26, "rz")):
        yield kernel(f"block{n}_{fraction}_{mode}",
                     f"units of {n} products cut at {fraction} bits below the largest, {mode} to float32",
                     _blocks(n, fraction, mode), inputs=half, accepted=True)
    for n, fraction in ((32, 13), (8, 18), (16, 21), (4, 10)):
        yield kernel(f"block{n}_{fraction}_rz", f"units of {n} products cut at {fraction} bits below the largest",
                     _blocks(n, fraction, "rz"),
                     inputs=half)
    yield kernel("block8_24_half", "units of 8 products, rounded to float16 each", _blocks(8, 24, "rne", "float16"),
                 inputs=half)
    yield kernel("block8_tf32", "tf32 operands in units of 8 products", _blocks(8, 24, "rz", "float32", "tf32"), inputs=F32)
    yield kernel("acc_p20_then_f64", "20-bit lanes added in float64",
                 from_recipe(Recipe(acc="p20", order="lanes16", combine="float64")))


def partly():
    """Precision that depends on where, on K or on the data."""
    good, low = Recipe(order="lanes8"), Recipe(order="lanes8", acc="bfloat16")

    def mixed(name, why, where, poor=replace(good, a="bfloat16", b="bfloat16", mid="bfloat16")):
        def run(call):
            a, b = (np.asarray(x).astype(np.float64) for x in call.operands)
            fine = finish(accumulate(a, b, good), good, call.dtype)
            coarse = rounding(poor.a)(a), rounding(poor.b)(b)
            rough = finish(accumulate(*coarse, poor), poor, call.dtype)
            return np.where(where(a, b), rough, fine)

        return Kernel(name=name, op="matmul", kind="narrow", why=why, run=run)

    def cells(a, b):
        return np.arange(a.shape[0])[:, None], np.arange(b.shape[1])[None, :]

    yield mixed("part_last_tile", "the last 8 by 8 outputs in bfloat16",
                lambda a, b: (cells(a, b)[0] >= a.shape[0] - 8) & (cells(a, b)[1] >= b.shape[1] - 8))
    yield mixed("part_last_row", "the last row in bfloat16", lambda a, b: cells(a, b)[0] + 0 * cells(a, b)[1] == a.shape[0] - 1)
    yield mixed("part_first_column", "the first column in bfloat16", lambda a, b: cells(a, b)[1] + 0 * cells(a, b)[0] == 0)
    yield mixed("part_one_element", "one element in bfloat16", lambda a,
                b: (cells(a, b)[0] == a.shape[0] // 2) & (cells(a, b)[1] == 1))
    yield mixed("part_odd_rows", "odd rows with a bfloat16 accumulator", lambda a,
                b: cells(a, b)[0] % 2 + 0 * cells(a, b)[1] == 1, low)
    yield mixed("part_long", "bfloat16 accumulator where K exceeds 64", lambda a,
                b: np.full((a.shape[0], b.shape[1]), a.shape[1] > 64), low)
    yield mixed("part_small_rows", "rows of small operands through bfloat16",
                lambda a, b: (np.abs(a).max(axis=1) < np.median(np.abs(a).max(axis=1)))[:, None] | np.zeros((1, b.shape[1]),
                                                                                                            bool))


def table():
    for part in (honest, operands, sums, results, others, partly):
        yield from part()
