"""Proof that a program was compiled, and the casts that the compiler's own graphs hold.

Both are read from torch's structured trace: an ordinary logger to which dynamo, AOTAutograd and inductor hand
every graph as text with the dtype and shape of each value. A mode or a tracer around the call would change
what runs (dynamo skips such frames and plain eager runs), so nothing is put around it.
"""

import contextlib
import logging
import re

import torch
import torch._dynamo
import torch._logging._internal
import torch.profiler

from ulpscope_adapter import Cast, Unsupported
from ulpscope_adapter.graph import Node, casts_of

_DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "b8": "bool"
}
# Name of a graph in the trace -> stage of the report. Without gradients AOTAutograd calls its graph the
# inference graph.
_STAGES = {
    "aot_inference_graph": "aot_forward",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "inductor_post_grad_graph": "post_grad"
}
_VALUE = re.compile(
    r'(\w+): "(\w+)\[([\d, ]*)\][^"]*"(?: = torch\.ops\.(\w+)\.(\w+)[\w.]*\(([^\n]*?)\)(?:;|$))?', re.M)
_NAME = re.compile(r"[A-Za-z_]\w*")
_VIEWS = frozenset({
    "view", "reshape", "_unsafe_view", "expand", "permute", "t", "transpose", "squeeze", "unsqueeze", "alias",
    "detach", "clone", "select", "slice"
})


class Recorder(logging.Handler):
    """Collects the graphs of everything that is compiled between two calls of `clear`."""
    def __init__(self):
        super().__init__()
        self.graphs = []  # (name in the trace, text)

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
            if name in _STAGES or name in ("dynamo_output_graph", "inductor_output_code"):
                self.graphs.append((name, getattr(record, "payload", None) or ""))

    def texts(self, *names):
        return [text for name, text in self.graphs if name in names]


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
        empty = sum(not kernels_of(text) for text in code)
        if len(code) < regions or empty:
            problems.append(
                f"inductor generated code for {len(code) - empty} of {max(len(code), regions)} graphs")
    if problems:
        raise Unsupported("not compiled: " + ", ".join(problems))


def kernels_of(code):
    """What a piece of inductor's output code calls: its own kernels and the operators that it leaves to ATen.
    """
    called = re.findall(r"^(cpp_\w+) = async_compile", code, re.M)
    called += [
        "extern " + name
        for name in re.findall(r"(?:extern_kernels\.|torch\.ops\.\w+\.)(\w+(?:\.\w+)*)\(", code)
    ]
    return list(dict.fromkeys(called))


def recorded_casts(recorder):
    """The casts of every recorded graph, stage by stage."""
    casts = []
    for stage in ("aot_forward", "aot_backward", "post_grad"):
        for name, text in recorder.graphs:
            if _STAGES.get(name) == stage:
                casts += casts_of(nodes_of(text), stage)
    return casts


class EngineCasts:
    """Casts that the autograd engine and eager nodes make in a backward(), outside the compiled graphs.

    The engine casts a gradient to the dtype that the next node recorded, and no graph of the compiler shows
    it. The profiler only listens: it is no mode, and what runs stays the same.
    """

    # Inside these, and while they are compiled, the graphs are the evidence.
    _COMPILED = ("CompiledFunctionBackward", "Torch-Compiled Region", "dynamo")

    def __init__(self, trace):
        self._trace = trace
        self.casts = []

    @contextlib.contextmanager
    def watch(self):
        if not self._trace:
            yield
            return
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    record_shapes=True) as profile:
            yield
        for root in profile.profiler.kineto_results.experimental_event_tree():
            self._walk(root, "")

    def _walk(self, event, under):
        if event.name.startswith(self._COMPILED):
            return
        if not event.name.startswith("aten::"):
            under = event.name.removeprefix("autograd::engine::evaluate_function: ")
        if event.name == "aten::copy_":
            target, source = event.extra_fields.inputs[:2]
            if target.dtype != source.dtype:
                self.casts.append(
                    Cast(source=_torch_name(source), target=_torch_name(target), shape=tuple(target.sizes),
                         under=under, stage="dispatch"))
        for child in event.children:
            self._walk(child, under)


def _torch_name(metadata):
    return str(metadata.dtype).removeprefix("torch.")


def nodes_of(text):
    """The values of a printed graph, inputs included."""
    nodes = []
    for name, dtype, shape, namespace, op, arguments in _VALUE.findall(text):
        known = {node.name for node in nodes}
        inputs = tuple(word for word in _NAME.findall(arguments) if word in known)
        extents = tuple(int(extent) for extent in shape.split(",") if extent.strip())
        cast_of = view_of = ""
        if op in ("convert_element_type", "_to_copy", "to") and inputs:
            cast_of = inputs[0]
        elif op in ("copy", "copy_") and len(inputs) > 1:
            cast_of = inputs[1]
        elif op in _VIEWS and inputs:
            view_of = inputs[0]
        nodes.append(
            Node(name=name, dtype=_DTYPES.get(dtype, dtype), shape=extents,
                 op=f"{namespace}::{op}" if op else "", inputs=inputs, cast_of=cast_of, view_of=view_of))
    return nodes
