"""A captured program as one kernel computes it: elementary operations, none of which rounds to less than float32 unless
requested.

Ops with steps inside (a softmax, a norm, an activation, attention) become those steps. A kernel that keeps a number
in a register may leave out a rounding that the program requests, a cast to a narrower dtype, in all elements or in
none: such a place is a choice, and a program is made for each set of choices ("forms"). Attention has more choices:
its probabilities are rounded to the dtype of the values before the second product, divided by their total or not
yet, relative to the largest score of the row or of the blocks so far.
"""

import dataclasses
import itertools
import math
import operator
import types

from ulpscope import enclosing, formats, places
from ulpscope.case import every
from ulpscope.expanding import OPEN, Expansions, NotFusable

places.find_sdk()
from ulpscope_adapter import words  # noqa: E402

_MOST_FORMS = 48


@dataclasses.dataclass
class Node:
    """One elementary operation. `says` is its result's name in a sentence; a rounding of it to one of `allowed` is no
    fault of a kernel."""

    op: str
    of: tuple
    name: str
    says: str
    attrs: dict = dataclasses.field(default_factory=dict)
    allowed: tuple = ()


@dataclasses.dataclass
class Program:
    """The nodes in order, the names of results, and the choices that were made."""

    nodes: list
    results: list
    form: dict

    def said(self):
        """The choices as text; '' where there was none."""
        return ", ".join(f"{name} {choice}" for name, choice in self.form.items())


_WHOLE = {"floor", "ceil", "round", "trunc"}
_LOGIC = {"logical_and", "logical_or", "logical_not"}
_INDEXED = {"gather", "index_select", "index", "embedding"}
_SAME = {"clone", "detach", "contiguous"}
_MADE = {"zeros", "ones", "full", "arange"}
_PRODUCTS = {"matmul", "mm", "bmm"}


def _moves():
    return set(words.ops("view")) | {"cat", "stack", "roll", "flip"} | {"tril", "triu"} | _SAME


def _is_comparison(op):
    return len(op) == 2 and hasattr(operator, op)


def _is_elementary(op):
    """Whether an op is one operation of the arithmetics on its operands, element by element."""
    return op in words.ops("value") and hasattr(enclosing.Enclosing, op) and not hasattr(_Writer, f"_{op}")


# True if the operation only changes signs or places of numbers, or picks some: a rounding before it is the same as one
# after it.
def commutes(node):
    if node.op == "mul":
        numbers = [each for each in node.of if not isinstance(each, str)]
        return len(numbers) == 1 and numbers[0] != 0 and math.frexp(abs(numbers[0]))[0] == 0.5
    return node.op in ("move", "neg", "abs", "amax", "amin", "same") or node.op == "clamp" and all(
        each is None or float(each).is_integer() and abs(each) <= 8 for each in (node.attrs["low"], node.attrs["high"]))


def programs(case, dtypes, shapes, results, rounds=None):
    """[Program] of a captured case, the most usual form first; the last one leaves every choice open, if there is one.

    dtypes   {value: dtype's name}, as the program stores it; shapes   {value: its shape}
    results  {value: dtype's name} that the kernel gives
    rounds   {value: dtype's name}: additional roundings that the kernel is allowed
    """
    made = [step.name for step in every(case.steps)]
    if unknown := [name for name in rounds or {} if name not in made]:
        raise ValueError(f"mid=: the reference has no value {unknown[0]!r}; it has {', '.join(made)}")
    places_ = {}
    _Writer(case, (dtypes, shapes), results, rounds or {}, {}, places_).write()
    names = list(places_)
    sets = list(itertools.islice(itertools.product(*(places_[name] for name in names)), 100_000))
    if len(sets) > _MOST_FORMS:
        sets = [tuple(places_[name][i] if i < len(places_[name]) else places_[name][0] for name in names)
                for i in range(max(map(len, places_.values())))]
    forms = [dict(zip(names, each)) for each in sets]
    if names:
        forms.append(dict.fromkeys(names, OPEN))
    return [_Writer(case, (dtypes, shapes), results, rounds or {}, form, {}).write() for form in forms]


class _Writer(Expansions):
    """Writes one program; `found` takes the places where there is a choice, and what may be chosen."""

    def __init__(self, case, stored, results, rounds, form, found):
        self.case, (self.dtypes, self.shapes), self.results, self.rounds, self.form, self.found = case, stored, results, rounds, form, found
        self.nodes, self.step = [], None
        self.steps = list(every(case.steps))
        if any(step.steps for step in case.steps):
            raise NotFusable("the reference has a scope (autocast, no_grad) around some of its steps: write its casts out")
        self.readers = {}
        for step in self.steps:
            for each in step.of:
                if isinstance(each, str):
                    self.readers.setdefault(each, []).append(step)
        self.ends = self._ends()
        self.attention = self._attention()

    def _ends(self):
        """The values that become a result, with only moves and the output's casts between."""
        made = {step.name: step for step in self.steps}
        ends, todo = {}, [(name, dtype) for name, dtype in self.results.items()]
        while todo:
            name, dtype = todo.pop()
            ends.setdefault(name, dtype)
            step = made.get(name)
            if step is None or len(self.readers.get(name, [])) > 1:
                continue
            if step.op in _moves() or step.op == "cast" and step.attrs["dtype"] == dtype:
                todo += [(each, dtype) for each in step.of if isinstance(each, str)]
        return ends

    def _attention(self):
        """{softmax: (the cast between or None, the product)}, {other step: its softmax} of softmaxes whose result a
        product reads."""
        found = {}
        for step in self.steps:
            if step.op != "softmax" or step.name in self.ends:
                continue
            readers = self.readers.get(step.name, [])
            cast = readers[0] if len(readers) == 1 and readers[0].op == "cast" else None
            readers = self.readers.get(cast.name, []) if cast else readers
            dim = step.attrs.get("dim", -1)
            if len(readers) == 1 and readers[0].op in _PRODUCTS and dim == -1 and \
                    readers[0].of[0] == (cast or step).name != readers[0].of[1]:
                found[step.name] = (cast, readers[0])
        return found

    def write(self):
        skipped = {}
        for softmax, (cast, product) in self.attention.items():
            for each in (cast, product):
                if each is not None:
                    skipped[each.name] = softmax
        scores = {}
        for self.step in self.steps:
            step = self.step
            if step.name in self.attention:
                scores[step.name] = step.of[0]
            elif skipped.get(step.name) and step.op != "cast":
                softmax = skipped[step.name]
                cast = self.attention[softmax][0]
                stored = cast.attrs["dtype"] if cast else self.dtypes[softmax]
                self._core(scores[softmax], step.of[1], step.name, softmax, stored)
            elif step.name not in skipped:
                self._write(step)
            if step.name in self.rounds and step.name not in self.ends:
                self._choose(step.name, self.rounds[step.name])
        return Program(self.nodes, list(self.results), dict(self.form))

    # Nodes

    def add(self, op, *of, name="", says="", allowed=(), **attrs):
        """A node, an inner one of the step unless it has a name; its name."""
        name = name or f"{self.step.name}~{len(self.nodes)}"
        self.nodes.append(Node(op, of, name, says or name, attrs, tuple(allowed)))
        return name

    def inner(self, what):
        return f"{what} inside {self.step.name}"

    def _choose(self, name, dtype):
        """The value is rounded to `dtype`, or not: the node that made it is renamed, and its rounding takes the name."""
        if formats.holds(dtype, "float32"):
            return
        if not formats.known(dtype):
            raise NotFusable(f"{name} is rounded to {dtype}, and no format of that name is known")
        self.found[name] = [f"rounded to {dtype}", "not rounded"]
        choice = self.form.get(name, "not rounded")
        if choice == "not rounded":
            return
        last = next(node for node in reversed(self.nodes) if node.name == name)
        last.name = name + "~before"
        self.nodes.append(Node("perhaps" if choice == OPEN else "to", (last.name, ), name, f"{name} as it is rounded", {"format": dtype}))

    def _write(self, step):
        op, of, name, attrs = step.op, step.of, step.name, step.attrs
        says = name
        expand = getattr(self, f"_{op}", None)
        if step.out or op.partition(".")[0].endswith("_") or not name:
            raise NotFusable(f"op {op}: the reference writes into a tensor that exists{step.at()}")
        if op == "cast":
            self._cast(step)
        elif op in ("add", "sub") and attrs.get("alpha", 1) != 1:
            self.add(op, of[0], self.add("mul", of[1], attrs["alpha"]), name=name, says=says)
        elif op in _moves():
            self.add("same" if op in _SAME else "move", *of, name=name, says=says, step=step)
        elif op == "pad" and attrs.get("mode", "constant") == "constant" and not attrs.get("value"):
            self.add("move", *of, name=name, says=says, step=step)
        elif op in _INDEXED:
            self.add("index", *of, name=name, says=says, step=step)
        elif op in _WHOLE:
            self.add("whole", *of, name=name, says=says, function=op)
        elif _is_comparison(op):
            self.add("compare", *of, name=name, says=says, function=op)
        elif op in _LOGIC:
            self.add("logic", *of, name=name, says=says, function=op)
        elif op in _MADE:
            self.add("made", name=name, says=says, step=step)
        elif op in _PRODUCTS:
            self.add("matmul", *of, name=name, says=says)
        elif _is_elementary(op):
            self.add(op, *of, name=name, says=says)
        elif expand is not None:
            expand(*of, name=name, **attrs)
        else:
            raise NotFusable(f"op {op}: no float32 evaluation of it is known{step.at()}")

    def _cast(self, step):
        dtype, source = step.attrs["dtype"], step.of[0]
        if dtype == "bool" or not formats.known(dtype) and dtype not in ("float64", ) and not dtype.startswith("float"):
            self.add("whole", source, name=step.name, says=step.name, function="trunc")
            return
        self.add("same", source, name=step.name, says=step.name)
        if step.name not in self.ends and not formats.holds(dtype, self.dtypes.get(source, "float64")):
            self._choose(step.name, dtype)
