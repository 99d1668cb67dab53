"""Casts of a graph, from whatever a framework prints: the one place that says what a redundant pair is.

A front end reads its framework's graph into Nodes, in order of definition. A conversion is redundant when it
undoes a widening (bfloat16 -> float32 -> bfloat16): it changes no value and costs a pass over memory. float32
-> bfloat16 -> float32 is no such pair, it rounds.
"""

from dataclasses import dataclass

from ulpscope_adapter.request import Cast

# Formats whose every value the wider one holds.
_WIDER = {
    "float8_e4m3fn": {"bfloat16", "float16", "float32", "float64"},
    "float8_e5m2": {"bfloat16", "float16", "float32", "float64"},
    "bfloat16": {"float32", "float64"},
    "float16": {"float32", "float64"},
    "float32": {"float64"},
}


@dataclass(frozen=True)
class Node:
    """One value. `cast_of` names the value that it converts, `view_of` the one that it shows unchanged."""

    name: str
    dtype: str
    shape: tuple
    op: str = ""
    inputs: tuple = ()
    cast_of: str = ""
    view_of: str = ""


def casts_of(nodes, stage):
    """The conversions between two floating or integer dtypes among `nodes`, in order, as Casts of `stage`."""
    by_name, users = {}, {}
    for node in nodes:
        by_name[node.name] = node
        for name in node.inputs:
            users.setdefault(name, []).append(node)

    def through_views(name):
        while name in by_name and by_name[name].view_of:
            name = by_name[name].view_of
        return by_name.get(name)

    def source(node):
        return by_name[node.cast_of].dtype

    casts = [n for n in nodes if n.cast_of in by_name and source(n) != n.dtype]
    undoing = set()
    for node in casts:
        first = through_views(node.cast_of)
        widened = first and first.cast_of in by_name and first.dtype in _WIDER.get(node.dtype, ())
        if widened and source(first) == node.dtype:
            undoing.add(node.name)
    undone = {n.name for n in casts if n.name not in undoing and _only_feeds(n, users, undoing)}
    return [
        Cast(source=source(n), target=n.dtype, shape=n.shape, under=n.op, stage=stage,
             redundant=n.name in undoing or n.name in undone) for n in casts
    ]


def _only_feeds(node, users, undoing):
    """True when every use of `node`, through views, is one of the conversions that undo it."""
    after = users.get(node.name, [])
    return bool(after) and all(
        u.name in undoing or (u.view_of and _only_feeds(u, users, undoing)) for u in after)
