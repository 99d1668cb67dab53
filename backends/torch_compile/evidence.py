"""Proof that a program was compiled, and the casts that the compiler's own graphs hold.

Both are read from torch's structured trace: an ordinary logger to which dynamo, AOTAutograd and inductor hand every graph
as text with the dtype and shape of each value. A mode or a tracer around the call would change what runs (dynamo skips
such frames and plain eager runs), so nothing is put around it.
"""

import logging
import re

import torch
import torch._dynamo
import torch._logging._internal

from ulpscope_adapter import Unsupported
from ulpscope_adapter.graph import Node, casts_of

_DTYPES = {"f64": "float64", "f32": "float32", "bf16": "bfloat16", "f16": "float16", "f8e4m3fn": "float8_e4m3fn",
           "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "b8": "bool"}
# Name of a graph in the trace -> stage of the report. Without gradients AOTAutograd calls its graph the inference graph.
_STAGES = {"aot_inference_graph": "aot_forward", "aot_forward_graph": "aot_forward", "aot_backward_graph": "aot_backward",
           "inductor_post_grad_graph": "post_grad"}
_VALUE = re.compile(r'(\w+): "(\w+)\[([\d, ]*)\][^"]*"(?: = torch\.ops\.(\w+)\.(\w+)[\w.]*\(([^\n]*?)\)(?:;|$))?', re.M)
_NAME = re.compile(r"[A-Za-z_]\w*")
_VIEWS = frozenset({"view", "reshape", "_unsafe_view", "expand", "permute", "t", "transpose", "squeeze", "unsqueeze",
                    "alias", "detach", "clone", "select", "slice"})


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
    """Raises Unsupported unless each of `regions` regions became exactly one graph, compiled as a whole by `backend`."""
    counters = torch._dynamo.utils.counters
    graphs = counters["stats"]["unique_graphs"]
    problems = []
    if graphs != regions:
        problems.append(f"dynamo captured {graphs} graphs for {regions} regions")
    if counters["graph_break"]:
        problems.append("graph breaks: " + "; ".join(str(reason).splitlines()[0] for reason in counters["graph_break"]))
    forward = len(recorder.texts("aot_inference_graph", "aot_forward_graph"))
    if forward < regions:
        problems.append(f"AOTAutograd made {forward} forward graphs for {regions} regions")
    if backend == "torch-inductor":
        code = recorder.texts("inductor_output_code")
        empty = sum(not kernels_of(text) for text in code)
        if len(code) < regions or empty:
            problems.append(f"inductor generated code for {len(code) - empty} of {max(len(code), regions)} graphs")
    if problems:
        raise Unsupported("not compiled: " + ", ".join(problems))


def kernels_of(code):
    """What a piece of inductor's output code calls: its own kernels and the operators that it leaves to ATen."""
    called = re.findall(r"^(cpp_\w+) = async_compile", code, re.M)
    called += ["extern " + name for name in re.findall(r"(?:extern_kernels\.|torch\.ops\.\w+\.)(\w+(?:\.\w+)*)\(", code)]
    return list(dict.fromkeys(called))


def recorded_casts(recorder):
    """The casts of every recorded graph, stage by stage."""
    casts = []
    for stage in ("aot_forward", "aot_backward", "post_grad"):
        for name, text in recorder.graphs:
            if _STAGES.get(name) == stage:
                casts += casts_of(nodes_of(text), stage)
    return casts


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
        nodes.append(Node(name=name, dtype=_DTYPES.get(dtype, dtype), shape=extents, op=f"{namespace}::{op}" if op else "",
                          inputs=inputs, cast_of=cast_of, view_of=view_of))
    return nodes
