"""Inductor's generated code, read into Nodes: the calls in their order, and inside each kernel its dataflow.

The code is Python: kernels as C++ sources in strings (`NAME = async_compile.cpp_pybinding([...],
r'''...''')`), and a function call(args) of one statement a line that allocates buffers, calls kernels and
what is left to ATen. The dtypes and shapes of its arguments stand in get_args(), those of its buffers in the
allocations.
"""

import re
from dataclasses import dataclass, replace

import kernel_source
from ulpscope_adapter import brackets
from ulpscope_adapter.graph import Node
from ulpscope_torch import op_kinds

_KERNEL = re.compile(r"^(\w+) = async_compile\.cpp\w*\(\s*\[[^\]]*\],\s*r?'''(.*?)'''", re.M | re.S)
_ANY_KERNEL = re.compile(r"^(\w+) = async_compile\.(?!wait)\w+\(", re.M)
_DIRECTION = re.compile(r"AOT ID: \['\d+_(\w+)'\]")
_ARGUMENT = re.compile(r"^\s+(\w+) = rand_strided\((\([^)]*\)),.*dtype=torch\.(\w+)\)", re.M)
_BODY = re.compile(
    r"^( *)def call\((?:self, )?args\):\n(.*?)^\1(?!\s)\S|^( *)def call\((?:self, )?args\):\n(.*)",
    re.M | re.S)
_ALLOCATE = re.compile(
    r"(\w+) = empty_strided\w*\((\([^)]*\)), \([^)]*\),\s*(?:device='?\w+'?, )?(?:dtype=)?torch\.(\w+)\)")
_VIEW = re.compile(r"(\w+) = reinterpret_tensor\((\w+), (\([^)]*\)),")
_SHAPE = re.compile(r"assert_size_stride\((\w+), (\([^)]*\))")
# Several at once, as PyTorch 2.15 writes them: assert_size_stride_grouped((a, b), ((2, 3), (4,)), ...)
_SHAPES = re.compile(r"assert_size_stride_grouped\(\(([\w, ]+)\), \((\(.*?\))\), \(\(")
_SAME = re.compile(r"(\w+) = (\w+)(?:\[\d+\])?$")
_EXTERN = re.compile(
    r"(?:(\w+) = )?((?:extern_kernels|torch\.ops\.\w+|aten|inductor_ops|_quantized)\.[\w.]+)\((.*)\)$")
_CALL = re.compile(r"(\w+)(?:\.run)?\((.*)\)$")
_OPERAND = re.compile(r"(?:reinterpret_tensor\((\w+), (\([^)]*\))|(\w+))")


@dataclass(frozen=True)
class _Buffer:
    dtype: str
    shape: tuple
    made: str = ""  # name of the node that wrote it last


def calls_of(code):
    """The calls in a piece of generated code: its own kernels, then the operators that it leaves to ATen."""
    called = _ANY_KERNEL.findall(code)
    called += [
        "extern " + match[2].removeprefix("extern_kernels.").removeprefix("torch.ops.")
        for match in map(_EXTERN.match, _lines(code))
        if match
    ]
    return list(dict.fromkeys(called))


def direction_of(code):
    """forward, backward or inference, as the code names itself."""
    match = _DIRECTION.search(code)
    return match[1] if match else ""


def nodes_of(code, prefix):
    """(nodes, problems): the calls, below each its kernel's dataflow; names begin with `prefix`."""
    reader = _Reader(dict(_KERNEL.findall(code)), prefix)
    for name, shape, dtype in _ARGUMENT.findall(code):
        reader.input(name, dtype, brackets.extents(shape))
    for line in _lines(code):
        try:
            reader.line(line)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # Another version's spelling costs its evidence, never the result.
            reader.problems.append(f"generated: not understood ({type(error).__name__}): {line[:80]}")
    return reader.nodes, reader.problems


def _lines(code):
    """The statements of call(args), one each; a call that goes over several lines is joined."""
    match = _BODY.search(code)
    if match is None:
        return
    pending = ""
    for line in (match[2] or match[4]).splitlines():
        pending += line.partition(" # ")[0].strip()
        if pending and pending.count("(") == pending.count(")"):
            yield from (statement.strip() for statement in pending.split("; ") if statement.strip())
            pending = ""


class _Reader:
    """Goes through call(args), keeping what is known of every buffer."""
    def __init__(self, kernels, prefix):
        self.nodes = []
        self.problems = []
        self._kernels = kernels
        self._prefix = prefix
        self._buffers = {}

    def input(self, name, dtype, shape):
        node = self._add("input", "input", dtype=dtype, shape=shape)
        self._buffers[name] = _Buffer(dtype, shape, node.name)

    def line(self, text):
        allocated, view, same = _ALLOCATE.match(text), _VIEW.match(text), _SAME.match(text)
        shape, grouped = _SHAPE.match(text), _SHAPES.match(text)
        extern, call = _EXTERN.match(text), _CALL.match(text)
        if allocated:
            self._buffers[allocated[1]] = _Buffer(allocated[3], brackets.extents(allocated[2]))
        elif view and view[2] in self._buffers:
            old = self._buffers[view[2]]
            self._buffers[view[1]] = _Buffer(old.dtype, brackets.extents(view[3]), old.made)
        elif same and same[2] in self._buffers:
            self._buffers[same[1]] = self._buffers[same[2]]
        elif grouped:
            for name, extents in zip(brackets.split(grouped[1]), brackets.split(grouped[2]), strict=True):
                self._told(name, extents)
        elif shape:
            self._told(*shape.groups())
        elif extern:
            self._extern(*extern.groups())
        elif call and call[1] in self._kernels:
            self._kernel(call[1], brackets.split(call[2]))

    def _extern(self, result, function, arguments):
        """A call into ATen: its results are the buffer of out=, or a name of unknown dtype."""
        read, out = [], None
        for argument in brackets.split(arguments):
            if argument.startswith("out="):
                out = argument.removeprefix("out=")
            else:
                read += self._operands(argument)
        written = self._buffers.get(out) if out else None
        kind = op_kinds.kind_of(function.removesuffix(".default").rpartition(".")[2])
        node = self._add(function, kind, *([written.dtype, written.shape] if written else []), read=read)
        for name in (result, out):
            if name:
                self._buffers[name] = _Buffer(node.dtype, node.shape, node.name)

    def _told(self, name, shape):
        """The shape of a buffer that a call of unknown results made."""
        buffer = self._buffers.get(name)
        if buffer and not buffer.dtype:
            self._buffers[name] = replace(buffer, shape=brackets.extents(shape))

    def _known(self, name, dtype):
        """The dtype of such a buffer, as a kernel reads it; its node is completed."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.dtype:
            return
        self._buffers[name] = replace(buffer, dtype=dtype)
        for place, node in enumerate(self.nodes):
            if node.name == buffer.made and not node.dtype:
                self.nodes[place] = replace(node, dtype=dtype, shape=buffer.shape)

    def _kernel(self, name, arguments):
        parameters = kernel_source.parameters(self._kernels[name])
        read, written, makers = [], [], {}
        for (dtype, parameter, direction), argument in zip(parameters, arguments):
            self._known(_name_in(argument), dtype)
            found = self._operands(argument)
            makers[parameter] = found[0].made if found else ""
            if direction == "in" or parameter.startswith("in_out"):
                read += found
            if direction == "out" and found:
                written.append((argument, _Buffer(dtype, found[0].shape)))
        results = [(buffer.dtype, buffer.shape) for _, buffer in written]
        first = results[0] if results else ("", ())
        node = self._add(name, "kernel", *first, read=read, more=tuple(results[1:]))
        for argument, buffer in written:
            target = _name_in(argument)
            shape = self._buffers[target].shape if target in self._buffers else buffer.shape
            self._buffers[target] = _Buffer(buffer.dtype, shape, node.name)
        nodes, problems = kernel_source.nodes_or_problem(self._kernels[name], name, node.name, makers)
        self.nodes += nodes
        self.problems += problems

    def _operands(self, argument):
        """The buffers that an argument names, as the argument shows them."""
        found = []
        for match in _OPERAND.finditer(argument):
            buffer = self._buffers.get(match[1] or match[3])
            if buffer:
                found.append(_Buffer(buffer.dtype, brackets.extents(match[2]), buffer.made) if match[2] else buffer)
        return found

    def _add(self, op, kind, dtype="", shape=(), read=(), more=()):
        node = Node(name=f"{self._prefix}{len(self.nodes)}", dtype=dtype, shape=shape, op=op, kind=kind, reads=tuple(
            (buffer.dtype, buffer.shape) for buffer in read if buffer.dtype),
                    after=tuple(buffer.made for buffer in read if buffer.made), more=more)
        self.nodes.append(node)
        return node


def _name_in(argument):
    """The buffer that an argument of a kernel is, or a view of."""
    match = _OPERAND.match(argument)
    return (match[1] or match[3]) if match else ""
