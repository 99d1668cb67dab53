"""The cells: which kernel is asked for which product of which data, and the cases that ask it. Everything follows from names."""

import hashlib
from dataclasses import dataclass

import numpy as np
from rounding import STORES, rounding

# Terms of a sum and their weights in the draw; judging a float32 cell takes time in proportion to its length.
LENGTHS = {1: 3, 2: 3, 3: 4, 8: 24, 64: 32, 100: 24, 1000: 6, 4096: 2, 16384: 1}
FILLS = {"normal": 8, "positive": 4, "wide": 4, "integers": 2, "cancel": 2, "special": 2, "subnormals": 1}
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


def cell(kernel, number, salt):
    """The cell number `number` of a kernel."""
    rng = generator("cell", kernel.name, number, salt)
    inputs = kernel.inputs[int(rng.integers(len(kernel.inputs)))]
    output = inputs if inputs == "float32" or rng.random() < 0.4 else "float32"
    k, fill = _draw(rng, LENGTHS), _draw(rng, FILLS)
    if fill in LISTED:
        k = min(k, LISTED_LENGTH)
    size = rng.random()
    if k >= 1000:
        m, n = ((4, 8) if size < 0.9 else (16, 16)) if k == 1000 else ((2, 4) if size < 0.95 else (8, 8))
    elif fill in LISTED:
        m, n = 16, 16
    else:
        m, n = (16, 16) if size < 0.8 else (64, 64) if size < 0.9 else (7, 300) if k <= 64 else (5, 13)
    return Cell(kernel.name, number, kernel.op, inputs, output, m, k, n, fill)


def choose(kernels, count, salt=""):
    """`count` cells, as many of each kernel as of any other (or one more), in an order that mixes kernels."""
    kernels = sorted(kernels, key=lambda kernel: hashlib.sha256(kernel.name.encode()).digest())
    chosen = [cell(kernel, number, salt) for number in range(-(-count // len(kernels))) for kernel in kernels]
    return chosen[:count]


def _listed(kind, shape, dtype, rng, role):
    """Elements written out: pairs that all but cancel along the sum, or special values among ordinary ones."""
    numbers = rng.standard_normal(shape)
    k = shape[1] if role == "x" else shape[0]
    if kind == "cancel":
        pairs = numbers if role == "x" else numbers.T  # rows along the sum
        if role == "x":
            pairs[:, 1:k // 2 * 2:2] = pairs[:, 0:k // 2 * 2:2]
        else:
            pairs[:, 1:k // 2 * 2:2] = -pairs[:, 0:k // 2 * 2:2] * (1 + 2.0**-7 * rng.integers(-1, 2, pairs[:, 1:k // 2 * 2:2].shape))
        numbers = pairs if role == "x" else pairs.T
    numbers = rounding(dtype)(numbers)
    texts = np.vectorize(float.hex)(numbers).astype(object)
    if kind == "special":
        largest = {"float32": 2.0**127, "bfloat16": 2.0**127, "float16": 2.0**15}[dtype]
        odd = ["inf", "-inf", "nan", "-0.0", "0.0", float.hex(largest), float.hex(-largest), float.hex(STORES[dtype][2] / 8),
               float.hex(STORES[dtype][2])]
        for place in rng.choice(numbers.size, max(1, min(6, numbers.size // 40)), replace=False):
            texts.flat[place] = odd[int(rng.integers(len(odd)))]
    return "{values: [" + ", ".join(texts.flat) + "]}"


def _fill(cell, role, shape):
    if cell.fill in LISTED:
        return _listed(cell.fill, shape, cell.inputs, generator("fill", cell.name, role), role)
    if cell.fill == "wide":
        reach = 6 if cell.inputs == "float16" else 20
        return f"{{wide_exponent: {{low: -{reach}, high: {reach}}}}}"
    if cell.fill == "integers":
        return "{integers: {low: -8, high: 8}}"
    if cell.fill == "subnormals" and role == "w":
        return "normal"
    return cell.fill


def _contract(cell, prove):
    demand = f"dtype: {cell.output}, in: [as_is], acc: [at_least_float32], mid: [none], out: [{cell.output}_rne]"
    demand += ", prod: [exact, float32]"
    return f"{{status: specified, accept: {{y: {{{demand}}}}}{', prove: true' if prove else ''}}}"


def case(cell, prove=False):
    """The text of a case."""
    wide = f", out_dtype: {cell.output}" if cell.output != cell.inputs else ""
    return f"""  - name: {cell.name}
    contract: {_contract(cell, prove)}
    tensors:
      x: {{dtype: {cell.inputs}, shape: [{cell.m}, {cell.k}], fill: {_fill(cell, "x", (cell.m, cell.k))}}}
      w: {{dtype: {cell.inputs}, shape: [{cell.k}, {cell.n}], fill: {_fill(cell, "w", (cell.k, cell.n))}}}
    program:
      - {{op: {cell.op}, of: [x, w]{wide}, as: y}}
    observe: [y]
"""


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
