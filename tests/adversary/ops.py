"""The other ops: those that are sums of products at heart, and the chains of elementary steps."""

import math
from dataclasses import dataclass, replace

import numpy as np
from products import HONEST, ORDERS, Recipe, accumulate, exact_sum, finish
from rounding import add_odd, rounding, two_sum


def wide(x):
    return np.asarray(x).astype(np.float64)


# Sums of products: op -> call -> the two matrices, what is added to their product, and the shape of the result.
def _matmul(call):
    a, b = map(wide, call.operands)
    return a, b, None, (a.shape[0], b.shape[1])


def _sum(call):
    x = wide(call.operands[0])
    return x, np.ones((x.shape[1], 1)), None, (x.shape[0], )


def _linear(call):
    x, w, *bias = map(wide, call.operands)
    return x, w.T, bias[0] if bias else None, (x.shape[0], w.shape[0])


def _backward(call):
    x, gradient = map(wide, call.operands)
    return gradient.T, x, None, (gradient.shape[1], x.shape[1])


PRODUCTS = {"matmul": _matmul, "sum": _sum, "mean": _sum, "linear": _linear, "backward": _backward}
# The order of the recipe's operands, by the names that the cases give them.
OPERANDS = {"matmul": ("x", "w"), "sum": ("x", ""), "mean": ("x", ""), "linear": ("x", "w"), "backward": ("g", "x")}


def apply(op, recipe, call, bias_after="none"):
    """The stored result of a sum of products. bias_after: a rounding of the product before the bias is added."""
    a, b, bias, shape = PRODUCTS[op](call)
    total = accumulate(rounding(recipe.a)(a), rounding(recipe.b)(b), recipe)
    with np.errstate(all="ignore"):
        if op == "mean":
            total = total / a.shape[1] if recipe.acc in ("float64", "exact") else rounding("float32")(total / a.shape[1])
        if bias is not None:
            total = rounding("float32" if recipe.acc not in ("float64",
                                                             "exact") else "none")(add_odd(rounding(bias_after)(total), bias))
    return finish(total, recipe, call.dtype).reshape(shape)


def honest_products(op, call):
    """(honest results, the exact value as a head and a tail)."""
    fused = np.asarray(call.operands[0]).dtype == np.float32 and op not in ("sum", "mean")
    results = [apply(op, recipe, call) for recipe in HONEST if fused or recipe.prod == "float32" or recipe.acc != "float32"]
    a, b, bias, shape = PRODUCTS[op](call)
    head, tail = exact_sum(a, b)
    with np.errstate(all="ignore"):
        if op == "mean":
            head, tail = head / a.shape[1], tail / a.shape[1]
        if bias is not None:
            head, rest = two_sum(*np.broadcast_arrays(head, bias))
            tail = tail + np.where(np.isfinite(head), rest, 0.0)
    return results, (head.reshape(shape), tail.reshape(shape))


@dataclass(frozen=True)
class Flow:
    """How a chain of steps is computed: the rounding of each step, of the sums, of the result before its store."""
    step: str = "float32"
    acc: str = "float32"
    order: str = "sequential"
    exp: str = ""  # of exponentials and their like; "" as step
    stats: str = ""  # of means, variances and sums as they are stored; "" as step
    mid: str = "none"
    read: str = "as_is"
    form: str = ""  # what is done otherwise

    def r(self, x):
        with np.errstate(all="ignore"):
            return rounding(self.step)(x)

    def e(self, x):
        return rounding(self.exp or self.step)(x)

    def s(self, x):
        return rounding(self.stats or self.step)(x)

    def sum(self, x):
        return self.s(accumulate(x, np.ones((x.shape[1], 1)), Recipe(order=self.order, acc=self.acc)))


def _softmax(call, flow):
    x = rounding(flow.read)(wide(call.operands[0]))
    shifted = x if flow.form == "no_max" else flow.r(x - np.max(x, axis=1, keepdims=True))
    e = flow.e(np.exp(shifted))
    total = flow.sum(e[:, :-1] if flow.form == "last_left_out" else e)
    if flow.form == "eps":
        total = flow.r(total + 1e-3)
    if flow.form == "base2":
        e = flow.e(np.exp2(flow.r(shifted * 1.4426950216293335)))
    return flow.r(e * flow.r(1 / total)) if flow.form == "reciprocal" else flow.r(e / total)


def _layer_norm(call, flow):
    x, w, bias = map(wide, call.operands)
    x, k, eps = rounding(flow.read)(x), x.shape[1], call.attrs.get("eps", 1e-5)
    mean = flow.s(flow.sum(x) / k)
    d = flow.r(x - mean)
    variance = flow.s(flow.sum(flow.r(d * d)) / (k - 1 if flow.form == "n_minus_1" else k))
    eps = {"no_eps": 0.0, "eps_1e6": 1e-6, "eps_outside": 0.0}.get(flow.form, eps)
    rstd = flow.s(1 / flow.s(np.sqrt(flow.s(variance + eps))))
    if flow.form == "eps_outside":
        rstd = 1 / (np.sqrt(variance) + call.attrs.get("eps", 1e-5))
    y = flow.r(d * rstd)
    if flow.form == "no_bias":
        return flow.r(y * w)
    return flow.r(flow.r(y * w) + bias)


def _rms_norm(call, flow):
    x, w = map(wide, call.operands)
    x, k, eps = rounding(flow.read)(x), x.shape[1], call.attrs["eps"]
    mean = flow.s(flow.sum(flow.r(x * x)) / (k - 1 if flow.form == "n_minus_1" else k))
    rstd = flow.s(1 / flow.s(np.sqrt(flow.s(mean + (0.0 if flow.form == "no_eps" else eps)))))
    y = flow.r(x * rstd)
    return y if flow.form == "no_weight" else flow.r(rounding("bfloat16")(y) * w if flow.form == "cast_early" else y * w)


_ERF = np.vectorize(math.erf, otypes=[float])
_ERFC = np.vectorize(math.erfc, otypes=[float])


def _gelu(call, flow):
    x = rounding(flow.read)(wide(call.operands[0]))
    if flow.form in ("tanh", "tanh_approximate"):
        inner = flow.r(0.7978845608028654 * flow.r(x + flow.r(0.044715 * flow.r(x * flow.r(x * x)))))
        return flow.r(flow.r(0.5 * x) * flow.r(1 + flow.e(np.tanh(inner))))
    if flow.form == "sigmoid":
        return flow.r(x / flow.r(1 + flow.e(np.exp(flow.r(-1.702 * x)))))
    if flow.form == "erfc":
        return flow.r(flow.r(0.5 * x) * flow.e(_ERFC(flow.r(-x * 0.7071067811865476))))
    return flow.r(flow.r(0.5 * x) * flow.r(1 + flow.e(_ERF(flow.r(x * 0.7071067811865476)))))


def _silu(call, flow):
    x = rounding(flow.read)(wide(call.operands[0]))
    if flow.form == "hard":
        return flow.r(x * np.clip(x / 6 + 0.5, 0, 1))
    sigmoid = flow.r(1 / flow.r(1 + flow.e(np.exp(-x))))
    return flow.r(x * sigmoid) if flow.form == "sigmoid_first" else flow.r(x / flow.r(1 + flow.e(np.exp(-x))))


def _tanh(call, flow):
    x = rounding(flow.read)(wide(call.operands[0]))
    if flow.form == "exp":
        e = flow.e(np.exp(flow.r(2 * x)))
        return flow.r(1 - flow.r(2 / flow.r(e + 1)))
    if flow.form == "clipped":
        x = np.clip(x, -2, 2)
    if flow.form == "pade":
        x2 = x * x
        return np.clip(x * (27 + x2) / (27 + 9 * x2), -1, 1)
    return flow.e(np.tanh(x))


CHAINS = {"softmax": _softmax, "layer_norm": _layer_norm, "rms_norm": _rms_norm, "gelu": _gelu, "silu": _silu, "tanh": _tanh}
# Forms that a careful float32 implementation may use.
HONEST_FORMS = {"softmax": ("", "reciprocal"), "layer_norm": ("", ), "rms_norm": ("", ), "gelu": ("", "erfc"),
                "silu": ("", "sigmoid_first"),
                "tanh": ("", )}
SUMMED = ("softmax", "layer_norm", "rms_norm")


def chain(op, flow, call):
    """The stored result of a chain of steps."""
    with np.errstate(all="ignore"):
        return finish(CHAINS[op](call, flow), Recipe(mid=flow.mid), call.dtype)


def honest_flows(op):
    # Those of products too: of few rows one order errs by twice as much as the next.
    orders = tuple(ORDERS) if op in SUMMED else ("sequential", )
    for form in HONEST_FORMS[op]:
        for order in orders:
            yield Flow(order=order, form=form)
            yield Flow(order=order, form=form, acc="float64", stats="float64")
            yield Flow(order=order, form=form, exp="p26", step="p26", acc="float32", stats="float32")
    yield Flow(step="float64", acc="float64")


def honest_chains(op, call):
    results = [chain(op, flow, call) for flow in honest_flows(op)]
    form = "erfc" if op == "gelu" else ""
    with np.errstate(all="ignore"):
        exact = CHAINS[op](call, replace(Flow(step="float64", acc="exact"), form=form))
    return results, (exact, np.zeros_like(exact))


def honest_results(op, call):
    return honest_products(op, call) if op in PRODUCTS else honest_chains(op, call)
