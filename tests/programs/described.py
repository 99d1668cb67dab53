"""Descriptions of a step: what each operand was read as, which elementary steps inside the op were rounded, what was contracted.

Every combination of a step's choices is carried out on boxes and held against what was observed.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from boxes import Box, box, count, dot, falling, fused, rising, total

_ERF, _ERFC = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
VIEWS = {
    "transpose": lambda attrs: lambda x: np.swapaxes(x, attrs["dim0"], attrs["dim1"]), "t": lambda attrs: lambda x: x.T,
    "reshape": lambda attrs: lambda x: x.reshape(attrs["shape"]), "view": lambda attrs: lambda x: x.reshape(attrs["shape"]),
    "select": lambda attrs: lambda x: np.take(x, attrs["index"], attrs["dim"]),
    "unsqueeze": lambda attrs: lambda x: np.expand_dims(x, attrs["dim"])
}


class Sites:
    """Rounds the elementary steps that a description names: sites(name, box)."""

    def __init__(self, rounded, form):
        self.rounded, self.form = rounded, form

    def __call__(self, name, x):
        return x.to(self.rounded.get(name, "none"))


def _one(value):
    return box(np.float64(value))


def _sigmoid(s, attrs, x):
    if s.form == "by tanh":
        return s("sigmoid", s("half", box(0.5) * s("tanh", rising(np.tanh, s("inner", box(0.5) * x)))) + box(0.5))
    one_plus = s("one_plus", s("exp", rising(np.exp, -x)) + box(1.0))
    return s("sigmoid", box(1.0) / one_plus)


def _silu(s, attrs, x):
    return x * _sigmoid(s, attrs, x)


def _gelu(s, attrs, x):
    if attrs.get("approximate") == "tanh":
        cube = s("cube", s("square", x * x) * x)
        inner = s("inner", s("scalar", box(0.7978845608028654)) * s("sum", x + s("scaled", s("scalar", box(0.044715)) * cube)))
        one_plus = s("one_plus", s("tanh", rising(np.tanh, inner)) + box(1.0))
        return s("half", box(0.5) * one_plus) * x if s.form == "cdf first" else s("half", box(0.5) * x) * one_plus
    scaled = s("scaled", x * s("scalar", box(0.7071067811865476)))
    half = s("half", box(0.5) * x)
    if s.form == "by erfc":
        return half * s("erfc", falling(_ERFC, -scaled))
    return half * s("one_plus", s("erf", rising(_ERF, scaled)) + box(1.0))


def _softmax(s, attrs, x, log=False):
    axis = attrs["dim"]
    top = Box(x.lo.max(axis, keepdims=True), x.hi.max(axis, keepdims=True))
    shifted = s("shifted", x - top)
    e = rising(np.exp, shifted)
    below = s("total", total(s("exp_in_denominator", e), axis, True))
    if log:
        return shifted - s("log", rising(np.log, below))
    return s("exp_in_numerator", e) / below


def _layer_norm(s, attrs, x, weight=None, bias=None):
    k = x.lo.shape[-1]
    mean = s("mean", total(x, -1, True) / box(float(k)))
    centred = s("centred", x - mean)
    square = centred * centred
    square = Box(np.maximum(square.lo, 0), square.hi)
    variance = s("variance", total(square, -1, True) / box(float(k)))
    y = s("normalized", centred * s("rstd", falling(lambda v: 1 / np.sqrt(v), variance + box(attrs.get("eps", 1e-5)), 4)))
    if weight is not None:
        y = s("scaled", y * weight)
    return y if bias is None else y + bias


def _linear(s, attrs, x, weight, bias=None):
    y = dot(x, weight.map(np.transpose))
    return y if bias is None else s("product", y) + bias


def _sum(s, attrs, x):
    dim = attrs["dim"] if isinstance(attrs["dim"], int) else attrs["dim"][0]
    return total(x, dim, bool(attrs.get("keepdim")))


def _mean(s, attrs, x):
    dim = attrs["dim"] if isinstance(attrs["dim"], int) else attrs["dim"][0]
    return s("total", _sum(s, attrs, x)) / box(float(x.lo.shape[dim]))


def _scalars(s, operands):
    return [x if isinstance(x, Box) else s("scalar", box(x)) for x in operands]


def _add(s, attrs, a, b):
    a, b = _scalars(s, (a, b))
    if attrs.get("alpha", 1) == 1:
        return a + b
    alpha = s("scalar", box(attrs["alpha"]))
    return fused(b, alpha, a) if s.form == "alpha contracted" else a + s("product", b * alpha)


OPS = {
    "add": _add, "sub": lambda s, attrs, *of: (lambda a, b: a - b)(*_scalars(s, of)),
    "mul": lambda s, attrs, *of: (lambda a, b: a * b)(*_scalars(s, of)), "div": lambda s, attrs, *of: (lambda a, b: a / b)(*_scalars(s, of)),
    "neg": lambda s, attrs, x: -x, "relu": lambda s, attrs, x: rising(lambda v: np.maximum(v, 0), x, 0),
    "sqrt": lambda s, attrs, x: rising(np.sqrt, x, 2), "rsqrt": lambda s, attrs, x: falling(lambda v: 1 / np.sqrt(v), x, 4),
    "exp": lambda s, attrs, x: rising(np.exp, x), "tanh": lambda s, attrs, x: rising(np.tanh, x), "sigmoid": _sigmoid, "silu": _silu,
    "gelu": _gelu, "cast": lambda s, attrs, x: x, "linear": _linear, "matmul": lambda s, attrs, a, b: dot(a, b), "sum": _sum, "mean": _mean,
    "softmax": _softmax, "log_softmax": lambda s, attrs, x: _softmax(s, attrs, x, log=True), "layer_norm": _layer_norm
}
SITES = {
    "softmax": ("shifted", "exp_in_numerator", "exp_in_denominator", "total"),
    "log_softmax": ("shifted", "exp_in_denominator", "total", "log"),
    "layer_norm": ("mean", "centred", "variance", "rstd", "normalized", "scaled"), "mean": ("total", )
}
LOGISTIC = {"": ("exp", "one_plus", "sigmoid"), "by tanh": ("inner", "tanh", "half", "sigmoid")}
GELU = {"": ("scalar", "scaled", "erf", "one_plus", "half"), "by erfc": ("scalar", "scaled", "erfc")}
GELU_TANH = {"": ("scalar", "square", "cube", "scaled", "sum", "inner", "tanh", "one_plus", "half"),
             "cdf first": ("scalar", "square", "cube", "scaled", "sum", "inner", "tanh", "one_plus", "half")}


@dataclass(frozen=True)
class Description:
    """reads: operand -> stored, unrounded or contracted; rounded: elementary steps that are stored in the result's dtype."""
    reads: dict = field(default_factory=dict)
    rounded: tuple = ()
    form: str = ""

    def weight(self):
        """Simple descriptions come first: everything as stored, nothing rounded within."""
        return sum(word != "stored" for word in self.reads.values()), len(self.rounded), bool(self.form)

    def __str__(self):
        said = [f"{name} {word}" for name, word in self.reads.items() if word != "stored"]
        said += [f"rounds {', '.join(self.rounded)}"] if self.rounded else []
        said += [f"as {self.form}"] if self.form else []
        return "; ".join(said) or "all as stored"


def choices(step, dtype, steps):
    """The descriptions of a step, simple ones first; of many elementary steps one, all, or all but one are rounded.

    steps: name -> the steps before it.
    """
    operands = list(dict.fromkeys(x for x in step.of if isinstance(x, str)))
    words = []
    for name in operands:
        source = steps.get(name)
        options = ["stored"] + (["unrounded"] if source and source.op not in VIEWS else [])
        if source and source.op in VIEWS and _origin(name, steps) in steps:
            options.append("unrounded")
        scaled = step.attrs.get("alpha", 1) != 1 and name != step.of[0]
        twice = [x for x in step.of if x == name][1:]
        if source and source.op == "mul" and step.op in ("add", "sub") and not (scaled or twice) and dtype == "float32":
            options.append("contracted")
        words.append(options)
    forms = {"": _sites(step)}
    if step.op in ("silu", "sigmoid"):
        forms = LOGISTIC
    elif step.op == "gelu":
        forms = GELU_TANH if step.attrs.get("approximate") == "tanh" else GELU
    elif step.op == "softmax" and step.attrs.get("dtype") in ("bfloat16", "float16"):
        forms = dict.fromkeys(("", "operand not cast"), SITES["softmax"])
    elif step.op in ("mul", "div") and dtype == "float32":
        forms = {"": (), "results flushed": (), "operands flushed": ()}
        if step.op == "mul" and any(_scaled(steps.get(x)) for x in operands) and _scaled(step):
            forms |= {"scalars folded": (), "scalars folded, operands flushed": ()}
    elif step.attrs.get("alpha", 1) != 1:
        forms = {"": ("scalar", "product"), "alpha contracted": ("scalar", )}
    found = []
    for form, sites in forms.items():
        sites = sites if dtype in ("bfloat16", "float16") else ()
        for reads in itertools.product(*words):
            if sum(word == "contracted" for word in reads) + (form == "alpha contracted") > 1:
                continue
            found += [Description(dict(zip(operands, reads)), rounded, form) for n in range(len(sites) + 1) if len(sites) <= 4 or n < 2
                      or n > len(sites) - 2 for rounded in itertools.combinations(sites, n)]
    return sorted(found, key=Description.weight)


def _sites(step):
    if step.op == "linear" and len(step.of) == 3:
        return ("product", )
    if step.op in ("mul", "add", "sub", "div") and any(not isinstance(x, str) for x in step.of):
        return ("scalar", )
    return SITES.get(step.op, ())


def _scaled(step):
    """Whether a step multiplies by a scalar."""
    return step is not None and step.op == "mul" and any(not isinstance(x, str) for x in step.of)


def _parts(step):
    """The value and the scalar of a step that multiplies by one."""
    return next(x for x in step.of if isinstance(x, str)), next(x for x in step.of if not isinstance(x, str))


def _origin(name, steps):
    while name in steps and steps[name].op in VIEWS:
        name = steps[name].of[0]
    return name


class Program:
    """The steps of a case with what one backend gave for every value."""

    def __init__(self, steps, inputs, observed):
        self.steps, self.inputs, self.observed = {step.name: step for step in steps}, inputs, observed
        self.found = {}  # step -> [(Description, Count)]: those that hold in every element

    def array(self, name):
        return self.observed[name] if name in self.observed else self.inputs[name]

    def known(self, name):
        return _origin(name, self.steps) in {**self.observed, **self.inputs}

    def stored(self, name):
        if name not in self.observed and name not in self.inputs:  # a view that the backend was not asked for
            step = self.steps[name]
            return self.stored(step.of[0]).map(VIEWS[step.op](step.attrs))
        return box(self.array(name))

    def wide(self, name):
        """The value before its rounding to its dtype, by the simplest description that holds."""
        step = self.steps.get(name)
        if step is None:
            return self.stored(name)
        if step.op in VIEWS:
            return self.wide(step.of[0]).map(VIEWS[step.op](step.attrs))
        held = self.found.get(name) or [(Description(), None)]
        return self.compute(step, held[0][0])

    def compute(self, step, description):
        """The Box of a step before its store."""
        dtype = self.dtype(step)
        sites = Sites(dict.fromkeys(description.rounded, dtype), description.form)
        reads = description.reads
        product = next((name for name, word in reads.items() if word == "contracted"), None)
        if product is not None:
            a, b = (self.stored(x) if isinstance(x, str) else box(x) for x in self.steps[product].of)
            other = next(x for x in step.of if x != product)
            c = self.stored(other) if isinstance(other, str) else box(other)
            if step.attrs.get("alpha", 1) != 1:  # of the addend: alpha scales the second operand
                if step.of[0] != product:
                    raise ValueError("a product scaled by alpha is not contracted")
                c = c * box(step.attrs["alpha"])
            if step.op == "sub":
                a, c = (a, -c) if step.of[0] == product else (-a, c)
            return fused(a, b, c)
        if description.form.startswith("scalars folded"):
            name, scalar = _parts(step)
            source, first = _parts(self.steps[name])
            operands = [self.stored(source), box(first) * box(scalar)]
            if description.form.endswith("flushed"):
                return (operands[0].flushed() * operands[1].flushed()).flushed()
            return operands[0] * operands[1]
        operands = [x if not isinstance(x, str) else self.wide(x) if reads.get(x) == "unrounded" else self.stored(x) for x in step.of]
        if step.op in ("softmax", "log_softmax") and step.attrs.get("dtype"):
            operands = operands if description.form == "operand not cast" else [operands[0].to(step.attrs["dtype"])]
        if description.form == "operands flushed":
            operands = [x.flushed() if isinstance(x, Box) else x for x in operands]
        with np.errstate(all="ignore"):
            result = OPS[step.op](sites, step.attrs, *operands)
        return result.flushed() if description.form == "results flushed" else result

    def dtype(self, step):
        return np.asarray(self.array(step.name)).dtype.name

    def hold(self, step, description):
        """How many elements of the step's observed value the description puts where they are."""
        return count(self.compute(step, description).to(self.dtype(step)), self.array(step.name))

    def describe(self):
        """step -> the descriptions that hold in all elements, simple ones first; views are left out."""
        for name, step in self.steps.items():
            if step.op in VIEWS or name not in self.observed or not all(self.known(x) for x in step.of if isinstance(x, str)):
                continue
            before = {}
            for each in self.steps.values():
                if each.name == name:
                    break
                before[each.name] = each
            rows = [(description, self.hold(step, description)) for description in choices(step, self.dtype(step), before)]
            self.found[name] = [(d, c) for d, c in rows if c.holds == c.of]
            self.plain = getattr(self, "plain", {})
            self.plain[name] = rows[0]
        return self.found
