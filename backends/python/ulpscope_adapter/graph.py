"""Graphs of a trace, from whatever a framework prints.

A front end reads one graph of its framework into Nodes, in order of definition, under names of its own; a
Trace numbers them as the wire wants them and lists their casts.
"""

from dataclasses import dataclass

from ulpscope_adapter.request import Cast, TraceNode


@dataclass(frozen=True)
class Node:
    """One operation of a graph, or an input of it; its name stands for its (first) result.

    `kind` is the trace node's (backends/PROTOCOL.md); a conversion to the dtype that there was already is reported as a move. `inputs`
    names the operands, `cast_of` the value that it converts, `parent` the node that encloses it (a fusion around its instructions). An
    empty dtype: no result, or one of unknown dtype. `more` are the results after the first, as (dtype, shape). `reads` are operands that
    are no node's first result, likewise, and `after` names the nodes that made them, where they are known.
    """

    name: str
    dtype: str
    shape: tuple = ()
    op: str = ""
    inputs: tuple = ()
    cast_of: str = ""
    parent: str = ""
    more: tuple = ()
    reads: tuple = ()
    after: tuple = ()
    us: float | None = None
    kind: str = "compute"


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
        ops = {node.name: node.op for node in nodes}
        values = {node.name: (node.dtype, node.shape) for node in nodes if node.dtype}
        for node in nodes:
            read = [values[name] for name in node.inputs if name in values]
            made = [(node.dtype, node.shape)] if node.dtype else []
            sources = dict.fromkeys(ids[name] for name in (*node.inputs, *node.after) if name in ids)
            kind, source = node.kind, values.get(node.cast_of, ("",))[0]
            if kind == "convert" and source == node.dtype:
                kind = "move"
            elif source and source != node.dtype:
                under = ops.get(node.parent, node.op)
                self.casts.append(
                    Cast(source=source, target=node.dtype, shape=node.shape, under=under, stage=stage,
                         node=ids[node.name], us=node.us))
            self.nodes.append(
                TraceNode(id=ids[node.name], parent=ids.get(node.parent, top), stage=stage, op=node.op or
                          "input", kind=kind, sources=tuple(sources), inputs=(*read, *node.reads),
                          outputs=(*made, *node.more), us=node.us))
