"""Graphs of a trace, from whatever a framework prints: the one place that says what a redundant pair is.

A front end reads one graph of its framework into Nodes, in order of definition, under names of its own; a
Trace numbers them as the wire wants them and lists their casts. A conversion is redundant when it undoes a
widening (bfloat16 -> float32 -> bfloat16) with nothing but views between: it changes no value and costs a
pass over memory. float32 -> bfloat16 -> float32 is no such pair, it rounds.
"""

from dataclasses import dataclass

from ulpscope_adapter.request import Cast, TraceNode

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
    """One operation of a graph, or an input of it; its name stands for its (first) result.

    `inputs` names the operands, `cast_of` the value that it converts, `view_of` the one that it shows
    unchanged, `parent` the node that encloses it (a fusion around its instructions). An empty dtype: no
    result, or one of unknown dtype. `more` are the results after the first, as (dtype, shape). `reads` are
    operands that are no node's first result, likewise, and `after` names the nodes that made them, where they
    are known.
    """

    name: str
    dtype: str
    shape: tuple = ()
    op: str = ""
    inputs: tuple = ()
    cast_of: str = ""
    view_of: str = ""
    parent: str = ""
    more: tuple = ()
    reads: tuple = ()
    after: tuple = ()
    us: float | None = None


class Trace:
    """The nodes and casts of one run, numbered in the order in which they are added."""
    def __init__(self):
        self.nodes = []
        self.casts = []

    def add(self, stage, nodes, root=""):
        """Adds one graph of `stage`; with `root`, under a node of that name that stands for all of it."""
        top = -1
        if root:
            top = len(self.nodes)
            self.nodes.append(TraceNode(id=top, stage=stage, op=root))
        ids = {node.name: len(self.nodes) + place for place, node in enumerate(nodes)}
        values = {node.name: (node.dtype, node.shape) for node in nodes if node.dtype}
        for node in nodes:
            read = [values[name] for name in node.inputs if name in values]
            made = [(node.dtype, node.shape)] if node.dtype else []
            sources = dict.fromkeys(ids[name] for name in (*node.inputs, *node.after) if name in ids)
            self.nodes.append(
                TraceNode(id=ids[node.name], parent=ids.get(node.parent, top), stage=stage, op=node.op or
                          "input", sources=tuple(sources), inputs=(*read, *node.reads),
                          outputs=(*made, *node.more), us=node.us))
        self.casts += _casts(nodes, stage, ids)


def casts_of(nodes, stage):
    """The conversions between two dtypes among `nodes`, in order, as Casts of `stage`."""
    return _casts(nodes, stage, {})


def _casts(nodes, stage, ids):
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

    casts = [n for n in nodes if n.cast_of in by_name and source(n) and source(n) != n.dtype]
    undoing = set()
    for node in casts:
        first = through_views(node.cast_of)
        widened = first and first.cast_of in by_name and first.dtype in _WIDER.get(node.dtype, ())
        if widened and source(first) == node.dtype:
            undoing.add(node.name)
    undone = {n.name for n in casts if n.name not in undoing and _only_feeds(n, users, undoing)}
    return [
        Cast(source=source(n), target=n.dtype, shape=n.shape,
             under=by_name[n.parent].op if n.parent in by_name else n.op, stage=stage,
             redundant=n.name in undoing or n.name in undone, node=ids.get(n.name, -1), us=n.us)
        for n in casts
    ]


def _only_feeds(node, users, undoing):
    """True when every use of `node`, through views, is one of the conversions that undo it."""
    after = users.get(node.name, [])
    return bool(after) and all(
        u.name in undoing or (u.view_of and _only_feeds(u, users, undoing)) for u in after)
