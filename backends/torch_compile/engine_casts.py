"""Eager work around the compiled graphs: the ops that the autograd engine and eager layers dispatch.

The engine casts a gradient to the dtype that the next node recorded, and no graph of the compiler shows it.
The profiler only listens: it is no mode, and what runs stays the same.
"""

import contextlib
import dataclasses

import torch
import torch.profiler

from ulpscope_adapter import Cast, TraceNode
from ulpscope_torch import autograd_graph, op_kinds

# Inside these, and while they are compiled, the graphs are the evidence.
_COMPILED = ("CompiledFunctionBackward", "Torch-Compiled Region", "dynamo")
_ENGINE = "autograd::engine::evaluate_function: "


class EngineCasts:
    """Listens while something runs eagerly; afterwards adds what it heard to a Trace."""
    def __init__(self, trace):
        self._trace = trace
        self._profiles = []
        self._graphs = []  # nodes with ids from 0

    @contextlib.contextmanager
    def watch(self, what="backward"):
        """Around an eager call; `what` names it in the trace."""
        if not self._trace:
            yield
            return
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    record_shapes=True) as profile:
            yield
        self._profiles.append((what, profile))

    def walks(self, name, loss):
        """Keeps the autograd graph that a backward() from the value `name` is about to walk."""
        if self._trace:
            self._graphs.append(autograd_graph.nodes_of(loss, f"autograd graph of {name}", 0))

    def add_to(self, trace):
        for graph in self._graphs:
            trace.nodes += _moved(graph, len(trace.nodes))
        for what, profile in self._profiles:
            top = len(trace.nodes)
            trace.nodes.append(TraceNode(id=top, stage="dispatch", op=what))
            for event in profile.profiler.kineto_results.experimental_event_tree():
                self._walk(trace, event, top, what)

    def _walk(self, trace, event, parent, under):
        if event.name.startswith("[memory]"):
            return
        inputs = [
            value for value in getattr(event.extra_fields, "inputs", None) or [] if hasattr(value, "sizes")
        ]
        converts = event.name == "aten::copy_" and len(inputs) > 1 and inputs[0].dtype != inputs[1].dtype
        node = TraceNode(id=len(trace.nodes), parent=parent, stage="dispatch",
                         op=event.name.removeprefix(_ENGINE), kind="convert" if converts else op_kinds.kind_of(event.name), inputs=tuple(map(_tensor, inputs)),
                         us=event.duration_time_ns / 1e3)
        trace.nodes.append(node)
        if converts:
            (target, shape), (source, _) = _tensor(inputs[0]), _tensor(inputs[1])
            trace.casts.append(
                Cast(source=source, target=target, shape=shape, under=under, stage="dispatch", node=node.id,
                     us=node.us))
        if event.name.startswith(_COMPILED):
            return
        if not event.name.startswith("aten::"):
            under = node.op
        for child in event.children:
            self._walk(trace, child, node.id, under)


def _moved(nodes, by):
    """The same nodes with ids further on."""
    return [
        dataclasses.replace(node, id=node.id + by, parent=node.parent + by if node.parent >= 0 else -1,
                            sources=tuple(source + by for source in node.sources)) for node in nodes
    ]


def _tensor(metadata):
    return str(metadata.dtype).removeprefix("torch."), tuple(metadata.sizes)
