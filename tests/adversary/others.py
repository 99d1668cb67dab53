"""The table of the ops beside matmul: sums, means, linear layers and their weight gradients, norms, softmax, activations."""

import numpy as np
from kernel import MID_WORDS, Kernel
from ops import Flow, apply, chain, wide
from products import Recipe
from rounding import rounding

HALF = ("bfloat16", "float16")


def _apply(op, recipe, **more):
    return lambda call: apply(op, recipe, call, **more)


def _row(op, name, kind, why, accepted=False, inputs=("float32", "bfloat16", "float16"), **recipe):
    made = Recipe(**recipe)
    return Kernel(name=f"{op}_{name}", op=op, kind=kind, why=why, run=_apply(op, made), recipe=made, accepted=accepted,
                  inputs=inputs)


def _changed(op, name, why, change, inputs=("float32", "bfloat16", "float16"), kind="wrong"):
    """change(operands as float64, call) -> the operands or the result (an array) in their place."""
    def run(call):
        with np.errstate(all="ignore"):
            changed = change([wide(x) for x in call.operands], call)
        if isinstance(changed, np.ndarray):
            return changed
        return apply(op, Recipe(order="lanes8"), type(call)(operands=tuple(changed), dtype=call.dtype, attrs=call.attrs))

    return Kernel(name=f"{op}_{name}", op=op, kind=kind, why=why, run=run, inputs=inputs)


def sums():
    for op in ("sum", "mean"):
        for order in ("sequential", "pairwise", "lanes8", "blocked64", "random_tree"):
            yield _row(op, f"f32_{order}", "honest", f"float32, {order}", order=order, prod="float32")
        yield _row(op, "f64", "honest", "float64", acc="float64")
        yield _row(op, "exact", "honest", "exact, rounded once", acc="exact")
        for acc in ("bfloat16", "float16", "p12", "p16", "p20"):
            yield _row(op, f"acc_{acc}", "narrow", f"accumulator {acc}", acc=acc)
        yield _row(op, "acc_bfloat16_pairwise", "narrow", "pairwise in bfloat16", acc="bfloat16", order="pairwise")
        yield _row(op, "in_bfloat16", "narrow", "terms through bfloat16", a="bfloat16", inputs=("float32", "float16"))
        yield _row(op, "in_p16", "narrow", "terms rounded to 16 bits", a="p16", inputs=("float32", ))
        yield _row(op, "mid_bfloat16", "narrow", "rounded through bfloat16 before the store", mid="bfloat16")
        yield _row(op, "mid_p20", "narrow", "rounded through 20 bits before the store", mid="p20")
        yield _row(op, "parts_bfloat16", "narrow", "four partial sums in bfloat16", order="split4", combine="bfloat16")
        yield _changed(op, "last_left_out", "the last term left out", lambda x,
                       call: [x[0] * (np.arange(x[0].shape[1]) < x[0].shape[1] - 1)])
        yield _changed(op, "abs", "sum of sizes", lambda x, call: [np.abs(x[0])])
    yield _changed("mean", "n_minus_1", "divided by n - 1", lambda x,
                   call: [x[0] * (x[0].shape[1] / max(x[0].shape[1] - 1, 1))])
    yield _changed("sum", "nan_to_zero", "NaN left out", lambda x, call: [np.where(np.isnan(x[0]), 0.0, x[0])])


def linears():
    for order in ("sequential", "lanes8", "pairwise"):
        yield _row("linear", f"f32_{order}", "honest", f"float32, the bias added last, {order}", order=order, prod="float32")
    yield _row("linear", "f64", "honest", "float64", acc="float64")
    for name in ("bfloat16", "p12", "float16"):
        yield Kernel(name=f"linear_then_{name}", op="linear", kind="narrow",
                     why=f"the product through {name} before the bias is added",
                     run=_apply("linear", Recipe(order="lanes8"), bias_after=name))
        yield _row("linear", f"acc_{name}", "narrow", f"accumulator {name}", acc=name)
        yield _row("linear", f"mid_{name}", "narrow", f"the result through {name} before the store", mid=name)
    yield _row("linear", "in_bfloat16", "narrow", "operands through bfloat16", a="bfloat16", b="bfloat16", inputs=("float32", ))
    yield _row("linear", "in_tf32", "narrow", "operands through tf32", a="tf32", b="tf32", inputs=("float32", ))
    yield _changed("linear", "bias_e5m2", "the bias through e5m2", lambda o, call: [o[0], o[1], rounding("e5m2_sat")(o[2])],
                   kind="narrow")
    yield _changed("linear", "no_bias", "the bias forgotten", lambda o, call: [o[0], o[1], 0 * o[2]])
    yield _changed("linear", "bias_twice", "the bias added twice", lambda o, call: [o[0], o[1], 2 * o[2]])
    yield _changed("linear", "bias_shifted", "the bias of the next column", lambda o, call: [o[0], o[1], np.roll(o[2], 1)])
    for order in ("sequential", "lanes16"):
        yield _row("backward", f"f32_{order}", "honest", f"weight gradient in float32, {order}", order=order, prod="float32")
    yield _row("backward", "f64", "honest", "weight gradient in float64", acc="float64")
    for name in ("bfloat16", "p12", "float16_via_float32"):
        yield _row("backward", f"acc_{name}", "narrow", f"weight gradient, accumulator {name}", acc=name)
    yield _row("backward", "in_bfloat16", "narrow", "weight gradient of operands through bfloat16", a="bfloat16", b="bfloat16",
               inputs=("float32", ))
    yield _row("backward", "in_g_e5m2", "narrow", "the incoming gradient through e5m2", a="e5m2_sat")
    yield _row("backward", "mid_bfloat16", "narrow", "weight gradient through bfloat16", mid="bfloat16",
               inputs=("float32", "float16"))
    yield _row("backward", "part_bfloat16", "narrow", "partial weight gradients in bfloat16", order="split4",
               combine="bfloat16")
    yield _changed("backward", "one_sample", "the last sample left out", lambda o, call: [o[0][:-1], o[1][:-1]])
    yield _changed("backward", "mean", "a mean over samples in place of a sum", lambda o, call: [o[0] / len(o[0]), o[1]])


def _flow(op, name, kind, why, inputs=("float32", "bfloat16", "float16"), **flow):
    made = Flow(**flow)
    words = {"mid": made.mid} if made.mid in MID_WORDS and made.mid != "none" else {}
    return Kernel(name=f"{op}_{name}", op=op, kind=kind, why=why, run=lambda call: chain(op, made, call), words=words,
                  inputs=inputs)


def chains():
    for op in ("softmax", "layer_norm", "rms_norm"):
        for order in ("sequential", "lanes8", "pairwise"):
            yield _flow(op, f"f32_{order}", "honest", f"float32 steps, {order} sums", order=order)
        yield _flow(op, "f64_sums", "honest", "float32 steps, float64 sums", acc="float64", stats="float64")
        yield _flow(op, "f64", "honest", "float64 throughout", step="float64", acc="float64")
        yield _flow(op, "acc_bfloat16", "narrow", "sums in bfloat16", acc="bfloat16")
        yield _flow(op, "acc_float16", "narrow", "sums in float16", acc="float16")
        yield _flow(op, "acc_p14", "narrow", "sums of 14 bits", acc="p14")
        yield _flow(op, "stats_bfloat16", "narrow", "sums and statistics stored in bfloat16", stats="bfloat16")
        yield _flow(op, "steps_bfloat16", "narrow", "every step in bfloat16", step="bfloat16", acc="bfloat16")
        yield _flow(op, "steps_p16", "narrow", "every step in 16 bits", step="p16")
    yield _flow("softmax", "reciprocal", "honest", "times the reciprocal of the sum", form="reciprocal")
    yield _flow("softmax", "exp_bfloat16", "narrow", "exponentials in bfloat16", exp="bfloat16")
    yield _flow("softmax", "exp_p12", "narrow", "exponentials of 12 bits", exp="p12")
    yield _flow("softmax", "no_max", "wrong", "the maximum is not subtracted", form="no_max")
    yield _flow("softmax", "left_out", "wrong", "the last exponential is not in the sum", form="last_left_out")
    yield _flow("softmax", "eps", "wrong", "1/1000 added to the sum", form="eps")
    yield _flow("softmax", "base2", "honest", "2^(x log2 e) in float32, as fused attention has it", form="base2")
    for op in ("layer_norm", "rms_norm"):
        yield _flow(op, "n_minus_1", "wrong", "n - 1 in place of n", form="n_minus_1")
        yield _flow(op, "no_eps", "wrong", "without eps", form="no_eps")
        yield _flow(op, "in_bfloat16", "narrow", "x through bfloat16", read="bfloat16", inputs=("float32", ))
    yield _flow("layer_norm", "eps_1e6", "wrong", "eps of 1e-6", form="eps_1e6")
    yield _flow("layer_norm", "eps_outside", "wrong", "eps beside the root", form="eps_outside")
    yield _flow("layer_norm", "no_bias", "wrong", "the bias forgotten", form="no_bias")
    yield _flow("rms_norm", "no_weight", "wrong", "the weight forgotten", form="no_weight")
    yield _flow("rms_norm", "cast_early", "narrow", "normalised values through bfloat16 before the weight", form="cast_early")
    for op in ("gelu", "silu", "tanh"):
        yield _flow(op, "f32", "honest", "float32 steps")
        yield _flow(op, "f64", "honest", "float64 throughout", step="float64", form="erfc" if op == "gelu" else "")
        for name in ("bfloat16", "float16", "p14", "p20"):
            yield _flow(op, f"steps_{name}", "narrow", f"every step in {name}", step=name)
            yield _flow(op, f"read_{name}", "narrow", f"x through {name}", read=name, inputs=("float32", ))
        yield _flow(op, "mid_bfloat16", "narrow", "through bfloat16 before the store", mid="bfloat16",
                    inputs=("float32", "float16"))
        yield _flow(op, "inner_bfloat16", "narrow", "the transcendental in bfloat16", exp="bfloat16")
    yield _flow("gelu", "erfc", "honest", "by erfc", form="erfc")
    yield _flow("gelu", "tanh_form", "wrong", "the tanh approximation", form="tanh")
    yield _flow("gelu", "sigmoid_form", "wrong", "x sigmoid(1.702 x)", form="sigmoid")
    yield _flow("silu", "sigmoid_first", "honest", "x times the rounded sigmoid", form="sigmoid_first")
    yield _flow("silu", "hard", "wrong", "piecewise linear", form="hard")
    yield _flow("tanh", "pade", "wrong", "a quotient of polynomials", form="pade")
    yield _flow("tanh", "clipped", "wrong", "flat beyond 2", form="clipped")


def table():
    for part in (sums, linears, chains):
        yield from part()
