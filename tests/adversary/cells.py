"""The cells: which kernel computes which product of which data, and the cases that request it. Everything follows from names."""

import hashlib
from dataclasses import dataclass

import numpy as np
from ops import PRODUCTS
from rounding import STORES, rounding

# Terms of a sum and their weights in the draw; judging a float32 cell takes time in proportion to its length.
LENGTHS = {1: 3, 2: 3, 3: 4, 8: 26, 64: 34, 100: 24, 1000: 4, 4096: 1.2, 16384: 0.4}
FILLS = {"normal": 8, "positive": 4, "wide": 4, "integers": 2, "cancel": 2, "special": 2, "subnormals": 1}
CHAIN_LENGTHS = {8: 2, 64: 4, 100: 2, 300: 1}
CHAIN_FILLS = {"normal": 6, "steep": 3, "faint": 3, "shifted": 2, "positive": 2, "wide": 1}
# Ops that can give a wider result, and the attribute that requests it.
WIDENS = {"matmul": "out_dtype", "sum": "dtype", "mean": "dtype", "softmax": "dtype"}
LISTED = ("cancel", "special")  # fills whose elements are written out, for sums of at most LISTED_LENGTH terms
LISTED_LENGTH = 100


@dataclass(frozen=True)
class Cell:
    kernel: str
    number: int
    op: str
    inputs: str
    output: str
    m: int
    k: int
    n: int
    fill: str

    @property
    def name(self):
        return f"{self.kernel}__{self.number}"

    def about(self):
        return f"{self.inputs}>{self.output} {self.m}x{self.k}x{self.n} {self.fill}"


def generator(*words):
    """Random numbers that depend on the words alone."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8], "little"))


def _draw(rng, weights):
    names = list(weights)
    chances = np.array([weights[name] for name in names], float)
    return names[int(rng.choice(len(names), p=chances / chances.sum()))]


def cell(kernel, number, salt, longest):
    """The cell number `number` of a kernel; sums of at most `longest` terms, and small results where that is short."""
    rng = generator("cell", kernel.name, number, salt)
    inputs = kernel.inputs[int(rng.integers(len(kernel.inputs)))]
    widens = kernel.op in WIDENS and inputs != "float32" and rng.random() < 0.6
    output = "float32" if widens else inputs
    sums = kernel.op in PRODUCTS
    k, fill = _draw(rng, LENGTHS if sums else CHAIN_LENGTHS), _draw(rng, FILLS if sums else CHAIN_FILLS)
    k = min(k, longest)
    if fill in LISTED:
        k = min(k, LISTED_LENGTH)
    size = rng.random()
    if kernel.op in ("sum", "mean"):
        m, n = (64, 1) if k < 1000 else (8, 1)
    elif not sums:
        m, n = 16, k
    elif k >= 1000:
        m, n = ((4, 8) if size < 0.9 else (16, 16)) if k == 1000 else ((2, 4) if size < 0.95 else (8, 8))
    elif fill in LISTED:
        m, n = 16, 16
    else:
        m, n = (16, 16) if size < 0.8 or longest < 1000 else (64, 64) if size < 0.9 else (7, 300) if k <= 64 else (5, 13)
    return Cell(kernel.name, number, kernel.op, inputs, output, m, k, n, fill)


def choose(kernels, count, salt="", longest=16384):
    """`count` cells, as many of each kernel as of any other (or one more), in an order that mixes kernels."""
    kernels = sorted(kernels, key=lambda kernel: hashlib.sha256(kernel.name.encode()).digest())
    chosen = [cell(kernel, number, salt, longest) for number in range(-(-count // len(kernels))) for kernel in kernels]
    return chosen[:count]


def _listed(kind, shape, dtype, rng, first, along):
    """Elements written out: pairs that all but cancel along the sum (axis `along`), or special values among ordinary ones."""
    numbers = rng.standard_normal(shape)
    if kind == "cancel":
        rows = np.moveaxis(numbers, along, -1)  # a view
        pairs = rows.shape[-1] // 2 * 2
        if first:
            rows[..., 1:pairs:2] = rows[..., 0:pairs:2]
        else:
            rows[..., 1:pairs:2] = -rows[..., 0:pairs:2] * (1 + 2.0**-7 * rng.integers(-1, 2, rows[..., 1:pairs:2].shape))
    numbers = rounding(dtype)(numbers)
    texts = np.vectorize(float.hex)(numbers).astype(object)
    if kind == "special":
        largest = {"float32": 2.0**127, "bfloat16": 2.0**127, "float16": 2.0**15}[dtype]
        odd = ["inf", "-inf", "nan", "-0.0", "0.0", float.hex(largest), float.hex(-largest), float.hex(STORES[dtype][2] / 8),
               float.hex(STORES[dtype][2])]
        for place in rng.choice(numbers.size, max(1, min(6, numbers.size // 40)), replace=False):
            texts.flat[place] = odd[int(rng.integers(len(odd)))]
    texts = texts.ravel().tolist()
    lines = [", ".join(texts[start:start + 64]) for start in range(0, len(texts), 64)]
    return "{values: [" + ",\n        ".join(lines) + "]}"


# (op, tensor) -> the axis of the sum; a sum of one operand alone cancels by itself.
_ALONG = {("matmul", "x"): 1, ("matmul", "w"): 0, ("linear", "x"): 1, ("linear", "w"): 1, ("backward", "x"): 0,
          ("backward", "g"): 0,
          ("sum", "x"): 1, ("mean", "x"): 1}


_FILLS = {"steep": "{normal: {scale: 8}}", "faint": "{normal: {scale: 0.001}}", "shifted": "{normal: {scale: 1, mean: 30}}",
          "integers": "{integers: {low: -8, high: 8}}"}


def _fill(cell, role, shape):
    if cell.op not in PRODUCTS and role != "x":
        return "normal"
    if cell.fill in LISTED:
        if (cell.op, role) not in _ALONG:
            return "normal"
        first = role == "x" and cell.op not in ("sum", "mean")
        return _listed(cell.fill, shape, cell.inputs, generator("fill", cell.name, role), first, _ALONG[cell.op, role])
    if cell.fill == "wide":
        reach = 6 if cell.inputs == "float16" or cell.op not in PRODUCTS else 20
        return f"{{wide_exponent: {{low: -{reach}, high: {reach}}}}}"
    if cell.fill == "subnormals" and role != "x":
        return "normal"
    return _FILLS.get(cell.fill, cell.fill)


def tensors(cell):
    """name -> shape, in the order of the program's operands."""
    m, k, n = cell.m, cell.k, cell.n
    return {
        "matmul": {"x": (m, k), "w": (k, n)},
        "linear": {"x": (m, k), "w": (n, k), "b": (n, )},
        "backward": {"x": (k, n), "w": (m, n), "g": (k, m)},
        "layer_norm": {"x": (m, k), "w": (k, ), "b": (k, )},
        "rms_norm": {"x": (m, k), "w": (k, )}
    }.get(cell.op, {"x": (m, k)})


def operands(cell):
    """The names of the tensors that a kernel is given."""
    return [name for name in tensors(cell) if (cell.op, name) != ("backward", "w")]


def observed(cell):
    return "w.grad" if cell.op == "backward" else "y"


def attributes(cell):
    """Attributes of the step, except the dtype of its result."""
    if cell.op in ("sum", "mean", "softmax"):
        return {"dim": -1}
    if cell.op in ("layer_norm", "rms_norm"):
        return {"normalized_shape": [cell.k], "eps": 1e-5}
    return {}


def _contract(cell, prove):
    demand = f"dtype: {cell.output}, acc: [at_least_float32], mid: [none], out: [{cell.output}_rne]"
    if cell.op in PRODUCTS:
        demand += ", in: [as_is], prod: [exact, float32]"
    return f"{{status: specified, accept: {{{observed(cell)}: {{{demand}}}}}{', prove: true' if prove else ''}}}"


def _steps(cell):
    if cell.op == "backward":
        return ["{op: linear, of: [x, w], as: y}", "{op: backward, of: [y], grad: g}"]
    attributes_ = dict(attributes(cell))
    if cell.output != cell.inputs:
        attributes_[WIDENS[cell.op]] = cell.output
    more = "".join(f", {name}: {value:.1e}" if isinstance(value, float) else f", {name}: {value}" for name,
                   value in attributes_.items())
    return [f"{{op: {cell.op}, of: [{', '.join(operands(cell))}]{more}, as: y}}"]


def case(cell, prove=False):
    """The text of a case."""
    lines = [f"  - name: {cell.name}", f"    contract: {_contract(cell, prove)}", "    tensors:"]
    for name, shape in tensors(cell).items():
        leaf = ", requires_grad: true" if (cell.op, name) == ("backward", "w") else ""
        lines.append(f"      {name}: {{dtype: {cell.inputs}, shape: {list(shape)}, fill: {_fill(cell, name, shape)}{leaf}}}")
    lines += ["    program:", *(f"      - {step}" for step in _steps(cell)), f"    observe: [{observed(cell)}]"]
    return "\n".join(lines) + "\n"


def files(cells, prove=False, size=900_000):
    """The texts of case files, none longer than `size`."""
    head = "about: Kernels of known arithmetic; what may be said of them is known.\ncases:\n"
    texts = [head]
    for each in cells:
        text = case(each, prove)
        if len(texts[-1]) + len(text) > size:
            texts.append(head)
        texts[-1] += text
    return texts
