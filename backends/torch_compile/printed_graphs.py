"""FX graphs as dynamo, AOTAutograd and inductor print them, read into Nodes.

A graph is printed as a Python class whose forward() names, line by line, every value with its dtype and
shape:

    mm: "bf16[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1);  arg0_1 = None

Inputs stand in the signature (of a joint graph: in the first lines of the body) as `name: "bf16[8, 16]..."`;
an operation with several results has no annotation, and its results are taken out as `getitem: "..." =
name[0]`.
"""

import re

from ulpscope_adapter import brackets
from ulpscope_adapter.dtypes import printed_names
from ulpscope_adapter.graph import Node
from ulpscope_torch import op_kinds

DTYPES = printed_names(lambda code: f"f8{code}", "i", "u", "b8", unsigned_bits=(8, ))
_INPUT = re.compile(r'(\w+): "(\w+)\[([\d, ]*)\][^"]*"(?!\s*=)')
_LINE = re.compile(r'^\s+(\w+)(?:: "(\w+)\[([\d, ]*)\][^"]*")? = (.*)$')
_CALL = re.compile(r"([A-Za-z_][\w.]*)\((.*)\)")
_ITEM = re.compile(r"(\w+)\[(\d+)\]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")


def nodes_of(text):
    """The values of a printed graph in their order, inputs included."""
    nodes, same, several = {}, {}, {}  # same: a name for another; several: what has more than one result
    for line in text.splitlines():
        line = line.partition(" # ")[0] if ' # ' in line else line
        match = _LINE.match(line)
        if match is None:
            for name, dtype, shape in _INPUT.findall(line):
                nodes[name] = Node(name=name, dtype=DTYPES.get(dtype, dtype), shape=brackets.extents(shape), kind="input")
            continue
        name, dtype, shape, expression = match.groups()
        expression = _STRING.sub("", expression.partition(";  ")[0])
        if expression in nodes or expression in same:
            same[name] = same.get(expression, expression)
            continue
        node = _node(name, DTYPES.get(dtype, dtype or ""), brackets.extents(shape or ""), expression, nodes, same,
                     several)
        if node is not None:
            nodes[name] = node
    return [_with_results(node, several.get(node.name)) for node in nodes.values()]


def _node(name, dtype, shape, expression, nodes, same, several):
    item = _ITEM.fullmatch(expression)
    if item:
        several.setdefault(item[1], []).append((dtype, shape))
        return Node(name=name, dtype=dtype, shape=shape, op=f"getitem {item[2]}", inputs=(item[1],))
    call = _CALL.match(expression)
    if call is None:
        return None
    function, arguments = call.groups()
    read = [same.get(word, word) for word in _NAME.findall(arguments)]
    owner, _, method = function.rpartition(".")
    if same.get(owner, owner) in nodes:  # a method of a value
        read.insert(0, same.get(owner, owner))
        owner = "Tensor"
    inputs = tuple(dict.fromkeys(word for word in read if word in nodes))
    op = _op_name(owner, method)
    kind = op_kinds.kind_of(op)
    cast_of = ""
    if op.endswith(("::copy", "::copy_")) and len(inputs) > 1:  # (destination, source)
        kind, cast_of = "convert", inputs[1]
    elif kind == "convert" and inputs:
        cast_of = inputs[0]
    return Node(name=name, dtype=dtype, shape=shape, op=op, kind=kind, inputs=inputs, cast_of=cast_of)


def _op_name(owner, method):
    """torch.ops.aten.mm.default -> aten::mm; torch._C._nn.linear -> linear; a method -> Tensor::to."""
    if owner == "Tensor":
        return "Tensor::" + method
    parts = owner.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) > 3:
        return f"{parts[2]}::{parts[3]}"
    return method or owner


def _with_results(node, results):
    if node.dtype or not results:
        return node
    return Node(name=node.name, dtype="", op=node.op, kind=node.kind, inputs=node.inputs, more=tuple(results))
