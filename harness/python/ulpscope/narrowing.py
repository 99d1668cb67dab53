"""The operations that a kernel may do in fewer bits than float32: every such place of a fused program, and its result
there.

A kernel conforms only if these were excluded: on some input each of them leaves the range of a conforming
evaluation. A kernel that does not conform is reported with the place that it resembles.
"""

import dataclasses
import math

from ulpscope import expanding, formats, fusing

NARROW = ("bfloat16", "float16")
# Ops that round nothing, or are roundings that the program requests.
_EXACT = ("move", "same", "index", "made", "compare", "logic", "to", "perhaps", "whole", "heads", "mask", "neg", "abs")
_SUMS = ("matmul", "sum", "contract", "online")
# The number of sums that are made narrow in a large product, where some are enough.
_MOST_SUMS = 1 << 14
_CHUNKS, _PARTS = (2, 4, 8, 16, 32, 64, 128), (2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Fault:
    """One narrow place. kind: "result" of a node, "sum" inside it, "read" of an input, "number" of a constant, "pair"
    of factors that the program does not multiply with each other."""

    node: str
    kind: str
    format: str
    says: str
    chunk: int = 1  # how many terms are added exactly before they are added to a narrow total
    block: int = 0  # number of keys after which an online softmax has a narrow total
    parts: int = 0  # or the number of parts of the terms, each of them narrow too
    products: str = ""  # the format of products; "" where they are exact
    of_product: bool = False  # "pair": a factor is an operand of a matrix product
    factors: tuple = ()  # of "pair": what a kernel multiplies first, where the program multiplies otherwise

    def step(self, terms):
        """How many terms make a part; 0 where each is added by itself."""
        return -(-terms // self.parts) if self.parts else self.chunk if self.chunk > 1 and not self.products else 0

    def simplicity(self):
        """The key that orders narrow places with equal results, the simplest first."""
        one_by_one = self.chunk == 1 and not self.parts and not self.block
        return self.kind == "all", 0 if self.kind != "sum" else 1 if one_by_one else 2, self.chunk, self.parts, self.block


def faults(program, dtypes, results, thorough=False):
    """Every narrow place of the program. `thorough`: sums in more orders, for a name rather than a proof."""
    found = []
    for name, dtype in dtypes.items():
        narrower = NARROW if dtype in NARROW else (*NARROW, "tf32") if dtype in ("float32", "float64") else ()
        found += [Fault(name, "read", each, f"{name} read as {each}") for each in narrower if not formats.holds(each, dtype)]
    stored = _stored(program, results)
    for node in program.nodes:
        if node.op in _EXACT:
            continue
        for each in NARROW:
            if node.op in _SUMS:
                found += _narrow_sums(node, each, thorough)
            if stored.get(node.name) != each and each not in node.allowed:
                found.append(Fault(node.name, "result", each, f"{node.says} rounded to {each}"))
            if node.op == "scale" or node.op in ("mul", "div") and not all(isinstance(other, str) for other in node.of):
                found.append(Fault(node.name, "number", each, f"the factor of {node.says} rounded to {each}"))
    found += _pairs(program)
    if thorough:
        found += [Fault("", "all", each, f"every step rounded to {each}") for each in NARROW]
        found += [Fault("", "read", each, f"every operand read as {each}") for each in (*NARROW, "tf32")]
    return found


def _pairs(program):
    """(a * b) * c as a * (b * c), and (a @ b) * c as a @ (b * c), with a narrow result in the parentheses: scales
    multiplied first, weights dequantised."""
    made, found = {node.name: node for node in program.nodes}, []
    for node in program.nodes:
        if node.op != "mul" or not all(isinstance(each, str) for each in node.of):
            continue
        for product, scale in (node.of, node.of[::-1]):
            first = made.get(product)
            if first is None or first.op not in ("mul", "matmul") or not all(isinstance(each, str) for each in first.of):
                continue
            for factor in first.of:
                says = [made[each].says if each in made else each for each in (factor, scale)]
                found += [Fault(node.name, "pair", each, f"{says[0]} times {says[1]} rounded to {each}",
                                of_product=first.op == "matmul", factors=(*first.of, factor, scale))
                          for each in NARROW]
    return found


def _narrow_sums(node, dtype, thorough):
    def narrow(how="", **what):
        return Fault(node.name, "sum", dtype, f"{node.says} accumulated in {dtype}{how}", **what)

    found = [narrow()]
    if node.op == "online":
        found += [narrow(f" after each block of {block} keys", block=block)
                  for block in ([node.attrs["block"]] if node.attrs["block"] else expanding.blocks_of(node.attrs["keys"]))]
    found += [narrow(f", parts of {chunk} terms", chunk=chunk) for chunk in (_CHUNKS if thorough else (16, 64))]
    found += [narrow(f", in {parts} parts", parts=parts) for parts in (_PARTS if thorough else (2, ))]
    if thorough:
        found += [narrow(products=dtype), narrow(" pairwise", chunk=0, products=dtype)]
    if node.op in ("matmul", "contract") or node.op == "online" and len(node.of) == 3:
        found.append(Fault(node.name, "sum", dtype, f"the products of {node.says} rounded to {dtype}", -1, products=dtype))
    return found


def _stored(program, results):
    """{node: dtype} of nodes whose rounding to that dtype is the output rounding itself, or commutes with it."""
    stored = dict(results)
    for node in reversed(program.nodes):
        if node.name in stored and fusing.commutes(node):
            for each in node.of:
                readers = [other for other in program.nodes if each in other.of]
                if isinstance(each, str) and all(other.name in stored for other in readers):
                    stored[each] = stored[node.name]
    return stored


class Plain:
    """Evaluates in float64, close to the exact value, with one place that is narrow, or none. `sample`: only some sums
    of it."""

    def __init__(self, fault=None, clock=lambda: None, sample=False):
        self.fault, self.clock, self.sample, self.node = fault, clock, sample, None
        self.terms = 0  # of the narrow sum, after it was computed

    def touches(self, node):
        return self.fault is not None and self.fault.kind != "read" and self.fault.node in (node.name, "")

    def reads(self, name):
        return self.fault is not None and self.fault.kind == "read" and self.fault.node in (name, "")

    def read(self, name, value):
        return self.cut(value) if self.reads(name) else value

    def after(self, node, value):
        self.clock()
        if self.fault is not None and self.fault.kind == "pair" and self.touches(node):
            return self._paired(value)
        return self.cut(value) if self.touches(node) and self.fault.kind in ("result", "all") else value

    def _paired(self, value):
        """The node's value where two of its factors are multiplied first, and that is rounded."""
        import torch
        a, b, factor, scale = (self.env[each] for each in self.fault.factors)
        try:
            pair = factor * scale
        except RuntimeError:
            return value  # of shapes that are not multiplied
        other = b if factor is a else a
        if not self.fault.of_product:
            ratio = torch.where(pair == 0, 1.0, self.cut(pair) / pair)
            return value * ratio.nan_to_num(nan=1.0)
        if pair.shape != factor.shape or factor.dim() < 2:
            return value
        if factor is b and (scale.dim() < 2 or scale.shape[-2] == 1):
            return torch.matmul(other, self.cut(pair))
        if factor is a and scale.dim() >= 2 and scale.shape[-1] == 1:
            return torch.matmul(self.cut(pair), other)
        return value

    def cut(self, value):
        return formats.rounded(value, self.fault.format) if value.dtype.is_floating_point else value

    def given(self, tensor):
        import torch
        return tensor if tensor.dtype == torch.bool else tensor.double()

    def number(self, value):
        import torch
        made = torch.tensor(float(value), dtype=torch.float64)
        return self.cut(made) if self.node is not None and self.touches(self.node) and self.fault.kind == "number" else made

    def move(self, function, *operands):
        return function(*operands)

    def index(self, function, table, *indices):
        return function(table, *(each.long() for each in indices))

    def pow(self, a, exponent):
        return a**exponent

    def clamp(self, a, low, high):
        return a.clamp(low, high)

    def whole(self, a, function):
        return function(a)

    def to(self, a, name, **_):
        return formats.rounded(a, name)

    def perhaps(self, a, name, **_):
        del name
        return a

    def compare(self, function, *operands):
        return function(*operands)

    logic = compare

    def _is_narrow_sum(self):
        return self.fault is not None and self.fault.kind == "sum" and self.touches(self.node)

    def block_of(self, node):
        """The blocks in which the total of an online softmax is narrow, or None."""
        del node
        return self.fault.block if self._is_narrow_sum() and self.fault.block else None

    def matmul(self, a, b):
        import torch
        if not self._is_narrow_sum():
            return torch.matmul(a, b)
        self.terms = a.shape[-1]
        rows = self._some_rows(a, b)
        if rows is not None:
            exact = torch.matmul(a, b)
            exact[..., rows, :] = self._narrow_matmul(a[..., rows, :], b)
            return exact
        return self._narrow_matmul(a, b)

    def _some_rows(self, a, b):
        """Rows of a large product that are enough to show that its sums are narrow; None for all."""
        import torch
        if not self.sample or a.dim() < 2 or b.dim() < 2:
            return None
        most = max(4, _MOST_SUMS * a.shape[-2] // max(1, math.prod(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * b.shape[-1]))
        return None if most >= a.shape[-2] else torch.linspace(0, a.shape[-2] - 1, most).long()

    def _narrow_matmul(self, a, b):
        import torch
        if self.fault.step(a.shape[-1]):
            count, step = a.shape[-1], self.fault.step(a.shape[-1])
            parts = (torch.matmul(a[..., first:first + step], b[..., first:first + step, :] if b.dim() > 1 else b[first:first + step])
                     for first in range(0, count, step))
            return self._joined(parts)
        if b.dim() == 1:
            return self._total(a * b)
        if a.dim() == 1:
            return self._total((b * a.unsqueeze(-1)).transpose(-1, -2))
        if self.fault.chunk:
            return self._joined(self._product(a[..., k:k + 1] * b[..., k:k + 1, :]) for k in range(a.shape[-1]))
        rows = [self._total(a[..., i:i + 1, :] * b.transpose(-1, -2)) for i in range(a.shape[-2])]
        return torch.stack(rows, -2)

    def sum(self, a, dim, keepdim):
        if not self._is_narrow_sum():
            return a.sum(dim, keepdim)
        dims = [dim] if isinstance(dim, int) else list(dim) or list(range(a.dim()))
        dims = [each % a.dim() for each in dims]
        kept = [each for each in range(a.dim()) if each not in dims]
        terms = a.permute(*kept, *dims).reshape([a.shape[each] for each in kept] + [-1])
        self.terms = terms.shape[-1]
        if step := self.fault.step(self.terms):
            total = self._joined(terms[..., first:first + step].sum(-1) for first in range(0, terms.shape[-1], step))
        else:
            total = self._total(terms)
        return total.reshape([1 if each in dims else a.shape[each] for each in range(a.dim())]) if keepdim else total

    def _product(self, product):
        return formats.rounded(product, self.fault.products) if self.fault.products else product

    def _joined(self, parts):
        """Parts added one after the other, the total rounded each time; a single one is no sum."""
        total, count = None, 0
        for part in parts:
            kept = self.cut(part) if self.fault.parts else part
            before, total, count = total, kept if total is None else total + kept, count + 1
            if count == 2 and self.fault.chunk != -1:
                total = self.cut(self.cut(before) + kept)
            elif self.fault.chunk != -1 and count > 2:
                total = self.cut(total)
        return part if count == 1 else total

    def _total(self, terms):
        """The sum over the last dimension: one term after the other, in pairs (chunk 0), or exact, of rounded products (-1)."""
        import torch
        terms = self._product(terms)
        if self.fault.chunk == -1:
            return terms.sum(-1)
        if self.fault.chunk == 1:
            return self._joined(terms[..., k] for k in range(terms.shape[-1]))
        while terms.shape[-1] > 1:
            if terms.shape[-1] % 2:
                terms = torch.nn.functional.pad(terms, (0, 1))
            terms = self.cut(terms[..., 0::2] + terms[..., 1::2])
        return terms[..., 0]

    def __getattr__(self, name):
        import torch
        return getattr(torch, name)
