"""Proof that a program was compiled, and the trace that the compiler's own graphs and code give.

Both are read from torch's structured trace: an ordinary logger to which dynamo, AOTAutograd and inductor hand
every graph as text with the dtype and shape of each value. A mode or a tracer around the call would change
what runs (dynamo skips such frames and plain eager runs), so nothing is put around it.
"""

import logging
from dataclasses import dataclass

import torch
import torch._dynamo
import torch._logging._internal

import generated
import printed_graphs
from ulpscope_adapter import Unsupported

# Name of a graph in the trace -> (stage of the report, which graph of its region). Without gradients
# AOTAutograd calls its graph the inference graph. Inductor's come in pairs; the code says which of two it is.
_GRAPHS = {
    "dynamo_output_graph": ("dynamo", ""),
    "aot_joint_graph": ("aot_joint", "joint"),
    "aot_inference_graph": ("aot_forward", "forward"),
    "aot_forward_graph": ("aot_forward", "forward"),
    "aot_backward_graph": ("aot_backward", "backward"),
    "inductor_post_grad_graph": ("post_grad", None),
    "inductor_output_code": ("generated", None)
}
_STAGES = ("dynamo", "aot_joint", "aot_forward", "aot_backward", "post_grad", "generated")


@dataclass(frozen=True)
class _Printed:
    """A graph or a piece of code, as it was handed over."""

    name: str  # in the structured trace
    frame: object  # of what dynamo compiles; one for each region
    text: str


class Recorder(logging.Handler):
    """Collects the graphs of everything that is compiled between two calls of `clear`."""
    def __init__(self):
        super().__init__()
        self.graphs = []

    def attach(self):
        torch._logging._internal.trace_log.addHandler(self)

    def clear(self):
        self.graphs.clear()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def emit(self, record):
        metadata = getattr(record, "metadata", {})
        artifact = metadata.get("artifact")  # where a cold compile puts what a cached one names at the top
        names = [artifact.get("name")] if isinstance(artifact, dict) else metadata
        for name in names:
            if name in _GRAPHS:
                self.graphs.append(
                    _Printed(name, metadata.get("frame_id"),
                             getattr(record, "payload", None) or ""))

    def texts(self, *names):
        return [graph.text for graph in self.graphs if graph.name in names]


def require_compiled(recorder, regions, backend):
    """Raises Unsupported unless each of `regions` regions became one graph, compiled by `backend`."""
    counters = torch._dynamo.utils.counters
    graphs = counters["stats"]["unique_graphs"]
    problems = []
    if graphs != regions:
        problems.append(f"dynamo captured {graphs} graphs for {regions} regions")
    if counters["graph_break"]:
        problems.append("graph breaks: " +
                        "; ".join(str(reason).splitlines()[0] for reason in counters["graph_break"]))
    forward = len(recorder.texts("aot_inference_graph", "aot_forward_graph"))
    if forward < regions and backend != "torch-custom":  # a vendor's backend need not use AOTAutograd
        problems.append(f"AOTAutograd made {forward} forward graphs for {regions} regions")
    if backend == "torch-inductor":
        code = recorder.texts("inductor_output_code")
        empty = sum(not generated.calls_of(text) for text in code)
        if len(code) < regions or empty:
            problems.append(
                f"inductor generated code for {len(code) - empty} of {max(len(code), regions)} graphs")
    if problems:
        raise Unsupported("not compiled: " + ", ".join(problems))


def add_trace(recorder, trace):
    """Adds every recorded graph to a Trace, stage by stage, each under a root that names its region.

    Gives back notes: what generated code calls, conversions in it whose result nothing uses, and what of it
    was not understood.
    """
    notes = []
    directions = _directions(recorder.graphs)
    regions = {
        frame: number for number, frame in enumerate(dict.fromkeys(graph.frame for graph in recorder.graphs))
    }
    for stage in _STAGES:
        for place, graph in enumerate(recorder.graphs):
            if _GRAPHS[graph.name][0] != stage:
                continue
            root = f"region {regions[graph.frame]} {directions[place]}".strip()
            if stage != "generated":
                trace.add(stage, printed_graphs.nodes_of(graph.text), root)
                continue
            nodes, problems = generated.nodes_of(graph.text, "")
            trace.add(stage, nodes, root)
            notes.append("generated: " + ", ".join(generated.calls_of(graph.text)))
            notes += [_unused_note(node, nodes) for node in nodes if node.op == "unused convert"] + problems
    return list(dict.fromkeys(notes))


def _unused_note(node, nodes):
    parent = next((other.op for other in nodes if other.name == node.parent), "")
    shape = ", ".join(map(str, node.shape))
    return f"generated: {parent} converts {node.dtype}[{shape}] and uses the unconverted value"


def _directions(graphs):
    """Which graph of its region each is. Inductor hands over a post-grad graph, then the code made of it."""
    found = {place: _GRAPHS[graph.name][1] for place, graph in enumerate(graphs)}
    for frame in {graph.frame for graph in graphs}:
        code, post_grad = ([
            p for p, g in enumerate(graphs) if g.frame == frame and _GRAPHS[g.name][0] == stage
        ] for stage in ("generated", "post_grad"))
        for place in code:
            found[place] = generated.direction_of(graphs[place].text).replace("inference", "forward")
        found.update(zip(post_grad, (found[place] for place in code)))
    return {place: direction or "" for place, direction in found.items()}
