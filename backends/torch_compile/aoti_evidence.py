"""Evidence that AOTInductor's compilation leaves behind: the graphs, and the package's own C++ code."""

import re

import evidence
import kernel_source
from ulpscope_adapter import Trace
from ulpscope_adapter.graph import Node
from ulpscope_torch import op_kinds

_SHIM = re.compile(r"\baoti_torch_(?:cpu|cuda)_(\w+)\(")
_KERNEL = re.compile(r'extern "C"\s+(?:__attribute__\S+\s+)?(void\s+(\w+)\(.*?^\})', re.M | re.S)
_CODE = {"inductor_aot_wrapper_code": "wrapper", "inductor_aot_kernel_code": "kernel"}


class PackageRecorder(evidence.Recorder):
    """The graphs of a compilation, and the C++ sources that it wrote."""
    def __init__(self):
        super().__init__()
        self._sources = []  # (wrapper or kernel, text)

    def clear(self, trace):
        super().clear(trace)
        self._sources.clear()

    def _hear(self, name, metadata_fn=dict, *, payload_fn=lambda: None, **rest):
        if name == "graph_dump" and metadata_fn().get("name") in _CODE:
            self._sources.append((_CODE[metadata_fn()["name"]], payload_fn() or ""))
        return super()._hear(name, metadata_fn, payload_fn=payload_fn, **rest)

    def trace(self):
        """(nodes, casts, notes) of what was compiled since `clear`."""
        trace = Trace()
        notes = evidence.add_trace(self, regions=0, trace=trace)  # an export asks dynamo for nothing
        nodes, problems = self._generated()
        trace.add("generated", nodes, "package")
        called = dict.fromkeys(node.op for node in nodes if not node.parent)
        notes.append("generated: " + ", ".join(called))
        notes += [evidence.unused_note(node, nodes) for node in nodes if node.op == "unused convert"]
        return trace.nodes, trace.casts, list(dict.fromkeys(notes + problems))

    def _generated(self):
        """The operators that the wrapper leaves to ATen, and the kernels with their dataflow below them."""
        nodes, problems = [], []
        for kind, text in self._sources:
            if kind == "wrapper":
                nodes += [Node(name=f"c{i}", dtype="", op=f"extern {n}", kind=op_kinds.kind_of(n.removesuffix("_out"))) for i, n in enumerate(_SHIM.findall(text))]
                continue
            for source, name in _KERNEL.findall(text):
                kernel = _kernel_node(source, name, f"k{len(nodes)}")
                nodes.append(kernel)
                inside, problem = kernel_source.nodes_or_problem(source, name, kernel.name)
                nodes += inside
                problems += problem
        return nodes, problems


def _kernel_node(source, op, name):
    """One kernel; its parameters show dtypes, and no shapes: those stand in the loops inside."""
    parameters = kernel_source.parameters(source)
    written = [(dtype, ()) for dtype, _, direction in parameters if direction == "out"]
    reads = tuple((dtype, ()) for dtype, parameter, direction in parameters
                  if direction == "in" or parameter.startswith("in_out"))
    return Node(name=name, dtype=written[0][0] if written else "", op=op, kind="kernel", reads=reads, more=tuple(written[1:]))
