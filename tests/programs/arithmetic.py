"""Each op of a program as its elementary steps, every rounding named: operands are float64 arrays that hold narrower numbers.

An op is computed in float32 (in float64 where an operand is). How describes the deviations. A result is the value before its store, and for
products of two numbers also the product before any rounding at all.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from tools import Recipe, accumulate, add_odd, rounding

_ERF = np.vectorize(math.erf, otypes=[float])
SMALLEST = 2.0**-126


@dataclass(frozen=True)
class How:
    """inner: elementary step of the op -> the format that it is rounded to. flush: none, ftz (results), daz (operands)."""
    order: str = "sequential"
    prod: str = "exact"
    acc: str = "float32"
    flush: str = "none"
    inner: dict = field(default_factory=dict)
    form: str = ""
    compute: str = "float32"

    def r(self, x):
        """x after one elementary step."""
        with np.errstate(all="ignore"):
            return rounding(self.compute)(x)

    def at(self, site, x):
        """The elementary step named `site`: rounded to the compute format, and to that of `inner`."""
        return rounding(self.inner.get(site, "none"))(self.r(x))

    def dot(self, a, b):
        """a @ b before its store."""
        acc = self.acc
        if self.compute == "float64":
            return accumulate(a, b, Recipe(order=self.order, acc="float64"))
        if acc.startswith("split_k"):
            narrow = acc[8:-1].partition(",")[0]
            return accumulate(a, b, Recipe(order="split4", acc="float32", combine=narrow))
        return accumulate(a, b, Recipe(order=self.order, prod=self.prod if acc == "float32" else "exact", acc=acc))

    def sum(self, x):
        """The sums along the last dimension, which is kept."""
        flat = x.reshape(-1, x.shape[-1])
        return self.dot(flat, np.ones((x.shape[-1], 1))).reshape(*x.shape[:-1], 1)


def flushed(x):
    return np.where(np.abs(x) < SMALLEST, np.copysign(0.0, x), x)


def _scalars(operands, how):
    return [how.at("scalar", np.float64(x)) if isinstance(x, (int, float)) else x for x in operands]


def _add(how, attrs, a, b):
    a, b = _scalars((a, b), how)
    return how.r(add_odd(*np.broadcast_arrays(a, b)))


def _sub(how, attrs, a, b):
    a, b = _scalars((a, b), how)
    return how.r(add_odd(*np.broadcast_arrays(a, -b)))


def _mul(how, attrs, a, b):
    a, b = _scalars((a, b), how)
    return how.r(a * b)


def _sigmoid(how, attrs, x):
    return how.r(1 / how.r(1 + how.r(np.exp(-x))))


def _silu(how, attrs, x):
    if how.form == "quotient" and not how.inner:
        return how.r(x / how.r(1 + how.r(np.exp(-x))))
    return how.r(x * how.at("sigmoid", _sigmoid(how, attrs, x)))


def _gelu(how, attrs, x):
    half = how.at("half", 0.5 * x)
    if attrs.get("approximate") == "tanh":
        inner = how.r(how.r(0.7978845608028654) * how.r(x + how.r(how.r(0.044715) * how.r(x * how.r(x * x)))))
        return how.r(half * how.at("one_plus", 1 + how.at("tanh", np.tanh(inner))))
    inner = how.at("scaled", x * how.r(0.7071067811865476))
    return how.r(half * how.at("one_plus", 1 + how.at("erf", _ERF(inner))))


def _softmax(how, attrs, x):
    x = np.moveaxis(x, attrs["dim"], -1)
    e = how.r(np.exp(how.at("shifted", x - x.max(axis=-1, keepdims=True))))
    total = how.at("total", how.sum(rounding(how.inner.get("exp_in_denominator", "none"))(e)))
    y = how.r(rounding(how.inner.get("exp_in_numerator", "none"))(e) / total)
    return np.moveaxis(y, -1, attrs["dim"])


def _layer_norm(how, attrs, x, weight=None, bias=None):
    k = x.shape[-1]
    mean = how.at("mean", how.sum(x) / k)
    centred = how.at("centred", x - mean)
    variance = how.at("variance", how.sum(how.r(centred * centred)) / k)
    rstd = how.at("rstd", 1 / how.r(np.sqrt(how.r(variance + attrs.get("eps", 1e-5)))))
    y = how.r(centred * rstd)
    if weight is not None:
        y = how.r(how.at("normalized", y) * weight)
    if bias is not None:
        y = how.r(add_odd(how.at("scaled", y), np.broadcast_to(bias, y.shape)))
    return y


def _linear(how, attrs, x, weight, bias=None):
    y = how.dot(x, weight.T)
    return y if bias is None else how.r(add_odd(how.at("product", y), np.broadcast_to(bias, y.shape)))


def _reduce(how, attrs, x):
    dim = attrs["dim"] if isinstance(attrs["dim"], int) else attrs["dim"][0]
    total = np.moveaxis(how.sum(np.moveaxis(x, dim, -1)), -1, dim)
    return total if attrs.get("keepdim") else np.squeeze(total, dim)


def _mean(how, attrs, x):
    dim = attrs["dim"] if isinstance(attrs["dim"], int) else attrs["dim"][0]
    total = how.at("total", _reduce(how, attrs, x)) if how.acc != "float64" else _reduce(how, attrs, x)
    return how.r(total / x.shape[dim])


def _cast(how, attrs, x):
    return x


POINTWISE = {
    "add": _add, "sub": _sub, "mul": _mul, "relu": lambda how, attrs, x: np.where(x < 0, 0.0, x), "neg": lambda how, attrs, x: -x,
    "exp": lambda how, attrs, x: how.r(np.exp(x)), "tanh": lambda how, attrs, x: how.r(np.tanh(x)), "sigmoid": _sigmoid,
    "silu": _silu, "gelu": _gelu, "cast": _cast
}
SUMS = {"linear": _linear, "matmul": lambda how, attrs, a, b: how.dot(a, b), "sum": _reduce, "mean": _mean, "softmax": _softmax,
        "layer_norm": _layer_norm}
OPS = {**POINTWISE, **SUMS}
VIEWS = {
    "transpose": lambda attrs, x: np.swapaxes(x, attrs["dim0"], attrs["dim1"]), "t": lambda attrs, x: x.T,
    "reshape": lambda attrs, x: x.reshape(attrs["shape"]), "unsqueeze": lambda attrs, x: np.expand_dims(x, attrs["dim"])
}
# Elementary steps inside an op that a framework is known to store on its own; scalars are counted as one.
SITES = {
    "silu": ("sigmoid", ), "gelu": ("scaled", "erf", "one_plus", "half"), "softmax": ("shifted", "exp_in_numerator", "exp_in_denominator", "total"),
    "layer_norm": ("mean", "centred", "variance", "rstd", "normalized", "scaled"), "linear": ("product", ), "mean": ("total", )
}


def compute(op, how, attrs, operands):
    """The value before its store."""
    if how.flush == "daz":
        operands = [x if isinstance(x, (int, float)) else flushed(x) for x in operands]
    with np.errstate(all="ignore"):
        y = OPS[op](how, attrs, *operands)
    return flushed(y) if how.flush == "ftz" else y
