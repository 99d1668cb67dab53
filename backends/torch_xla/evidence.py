"""The graphs of one program: the lazy IR, the HLO made from it, and the HLO that XLA made of that.

Everything is read before a graph is carried out; afterwards its tensors are plain data.
"""

from dataclasses import dataclass

from ulpscope_adapter import Trace, hlo
from ulpscope_adapter.graph import Node
from ulpscope_torch import op_kinds

_CAST = "xla::cast"
_BARRIER = "xla::optimization_barrier"
_DATA = ("xla::device_data", "prim::Constant")
_KINDS = {
    **dict.fromkeys(_DATA, "input"), _CAST: "convert",
    _BARRIER: "move",
    "xla::generic_slice": "move",
    "xla::as_strided": "move"
}


@dataclass(frozen=True)
class Graph:
    """The pending computation of some tensors, as text."""

    lazy_ir: str
    hlo: str


def pending(tensors):
    """The Graph of XLA tensors; None when nothing is left to compute."""
    import _XLAC
    if not tensors:
        return None
    text = _XLAC._get_xla_tensors_text(tensors)
    if all(node.op in _DATA for node in lazy_nodes(text)):
        return None
    return Graph(lazy_ir=text, hlo=_XLAC._get_xla_tensors_hlo(tensors))


class Evidence:
    """Nodes, casts and notes of one run, graph by graph."""
    def __init__(self, session):
        self._session = session
        self.trace = Trace()
        self.notes = []
        self._count = 0

    def add(self, graph, where):
        """Adds a graph that has just been carried out."""
        self._count += 1
        label = f"graph {self._count} ({where})"
        self.trace.add("lazy_ir", lazy_nodes(graph.lazy_ir), label)
        modules = self._session.modules(graph.hlo)
        for before, after in modules[:-1]:
            self._add_module(f"before graph {self._count} (the framework's own cut)", before, after)
        self._add_module(label, *(modules[-1] if modules else (graph.hlo, "")))

    def _add_module(self, label, before, after):
        for stage, text in (("hlo", before), ("hlo_optimized", after)):
            if not text:
                self.notes.append(f"{label}: this worker has no {stage}")
                continue
            first = len(self.trace.casts)
            self.trace.add(stage, hlo.hlo_nodes(text), label)
            self.notes.append(f"{label}: {hlo.stage_note(text, self.trace.casts[first:], stage)}")


class Bridge:
    """Listens while torch.compile's bridge to XLA turns graphs of dynamo into graphs of its own.

    The bridge asks for the hash of each graph right before it compiles it: the tensors are at hand, nothing has been carried out. It also
    queries, operator by operator, what fell back to the CPU.
    """
    def __init__(self, evidence, trace, fell_back):
        self._evidence = evidence
        self._trace = trace
        self._fell_back = fell_back
        self._graph = None

    def __enter__(self):
        import _XLAC
        from torch_xla._dynamo import dynamo_bridge
        self._places = ((_XLAC, "_get_graph_hash"), (dynamo_bridge, "get_fallback_ops"))
        self._originals = [getattr(place, name) for place, name in self._places]
        self._replace(self._hash, self._fallbacks)
        return self

    def __exit__(self, *_):
        self._replace(*self._originals)

    def _replace(self, *functions):
        for (place, name), function in zip(self._places, functions):
            setattr(place, name, function)

    def flush(self):
        """Adds the graph that was heard of last, which has been compiled by now."""
        if self._graph is not None:
            self._evidence.add(self._graph, "through dynamo")
        self._graph = None

    def _hash(self, tensors):
        if self._trace:
            self.flush()
            self._graph = pending(list(tensors))
        return self._originals[0](tensors)

    def _fallbacks(self):
        names = self._originals[1]()
        for name in names:
            self._fell_back(name)
        return names


def lazy_nodes(text):
    """The values of lazy IR text. The members of a tuple %7 are %7.0, %7.1, ...; the used ones get a node."""
    nodes, known = [], {}

    def add(node):
        nodes.append(node)
        known[node.name] = node

    for name, types, op, operands, _ in hlo.instructions(text):
        for operand in operands:
            whole, _, place = operand.partition(".")
            if operand not in known and place and whole in known:
                add(_member(operand, known[whole], int(place)))
        first = operands[0] if operands else ""
        dtype, shape = types[0] if types else ("", ())
        kind = _KINDS.get(op) or op_kinds.kind_of(op)
        add(
            Node(name=name, dtype=dtype, shape=shape, op=op, kind=kind, inputs=tuple(operands), more=tuple(types[1:]),
                 cast_of=first if kind == "convert" else ""))
    return nodes


def _member(name, whole, place):
    dtype, shape = ((whole.dtype, whole.shape), *whole.more)[place]
    through = whole.op == _BARRIER and place < len(whole.inputs)
    return Node(name=name, dtype=dtype, shape=shape, op=f"result {place}", kind="move",
                inputs=(whole.inputs[place] if through else whole.name,))
