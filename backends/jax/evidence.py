"""Casts of a JAX program at the stages before XLA: jaxpr and StableHLO (ulpscope_adapter/hlo.py has the rest).

The texts carry source paths, so only dtypes, shapes and op names are taken from them.
"""

import re

from ulpscope_adapter.graph import Node, casts_of
from ulpscope_adapter.hlo import VIEWS, XLA_DTYPES

# StableHLO's names beside those of HLO.
_DTYPES = {
    **XLA_DTYPES,
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "ui8": "uint8",
    "i1": "bool"
}
_VIEWS = VIEWS | {"broadcast_in_dim", "squeeze", "expand_dims"}
_STABLEHLO = re.compile(
    r"^\s*(%\w+) = (?:stablehlo\.)?(\w+)([^:]*):.*?tensor<((?:\d+x)*)([a-zA-Z]\w*)>\s*(?:loc.*)?$")
_STABLEHLO_ARGUMENT = re.compile(r"(%arg\d+): tensor<((?:\d+x)*)([a-zA-Z]\w*)>")


def jaxpr_casts(closed):
    """The casts of a jax.core.ClosedJaxpr and of every jaxpr inside it."""
    nodes = []
    _walk_jaxpr(closed.jaxpr, nodes)
    return casts_of(nodes, "jaxpr")


def stablehlo_casts(text):
    nodes, function = [], 0
    for line in text.splitlines():
        if "func.func" in line:
            function += 1
            nodes += [
                Node(name=f"{function}:{name}", dtype=_DTYPES.get(dtype, dtype), shape=_extents(shape, "x"))
                for name, shape, dtype in _STABLEHLO_ARGUMENT.findall(line)
            ]
        match = _STABLEHLO.match(line)
        if match:
            name, op, operands, shape, dtype = match.groups()
            inputs = tuple(f"{function}:{operand}" for operand in re.findall(r"%\w+", operands))
            nodes.append(
                _node(f"{function}:{name}", _DTYPES.get(dtype, dtype), _extents(shape, "x"), op, inputs))
    return casts_of(nodes, "stablehlo")


def _node(name, dtype, shape, op, inputs):
    first = inputs[0] if inputs else ""
    return Node(name=name, dtype=dtype, shape=shape, op=op, inputs=inputs,
                cast_of=first if op in ("convert", "convert_element_type") else "",
                view_of=first if op in _VIEWS else "")


def _extents(text, separator):
    return tuple(int(extent) for extent in text.split(separator) if extent)


def _walk_jaxpr(jaxpr, nodes):
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        nodes.append(Node(name=str(id(var)), dtype=str(var.aval.dtype), shape=tuple(var.aval.shape)))
    for equation in jaxpr.eqns:
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    _walk_jaxpr(inner, nodes)
        inputs = tuple(str(id(var)) for var in equation.invars if not hasattr(var, "val"))  # literals apart
        for var in equation.outvars:
            if hasattr(var.aval, "dtype"):
                nodes.append(
                    _node(str(id(var)), str(var.aval.dtype), tuple(var.aval.shape), equation.primitive.name,
                          inputs))
