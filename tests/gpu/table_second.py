"""A second set of kernels, by someone who knew of the classifier no more than its words: rows as table.py has them, names begin with z_."""

from table import ALL, BELOW, BF16, CORES, F16, F32, FP8, HALF, PLAIN, UNIT, Row

SUMMED = f"float32|{UNIT}"
NARROWED = r"(?!as_is$).*"  # an operand that was rounded, of whichever word
# Rounded, but to no format in a way that has a word.
OTHER = r"(?!as_is$|bfloat16_r|float16_r|tf32_r).*"
FINE = {"mid": "none"}
ENDS = f"none|{BF16}"  # where the last addition is in bfloat16, one more rounding to it changes nothing
TOTAL = {"in": "as_is", "acc": "float32", "mid": "none"}
ONE = {"inputs": (F32, )}


def _but(words, *left_out, **more):
    """Without facets that have no single word."""
    return {**{facet: word for facet, word in words.items() if facet not in left_out}, **more}


def _row(name, op, kind, why, run, how=None, falls="", words=None, **more):
    return Row(name=f"z_{name}", op=op, kind=kind, why=why, run=run, how=how or {}, falls=falls, words=words or {}, **more)


def products():
    def row(name, kind, why, function, how=None, words=None, falls="", op="matmul", **more):
        return _row(name, op, kind, why, f"triton_second_products:{function}", how, falls, CORES if words is None else words, **more)

    summed = {**PLAIN, "acc": SUMMED}
    wide = {"inputs": (BF16, ), "wide": True}
    yield row("stream_k", "honest", "K cut in two at another place in each tile of the result, both sums in float32, added in float32", "shares",
              {"form": "stream"}, summed, inputs=(F32, BF16), lengths=(512, 4096))
    yield row("dealt_k", "honest", "tiles of K dealt out to four programs, sums kept and added in float32", "shares", {"count": 4}, summed,
              inputs=(F32, F16), lengths=(512, ))
    yield row("dealt_atomic", "honest", "the same with sixteen programs and float32 atomics in any order", "shares", {"count": 16, "atomic": True}, summed,
              deterministic=False, lengths=(4096, ), inputs=(F32, BF16))
    yield row("reversed", "honest", "tiles of K from the last to the first", "tiles", {"form": "reversed"}, summed, lengths=(512, ))
    yield row("tiles_in_f64", "honest", "sums of 32 in float32, added in float64", "tiles", {"form": "float64"},
              {**PLAIN, "acc": f"float64|exact|compensated|{SUMMED}"}, inputs=(F32, BF16), lengths=(512, 4096))
    yield row("fresh", "honest", "sums of 32 begun anew, added in float32", "tiles", {"form": "fresh"}, summed, inputs=(F32, BF16), lengths=(512, ))
    yield row("dot2", "honest", "CUDA cores, the errors of products and sums kept and added at the end", "singles", {"form": "dot2", "fusion": False},
              {**PLAIN, "acc": "compensated|float64|exact"}, lengths=(64, 512), **ONE)
    yield row("fma_rz", "honest", "CUDA cores, fma.rz.f32 one by one: cut, at the width of float32", "singles", {"form": "rz"},
              {**PLAIN, "acc": f"float32_rz|{UNIT}"}, interpreted=False, inputs=(F32, BF16), wide=True, lengths=(64, 512))
    yield row("lanes", "honest", "32 sums in float32 per result, added as a tree in float32 by shuffles", "lanes", words=PLAIN, inputs=(F32, F16),
              lengths=(64, 512))
    yield row("bf16x9", "honest", "float32 operands as three bfloat16 parts each, which hold them, and all nine products", "split", {"form": "nine"},
              {**PLAIN, "acc": SUMMED}, lengths=(64, 512), **ONE)
    yield row("subnormal", "honest", "CUDA cores, fused multiply-adds that keep subnormals, of operands whose products are some", "singles",
              {"form": "product"}, PLAIN, lengths=(64, 512), fills=("tiny", ), **ONE)
    yield row("fp8_widened", "honest", "e4m3 operands widened to bfloat16, which holds them", "tiles", {"form": "widened"}, inputs=(FP8, ), wide=True,
              lengths=(64, 512), interpreted=False)
    yield row("bias_first", "honest", "linear: the accumulator begins with the bias", "tiles", {"form": "bias"}, summed, op="linear", inputs=(F32, BF16),
              wide=False, lengths=(64, 512))

    yield row("last_tile_bf16", "narrow", "operands of the last 32 of K rounded to bfloat16", "tiles", {"form": "last_bf16"}, FINE, "in",
              lengths=(64, 512), **ONE)
    yield row("one_program", "narrow", "one tile of four rounds its accumulator to bfloat16 after each 32 of K", "tiles", {"form": "one_program"},
              {"in": "as_is"}, "acc", inputs=(F32, BF16), wide=True, lengths=(64, 512))
    yield row("triggered", "narrow", "operands of a tile are rounded to bfloat16 where one is above 3.5 in it", "tiles", {"form": "triggered", "limit": 3.5},
              FINE, "in", lengths=(64, 512), **ONE)
    yield row("half_k_f16", "narrow", "half of K summed in float16, the rest in float32 on top", "tiles", {"form": "half_k", "block": (64, 64, 32)},
              {**CORES, "acc": BELOW}, "acc", inputs=(F16, ), lengths=(64, 512, 4096))
    yield row("fma_ftz", "narrow", "CUDA cores, fma.rn.ftz.f32: subnormal operands and sums are zero", "singles", {"form": "ftz"},
              _but(PLAIN, "in", acc=r"float32(\+ftz)?", out=r"float32_rne(\+ftz)?"), "acc", fills=("normal", "tiny"), lengths=(64, ), interpreted=False, **ONE)
    yield row("chunks_f16", "narrow", "fused in float16, eight at a time, which are added in float32", "singles", {"form": "chunk", "of": F16},
              {**PLAIN, "acc": BELOW}, "acc", inputs=(F16, ), lengths=(64, 512))
    yield row("products_bf16", "narrow", "products rounded to bfloat16, summed in float32", "singles", {"form": "product", "of": BF16, "fusion": False},
              {**PLAIN, "prod": "bfloat16"}, "prod", lengths=(64, 512), **wide)
    yield row("products_f16", "narrow", "products rounded to float16, summed in float32", "singles", {"form": "product", "of": F16, "fusion": False},
              {**PLAIN, "prod": "float16"}, "prod", inputs=(F16, ), lengths=(64, 512))
    yield row("workspace_tf32", "narrow", "four sums kept with TF32's bits, cut, and added in float32", "shares", {"count": 4, "dropped": 13},
              {**PLAIN, "acc": BELOW}, "acc", inputs=(F32, BF16), wide=True, lengths=(512, ))
    yield row("atomic_bf16", "narrow", "eight sums added by bfloat16 atomics in any order", "shares", {"count": 8, "work": BF16, "atomic": True},
              {**PLAIN, "acc": BELOW, "mid": ENDS}, "acc", inputs=(BF16, ), lengths=(512, ), deterministic=False, interpreted=False)
    yield row("lanes_bf16", "narrow", "32 sums in float32 per result, rounded to bfloat16 and added as a tree in it", "lanes", {"of": BF16},
              {**PLAIN, "acc": r"split_k\(bfloat16,bfloat16\)", "mid": ENDS}, "acc", inputs=(F32, BF16), wide=True, lengths=(64, 512))
    yield row("bf16_one_sided", "narrow", "the first operand as three bfloat16 parts, which hold it, the second as one", "split", {"form": "one_sided"},
              {**PLAIN, "acc": SUMMED, "in": "x:as_is,w:bfloat16_rne"}, "in", lengths=(64, 512), **ONE)
    yield row("tf32_missing", "narrow", "TF32x3 with one product of parts forgotten: the first operand is cut to TF32, the second hardly", "split",
              {"form": "tf32_missing"}, {**PLAIN, "acc": SUMMED, "in": "x:tf32_rz,w:(?!tf32_r|bfloat16|float16).*"}, "in", lengths=(64, 512), **ONE)
    yield row("fp8_blocks", "narrow", "operands to e4m3 with a scale for each 128 of K, sums of 128 scaled and added in float32", "float8", {"scales": "blocks"},
              {"in": NARROWED}, "in", inputs=(F32, BF16), lengths=(128, 512), interpreted=False)
    yield row("fp8_rows", "narrow", "operands to e4m3 with a scale for each row and column", "float8", {"scales": "rows"}, {"in": NARROWED}, "in",
              inputs=(BF16, ), wide=True, lengths=(64, 512), interpreted=False)
    yield row("fp8_promoted", "narrow", "e4m3, the tensor cores' sums of some 13 bits begun anew each 128 of K and added in float32", "tiles",
              {"form": "fresh", "block": (64, 64, 128), "k_major": True}, {**CORES, "acc": BELOW}, "acc", inputs=(FP8, ), wide=True, lengths=(128, 512, 4096),
              interpreted=False)
    yield row("int8_first", "narrow", "the first operand alone to int8 with a scale for each row, and back", "operands", {"first": "int8"},
              {**PLAIN, "in": f"x:{OTHER},w:as_is"}, "in", lengths=(64, 512), **ONE)
    yield row("stochastic", "narrow", "the first operand to bfloat16, up or down by chance", "operands", {"first": "drawn"},
              {**PLAIN, "in": f"x:{OTHER},w:as_is"}, "in", lengths=(64, 512), **ONE)
    yield row("in_bf16_rz", "narrow", "both operands cut to bfloat16", "operands", {"first": "cut", "second": "cut"}, {**PLAIN, "in": "bfloat16_rz"}, "in",
              lengths=(64, 512), **ONE)
    yield row("mid_bf16_rz", "narrow", "the float32 sum cut to bfloat16 before a float32 store", "tiles", {"form": "mid_rz"},
              {**CORES, "acc": SUMMED, "mid": "(?!none$).*"}, "mid", lengths=(64, 512), **wide)
    yield row("store_rz", "narrow", "the store cuts to 16 bits", "tiles", {"form": "store_rz"}, {**CORES, "acc": SUMMED, "out": r"(bfloat16|float16)_rz"}, "out",
              inputs=HALF, wide=False, lengths=(64, 512))
    yield row("alpha_bf16", "narrow", "addmm: alpha rounded to bfloat16", "alpha", {"to": BF16}, {}, "steps", op="addmm", attrs={"alpha": 0.7},
              inputs=(BF16, ), lengths=(64, 512))

    yield row("bias_twice", "wrong", "linear: both of two shares of K begin with the bias", "shares", {"form": "biased"}, {}, "values", op="linear",
              inputs=(F32, BF16), wide=False, lengths=(512, ))
    yield row("column", "wrong", "the last column of the second operand is read one too early", "tiles", {"form": "column"}, {}, "values", inputs=(F32, BF16),
              lengths=(64, ))
    yield row("stale_tile", "wrong", "the last tile multiplies the first operand of the tile before", "tiles", {"form": "stale"}, {}, "values",
              inputs=(F32, F16), wide=False, lengths=(64, 512))


def chains():
    def row(name, op, kind, why, function, how=None, falls="", words=None, **more):
        return _row(name, op, kind, why, f"triton_second_chains:{function}", how, falls, words, **more)

    yield row("sum_rz", "sum", "honest", "add.rz.f32 one by one: cut, at the width of float32", "sums", {"form": "rz"}, words={**TOTAL, "acc": f"float32_rz|{UNIT}"},
              interpreted=False, lengths=(64, 1000), **ONE)
    yield row("sum_fixed", "sum", "honest", "integers of 2^-40, whose sum is exact", "sums", {"form": "fixed"},
              words={**TOTAL, "acc": "float64|exact|compensated"}, lengths=(64, 1000), inputs=(F32, BF16), wide=True)
    yield row("sum_atomic", "sum", "honest", "sums of 64 added by float32 atomics in any order", "sums", {"form": "atomic", "block": 64}, words=TOTAL,
              deterministic=False, inputs=(F32, BF16), wide=True, lengths=(1000, ))
    yield row("sum_lanes_bf16", "sum", "narrow", "32 sums in float32, rounded to bfloat16 and added as a tree in it", "sums",
              {"form": "lanes", "of": BF16, "block": 32}, "acc", {**TOTAL, "acc": r"split_k\(bfloat16,bfloat16\)", "mid": ENDS}, inputs=(F32, BF16), wide=True,
              lengths=(1000, ), fills=("normal", "positive"))
    yield row("sum_f16_long", "sum", "narrow", "a tree, in float16 for rows longer than 512", "sums", {"form": "tree", "of": F16, "long": 512}, "acc", {},
              inputs=(F16, ), wide=True, lengths=(1000, 64))
    yield row("sum_coarse", "sum", "narrow", "integers of 2^-12, whose sum is exact", "sums", {"form": "coarse"}, "in", {"in": OTHER},
              lengths=(64, 1000), **ONE)
    yield row("sum_whole_tiles", "sum", "wrong", "the last partial tile is not read", "sums", {"form": "whole", "block": 64}, "values",
              inputs=(F32, BF16), wide=True, lengths=(1000, ))

    yield row("softmax_max_bf16", "softmax", "honest", "the maximum rounded to bfloat16: any number near it will do", "softmax", {"form": "max_bf16"},
              words=FINE, fills=("normal", "steep"), **ONE)
    yield row("softmax_lazy", "softmax", "honest", "online, a maximum that may be stale by 4", "online", {"form": "lazy"}, words=FINE,
              fills=("normal", "steep"), **ONE)
    yield row("softmax_poly8", "softmax", "honest", "exponentials by a polynomial of degree 8, on FMA units", "softmax", {"form": "poly8"}, words=FINE,
              inputs=(F32, BF16), wide=False)
    yield row("softmax_rcp", "softmax", "honest", "times rcp.approx.ftz.f32 of the sum, an ulp", "softmax", {"form": "rcp"}, words=FINE, interpreted=False,
              **ONE)
    yield row("softmax_log2e_bf16", "softmax", "narrow", "exp2 with log2(e) in bfloat16", "softmax", {"form": "log2e_bf16"}, "steps",
              fills=("normal", "steep"), **ONE)
    yield row("softmax_poly3", "softmax", "narrow", "exponentials by a polynomial of degree 3 (some 13 bits)", "softmax", {"form": "poly3"}, "steps", **ONE)
    yield row("softmax_half", "softmax", "narrow", "exponentials by ex2.approx.f16x2", "softmax", {"form": "half"}, "steps", interpreted=False,
              inputs=(F32, F16), wide=True)
    yield row("softmax_f16_long", "softmax", "narrow", "the exponentials summed in float16 for rows longer than 512", "softmax", {"of": F16, "long": 512}, "acc",
              lengths=(1000, 64), **ONE)
    yield row("softmax_forgotten", "softmax", "wrong", "online, the sum of the first tile is not rescaled in the second", "online", {"form": "forgotten"}, "values",
              inputs=(F32, BF16), wide=False, fills=("steep", ))

    yield row("norm_welford", "layer_norm", "honest", "Welford's parts merged as a tree in float32", "layer_norm", {"form": "welford"}, words=FINE,
              fills=("normal", "shifted"), **ONE)
    yield row("norm_pivot", "layer_norm", "formula", "E[d^2] - E[d]^2 of distances from the row's first element", "layer_norm", {"form": "pivot"},
              fills=("normal", "shifted"), **ONE)
    yield row("norm_halves_bf16", "layer_norm", "narrow", "E[x^2] and E[x] in bfloat16, the variance their difference", "layer_norm",
              {"form": "halves_bf16"}, "steps", inputs=(F32, BF16))
    yield row("norm_affine_bf16", "layer_norm", "narrow", "normalised, times weight, plus bias: each rounded to bfloat16", "layer_norm",
              {"form": "affine_bf16"}, "steps", inputs=(F32, BF16))

    yield row("rms_newton", "rms_norm", "honest", "the inverse root by an integer guess and four Newton steps", "rms_norm", {"form": "newton", "steps": 4},
              words=FINE, **ONE)
    yield row("rms_newton_one", "rms_norm", "narrow", "the same with one step (some 9 bits)", "rms_norm", {"form": "newton", "steps": 1}, "steps", **ONE)
    yield row("rms_root_bf16", "rms_norm", "narrow", "the inverse root in bfloat16", "rms_norm", {"form": "root_bf16"}, "steps", inputs=(F32, BF16))
    yield row("rms_no_eps", "rms_norm", "wrong", "eps is left out", "rms_norm", {"form": "no_eps"}, "values", **ONE)
    yield row("rms_one_plus", "rms_norm", "wrong", "the weight is 1 + w", "rms_norm", {"form": "one_plus"}, "values", inputs=(BF16, ))

    yield row("gelu_erfc", "gelu", "honest", "by erfc, without the sum that cancels", "activation", {"form": "gelu_erfc"}, words=FINE, interpreted=False,
              inputs=(F32, BF16))
    yield row("gelu_arg_bf16", "gelu", "narrow", "erf of an argument rounded to bfloat16", "activation", {"form": "gelu_bf16"}, "steps", **ONE)
    yield row("silu_f64", "silu", "honest", "float64 throughout", "activation", {"form": "silu_double"}, words=FINE, inputs=ALL)
    yield row("silu_x_bf16", "silu", "narrow", "x rounded to bfloat16 where it multiplies the sigmoid", "activation", {"form": "silu_factor"}, "steps", **ONE)
    yield row("silu_half", "silu", "narrow", "each step rounded to float16, ex2.approx.f16x2", "activation", {"form": "silu_half"}, "steps", interpreted=False,
              inputs=(F32, F16))
    yield row("silu_hard", "silu", "wrong", "x clip(x / 6 + 1 / 2, 0, 1)", "activation", {"form": "silu_hard"}, "values", inputs=(F32, BF16))


def libraries():
    def row(name, op, kind, why, function, how=None, falls="", words=None, **more):
        return _row(f"torch_{name}", op, kind, why, f"torch_second:{function}", how, falls, words, **more)

    yield row("pieces", "matmul", "narrow", "products of pieces of 64 of K, each stored and added in 16 bits", "pieces", {"length": 64}, "acc",
              {**PLAIN, "acc": r"split_k\((bfloat16,bfloat16|float16,float16)\)", "mid": "none|bfloat16|float16"}, inputs=HALF, wide=False, lengths=(512, ))
    yield row("wide", "matmul", "honest", "a product of float64 copies", "wide", words={**PLAIN, "acc": "float64|exact|compensated"}, inputs=(F32, BF16),
              wide=True, lengths=(64, 512))
    yield row("autocast", "matmul", "narrow", "autocast: operands and result in float16", "autocast", {"to": F16}, "in",
              {**CORES, "in": "float16_rne", "mid": F16}, lengths=(64, 512), **ONE)
    yield row("softmax_steps", "softmax", "narrow", "eager steps, each stored in 16 bits", "softmax", {"form": "steps"}, "steps", inputs=HALF, wide=False)
    yield row("softmax_logsumexp", "softmax", "formula", "e^(x - log sum e^x) in float32", "softmax", {"form": "logsumexp"}, fills=("normal", "steep"), **ONE)
    yield row("norm_steps", "layer_norm", "honest", "eager steps in float32", "layer_norm", words=FINE, **ONE)
    yield row("rms_llama", "rms_norm", "narrow", "float32, rounded to 16 bits before the weight", "llama", {}, "steps", inputs=HALF)
    yield row("sum_cumulated", "sum", "honest", "the last of the running sums in float32", "cumulated", words=TOTAL, lengths=(64, 1000), **ONE)


def rows():
    for part in (products, chains, libraries):
        yield from part()
