"""The trace of a JAX program before XLA: jaxpr and StableHLO (ulpscope_adapter/hlo.py has the rest).

The texts carry source paths, so only dtypes, shapes and op names are taken from them.
"""

import re
from dataclasses import replace

from ulpscope_adapter import brackets
from ulpscope_adapter.dtypes import printed_names
from ulpscope_adapter.graph import Node
from ulpscope_adapter.hlo import KINDS, XLA_DTYPES

# StableHLO's names beside those of HLO.
_DTYPES = {**XLA_DTYPES, **printed_names(lambda code: f"f8{code.upper()}", "i", "ui", "i1")}
_KINDS = {
    **KINDS,
    **dict.fromkeys(("broadcast_in_dim", "squeeze", "expand_dims", "stop_gradient"), "move"),
    "convert_element_type": "convert",
    "": "input"
}
_STABLEHLO = re.compile(
    r"^\s*(%\w+)(?::\d+)? = (?:\w+\.)?(\w+)([^:]*):.*?tensor<((?:\d+x)*)([a-zA-Z]\w*)>\s*(?:loc.*)?$")
_STABLEHLO_FUNCTION = re.compile(r"func\.func .*?@(\w+)")
_STABLEHLO_ARGUMENT = re.compile(r"(%arg\d+): tensor<((?:\d+x)*)([a-zA-Z]\w*)>")
_STABLEHLO_CALLED = re.compile(r"@(\w+)")


def jaxpr_nodes(closed):
    """The equations of a jax.core.ClosedJaxpr; those of a jaxpr in it under the equation that holds it."""
    nodes = []
    _Jaxprs(nodes).walk(closed.jaxpr, parent="", operands=())
    return nodes


class _Jaxprs:
    """Walks jaxprs into each other. One that is called twice has its variables twice, under other names."""
    def __init__(self, nodes):
        self._nodes = nodes
        self._walked = 0

    def walk(self, jaxpr, parent, operands):
        self._walked += 1
        prefix = f"{self._walked}:"
        inner = [*jaxpr.constvars, *jaxpr.invars]
        # Operands of a call, which has one for each variable. Loops and branches differ.
        shown = operands if len(operands) == len(inner) else [""] * len(inner)
        for var, operand in zip(inner, shown):
            self._add(prefix, var, op="", inputs=(operand,) if operand else (), parent=parent)
        for equation in jaxpr.eqns:
            inputs = tuple(prefix + str(id(var)) for var in equation.invars if not hasattr(var, "val"))
            name = self._equation(prefix, equation, inputs, parent)
            handed = [prefix + str(id(var)) if not hasattr(var, "val") else "" for var in equation.invars]
            for parameter in equation.params.values():
                for held in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
                    held = getattr(held, "jaxpr", held)
                    if hasattr(held, "eqns"):
                        self.walk(held, name, handed)

    def _equation(self, prefix, equation, inputs, parent):
        """Adds a node for each result; gives back the name of the first."""
        op, first = equation.primitive.name, ""
        for place, var in enumerate(equation.outvars):
            if not first:
                first = self._add(prefix, var, op, inputs, parent)
            else:
                self._add(prefix, var, f"{op} result {place}", (first,), parent)
        return first

    def _add(self, prefix, var, op, inputs, parent):
        aval = var.aval
        known = hasattr(aval, "dtype")  # a token has none
        name = prefix + str(id(var))
        self._nodes.append(
            _node(name,
                  str(aval.dtype) if known else "",
                  tuple(aval.shape) if known else (), op, inputs, parent))
        return name


def stablehlo_nodes(text):
    """The operations of every function; those of one that is called under the (first) call. Regions side by side (two scatters) call
    their results by the same names: the later one is the one that is meant from there on."""
    nodes, function, callers, meant = [], "", {}, {}
    for line in text.splitlines():
        header = _STABLEHLO_FUNCTION.search(line)
        if header:
            function = header[1]
            nodes += [
                _node(f"{function}:{name}", _DTYPES.get(dtype, dtype), brackets.extents(shape.replace("x", " ")), "", (), function)
                for name, shape, dtype in _STABLEHLO_ARGUMENT.findall(line)
            ]
        match = _STABLEHLO.match(line)
        if match:
            name, op, operands, shape, dtype = match.groups()
            plain = f"{function}:{name}"
            times = meant.get(plain, (0, ""))[0]
            name = plain + f"'{times}" * bool(times)
            called = _STABLEHLO_CALLED.search(operands) if op == "call" else None
            if called:
                callers.setdefault(called[1], name)
            read = (f"{function}:{operand}" for operand in re.findall(r"%\w+", operands))
            inputs = tuple(meant[each][1] if each in meant else each for each in read)
            meant[plain] = (times + 1, name)
            nodes.append(_node(name, _DTYPES.get(dtype, dtype), brackets.extents(shape.replace("x", " ")), op, inputs, function))
    return [replace(node, parent=callers.get(node.parent, "")) for node in nodes]


def _node(name, dtype, shape, op, inputs, parent):
    kind = "move" if inputs and not op else _KINDS.get(op, "compute")  # handed in
    return Node(name=name, dtype=dtype, shape=shape, op=op, kind=kind, inputs=inputs, parent=parent,
                cast_of=inputs[0] if kind == "convert" and inputs else "")
