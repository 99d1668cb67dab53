"""XLA's HLO text as Nodes: for every stack that XLA compiles, before (`hlo`) and after (`hlo_optimized`).

XLA may drop a rounding between the two, and the numbers follow the second. The texts carry source paths, so
only dtypes, shapes and op names are taken from them. An instruction is

    [ROOT] [%]name = TYPE opcode(operand, ...), attribute=..., ...

where TYPE is `f32[2,3]{1,0}` or a tuple of types in parentheses, and an operand may stand after its own type.
An instruction that calls a computation (a fusion, a reduction) encloses that computation's instructions.
"""

import re
from dataclasses import replace

from ulpscope_adapter import brackets
from ulpscope_adapter.dtypes import printed_names
from ulpscope_adapter.graph import Node
from ulpscope_adapter.tensor import element_bytes

# XLA's names of element types -> long names.
XLA_DTYPES = printed_names(lambda code: f"f8{code}", "s", "u", "pred")
# Kinds of opcodes, StableHLO's among them, that do not compute or do more than that.
KINDS = {
    **dict.fromkeys(("transpose", "reshape", "broadcast", "bitcast", "copy", "slice", "select", "tuple",
                     "get-tuple-element", "opt-barrier", "optimization_barrier"), "move"),
    "convert": "convert",
    "dot": "product",
    "dot_general": "product",
    "fusion": "fusion",
    "parameter": "input",
    "constant": "input"
}

_ASSIGNMENT = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = ")
_TYPE = re.compile(r"(\w+)\[([\d,<=]*)\]")
_OPCODE = re.compile(r"\s*([\w:-]+)")
_OPERAND = re.compile(r"(?:^|\s)(%[\w.-]+|[A-Za-z_][\w.-]*)$")
_INDEX = re.compile(r"\bindex=(\d+)")
_HEADER = re.compile(r"^\s*(?:ENTRY )?%?([\w.-]+)[^=]*\{\s*$")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations)=\{?(%?[\w.-]+(?:, ?%?[\w.-]+)*)")
_COMMENT = re.compile(r"/\*.*?\*/")  # every fifth member of a tuple has its index before it
_NUMBER = re.compile(r"parameter\((\d+)\)")


def hlo_nodes(text):
    """The instructions of every computation, in order; names are unique across computations."""
    nodes, computation, tuples = [], 0, {}
    numbers, callers, parameters = {}, {}, {
    }  # computation -> number; -> calling node; parameter's node -> place
    for line in _COMMENT.sub("", text).splitlines():
        header = _HEADER.match(line)
        if header:
            computation += 1
            numbers[header[1]] = computation
        parsed = _instruction(line)
        if parsed is None:
            continue
        name, types, op, operands, attributes = parsed
        name, inputs = f"{computation}:{name}", tuple(f"{computation}:{o}" for o in operands)
        inputs = _member(name, op, inputs, attributes, tuples)
        dtype, shape = types[0] if types else ("", ())
        for called in _CALLED.findall(attributes):
            for callee in called.split(","):
                callers.setdefault(callee.strip().lstrip("%"), (name, inputs, op))
        if op == "parameter":
            parameters[name] = int(_NUMBER.search(line)[1])
        nodes.append(
            Node(name=name, dtype=dtype, shape=shape, op=f"fusion {parsed[0]}" if op == "fusion" else op,
                 kind=KINDS.get(op, "compute"), inputs=inputs, cast_of=inputs[0] if op == "convert" and inputs else "",
                 more=tuple(types[1:])))
    calling = {numbers[callee]: caller for callee, caller in callers.items() if callee in numbers}
    return [_enclosed(node, calling.get(int(node.name.partition(":")[0])), parameters) for node in nodes]


def _enclosed(node, caller, parameters):
    """The node under the instruction that calls its computation; a fusion's parameter shows its operand."""
    if caller is None:
        return node
    name, operands, op = caller
    place = parameters.get(node.name)
    if op not in ("fusion", "call") or place is None or place >= len(operands):
        return replace(node, parent=name)
    return replace(node, kind="move", parent=name, inputs=(operands[place],))


def instructions(text):
    """(name, [(dtype, extents)] of its results, opcode, operand names, attributes) of every line that is one."""
    return [parsed for parsed in map(_instruction, _COMMENT.sub("", text).splitlines()) if parsed is not None]


def stage_note(text, casts, stage):
    """A line on the rounding at an HLO stage: the dtypes of its products, and its narrowing conversions."""
    products = [node.dtype for node in hlo_nodes(text) if node.op == "dot"]
    narrowing = sum(c.stage == stage and element_bytes(c.target) < element_bytes(c.source) for c in casts)
    stored = ", ".join(products) or "none"
    return f"{stage}: matrix products stored as {stored}; {narrowing} narrowing conversions"


def parameter_dtypes(text):
    """The dtypes of the entry computation's parameters, in their order, as XLA received them."""
    inside = None
    for line in text.splitlines():
        if line.startswith("ENTRY"):
            inside = {}
        elif inside is not None and (parsed := _instruction(line)) and parsed[2] == "parameter":
            inside[int(re.search(r"parameter\((\d+)\)", line)[1])] = parsed[1][0][0]
    return [inside[number] for number in sorted(inside)] if inside else []


def _instruction(line):
    """One of `instructions`, or None. The results of a tuple are its members, nested ones too."""
    match = _ASSIGNMENT.match(line)
    if not match:
        return None
    if line[match.end():match.end() + 1] == "(":
        end = brackets.closing(line, match.end()) + 1
        found = _TYPE.findall(line, match.end(), end)
    else:
        single = _TYPE.match(line, match.end())
        if not single:
            return None
        end, found = line.find(" ", single.end()), [single.groups()]
    types = [(XLA_DTYPES.get(dtype, dtype), brackets.extents(extents)) for dtype, extents in found]
    opcode = _OPCODE.match(line, end) if end > 0 else None
    if not opcode or line[opcode.end():opcode.end() + 1] != "(":
        return None
    closing = brackets.closing(line, opcode.end())
    operands = [
        m[1].lstrip("%")
        for part in brackets.split(line[opcode.end() + 1:closing])
        if (m := _OPERAND.search(part))
    ]
    return match[1], types, opcode[1], operands, line[closing + 1:]


def _member(name, op, inputs, attributes, tuples):
    """Inputs of an instruction; for one that takes a member of a known tuple, also through barriers, that member."""
    if op == "tuple":
        tuples[name] = inputs
    elif op == "opt-barrier" and inputs:
        tuples[name] = tuples.get(inputs[0], ())
    elif op == "get-tuple-element" and inputs:
        index, members = _INDEX.search(attributes), tuples.get(inputs[0], ())
        if index and int(index[1]) < len(members):
            return (members[int(index[1])],)
    return inputs
