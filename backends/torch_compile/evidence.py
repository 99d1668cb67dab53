"""Proof that a program was compiled, and the trace that the compiler's own graphs and code give.

Graphs are read from torch's structured trace: the function to which dynamo, AOTAutograd and inductor hand every graph as text, with the
dtype and shape of each value. A mode or a tracer around the call would change what runs (dynamo skips such frames and plain eager runs), so
nothing is put around it. The trace has many more entries than graphs, and a handler of its logger would have all of them printed: a tenth
of a case's time. So the function itself is listened to, and only graphs are taken.
"""

import re
import sys
from dataclasses import dataclass

import torch
import torch._dynamo
import torch._guards
import torch._logging._internal

import generated
import printed_graphs
from ulpscope_adapter import Unsupported

# Name of a graph in the trace -> (stage of the report, which graph of its region). Without gradients AOTAutograd calls its graph the
# inference graph. Inductor's come in pairs; the code shows which of the two it is.
_GRAPHS = {
    "dynamo_output_graph": ("dynamo", ""),
    "aot_joint_graph": ("aot_joint", "joint"),
    "aot_inference_graph": ("aot_forward", "forward"),
    "aot_forward_graph": ("aot_forward", "forward"),
    "aot_backward_graph": ("aot_backward", "backward"),
    "inductor_post_grad_graph": ("post_grad", None),
    "inductor_output_code": ("generated", None)
}
_STEP = re.compile(r"(?m)^  File .*, in step_(.+)$")
_STAGES = ("dynamo", "aot_joint", "aot_forward", "aot_backward", "post_grad", "generated")


@dataclass(frozen=True)
class _Printed:
    """A graph or a piece of code, as it was handed over."""

    name: str  # in the structured trace
    frame: object  # of what dynamo compiles; one for each region
    text: str


class Recorder:
    """Collects what is compiled between two calls of `clear`: code always, graphs where a trace is wanted."""
    def __init__(self):
        self.graphs = []
        self.code = []
        self.stored = []  # "STEP DTYPE ELEMENTS": what kernels write to memory, and which step's last op it is
        self._listening = False
        self._hand_over = torch._logging._internal.trace_structured

    def attach(self):
        """Called once, when the compilers are loaded: their modules hold the function by its name."""
        import torch._dynamo.output_graph  # noqa: F401
        import torch._functorch.aot_autograd  # noqa: F401
        import torch._inductor.compile_fx  # noqa: F401
        import torch._inductor.graph
        lowering = torch._inductor.graph.GraphLowering
        lowering.save_output_code = self.code.append
        generate = lowering.codegen

        def codegen(graph):
            code = generate(graph)
            self.stored += stored_in(graph)
            return code

        lowering.codegen = codegen
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get("trace_structured") is self._hand_over:
                module.trace_structured = self._hear

    def clear(self, trace):
        self.graphs.clear()
        self.code.clear()
        self.stored.clear()
        self._listening = trace
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def _hear(self, name, metadata_fn=dict, *, payload_fn=lambda: None, **rest):
        if self._listening:
            # A graph is an entry of its own name, or an artifact that is called so: a cold compile's, mostly.
            graph = metadata_fn().get("name") if name == "artifact" else name
            if graph in _GRAPHS:
                trace_id = torch._guards.CompileContext.current_trace_id()
                frame = trace_id.compile_id.frame_id if trace_id and trace_id.compile_id else None
                self.graphs.append(_Printed(graph, frame, payload_fn() or ""))
        return self._hand_over(name, metadata_fn, payload_fn=payload_fn, **rest)


def stored_in(graph):
    """The buffers that a lowered graph keeps in memory, each by the step whose op gives it. The stack that the compiler keeps beside an op
    holds the function of its step (ulpscope_torch.ops.bind)."""
    found = []
    for buffer in graph.buffers:
        origin = buffer.get_origin_node() if hasattr(buffer, "get_origin_node") else None
        value = origin.meta.get("val") if origin is not None else None
        steps = _STEP.findall(origin.meta.get("stack_trace") or "") if origin is not None else []
        if steps and isinstance(value, torch.Tensor) and buffer.get_name() not in graph.removed_buffers:
            found.append(f"{steps[-1]} {str(value.dtype).removeprefix('torch.')} {value.numel()}")
    return list(dict.fromkeys(found))


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
    forward = counters["aot_autograd"]["ok"]
    if forward < regions and backend != "torch-custom":  # a vendor's backend need not use AOTAutograd
        problems.append(f"AOTAutograd made {forward} forward graphs for {regions} regions")
    if backend == "torch-inductor":
        empty = sum(not generated.calls_of(text) for text in recorder.code)
        if len(recorder.code) < regions or empty:
            problems.append(f"inductor generated code for {len(recorder.code) - empty} of "
                            f"{max(len(recorder.code), regions)} graphs")
    if problems:
        raise Unsupported("not compiled: " + ", ".join(problems))


def add_trace(recorder, regions, trace):
    """Adds every recorded graph to a Trace, stage by stage, each under a root that names its region.

    Gives back notes: what generated code calls, conversions in it whose result nothing uses, and what of it
    was not understood.
    """
    heard = sum(graph.name == "dynamo_output_graph" for graph in recorder.graphs)
    notes = [] if heard == regions else [f"trace: {heard} graphs for {regions} regions"]
    directions = _directions(recorder.graphs)
    numbers = {
        frame: number for number, frame in enumerate(dict.fromkeys(graph.frame for graph in recorder.graphs))
    }
    for stage in _STAGES:
        for place, graph in enumerate(recorder.graphs):
            if _GRAPHS[graph.name][0] != stage:
                continue
            root = f"region {numbers[graph.frame]} {directions[place]}".strip()
            if stage != "generated":
                trace.add(stage, printed_graphs.nodes_of(graph.text), root)
                continue
            nodes, problems = generated.nodes_of(graph.text, "")
            trace.add(stage, nodes, root)
            notes.append("generated: " + ", ".join(generated.calls_of(graph.text)))
            notes += [unused_note(node, nodes) for node in nodes if node.op == "unused convert"] + problems
    return list(dict.fromkeys(notes))


def unused_note(node, nodes):
    """A note on a conversion in generated code whose result nothing uses."""
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
