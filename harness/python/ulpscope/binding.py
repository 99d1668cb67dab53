"""Turns the arguments of a node of torch.export's graph into the operands and attributes of a step.

`as_word` binds them to a word of the case language, `as_aten` to an op of the dispatcher. In a step `aten::NAME` the
operands are the tensors in the order of the schema, and every argument that an attribute names is left out of that
order. An argument that the graph leaves at its default is therefore written out if an operand follows it, so that a
reader of the step never has to guess an operand's place.
"""

import re

from ulpscope import places
from ulpscope.refusals import CaptureError, Reason

places.find_sdk()
from ulpscope_adapter import words  # noqa: E402


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]+)\n\s*([^\n]*)')
# Attributes and ops with different names in PyTorch's schema and in the case language.
_ATTRIBUTES = {"view": {"size": "shape"}, "expand": {"size": "shape"}, "norm": {"ord": "p"}}
_WORDS = {"cross_entropy_loss": "cross_entropy", "nll_loss_nd": "nll_loss", "binary_cross_entropy_with_logits": "bce_with_logits",
          "linalg_vector_norm": "norm"}
_ONE_DIM = ("logsumexp", )  # words of one dimension where PyTorch's op takes several
# Words of a batch: PyTorch's ops take one image or signal without it.
_BATCHED = re.compile(r"(?:conv|\w*_pool)(\d)d")
_REDUCTIONS = ("none", "mean", "sum")  # by the numbers that the schema has for them
# Arguments about the place and layout of memory; no value depends on them. One without a default is written out.
_PLACEMENT = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "implicit", "cudnn_enable", "cudnn_enabled")


class Arguments:
    """The arguments of a node by its schema: name -> value, values resolved."""

    def __init__(self, node, env):
        self.schema = node.target._schema
        self.node = node
        given = {}
        for argument, value in zip((a for a in self.schema.arguments if not a.kwarg_only), node.args):
            given[argument.name] = resolved(value, env)
        given.update({key: resolved(value, env) for key, value in node.kwargs.items()})
        self.given = given

    def get(self, name, default=None):
        return self.given.get(name, default)

    def first(self):
        return next(iter(self.given.values()))

    def is_said(self, argument):
        """Whether a step has to state this argument: it is given, it is not its default, and a value depends on it."""
        if argument.name not in self.given or (argument.name in _PLACEMENT and argument.has_default_value()):
            return False
        return not argument.has_default_value() or is_tensor(argument) or not _same(self.given[argument.name], argument.default_value)

    def pairs(self):
        """(argument, value) for each argument that a step has to state."""
        return [(each, self.given[each.name]) for each in self.schema.arguments if self.is_said(each)]


def _same(value, default):
    return type(value) is type(default) and value == default


def is_tensor(argument):
    return "Tensor" in str(argument.type)


def is_list(argument):
    """Whether a schema's argument, or result, is a list of tensors."""
    return str(argument.type) == "List[Tensor]"


def as_word(name, arguments, leave=()):
    """(op, operands, attributes) where the case language has this word for these arguments."""
    name = _WORDS.get(name, name)
    row = words.OPS.get(name)
    if row is None or row["kind"] in ("effect", "scope") or name.startswith("fsdp"):
        return None
    if ("result" in row["attributes"]) != (len(arguments.schema.returns) > 1):  # max of everything, of two
        return None
    batched = _BATCHED.fullmatch(name)
    if batched and arguments.node.args[0].meta["val"].dim() != int(batched[1]) + 2:
        return None
    of, attrs = [], {}
    optional_missing = False
    for argument, value in arguments.pairs():
        if argument.name in leave:
            continue
        key = _ATTRIBUTES.get(name, {}).get(argument.name, argument.name)
        if key == "reduction" and key in row["attributes"]:
            attrs[key] = _REDUCTIONS[value]
        elif key == "unbiased" and "correction" in row["attributes"]:
            attrs["correction"] = int(value)
        elif key == "padding" and isinstance(value, str):
            return None
        elif value is None and not is_tensor(argument):
            continue
        elif key == "dim" and key in row["attributes"] and _is_single(arguments.node):  # PyTorch takes a number for a list of one
            if key in row["required"]:
                return None
        elif key == "dim" and name in _ONE_DIM and isinstance(value, (list, tuple)) and len(value) != 1:
            return None
        elif key in row["attributes"] and not is_tensor(argument):
            attrs[key] = value[0] if key == "dim" and isinstance(value, (list, tuple)) and len(value) == 1 else attribute(value)
        elif is_tensor(argument) or "number" in str(argument.type):
            if value is None:
                optional_missing = True
                continue
            values = value if isinstance(value, (list, tuple)) else [value]
            if optional_missing or any(each is None for each in values):
                return None
            of += values
        else:
            return None
    _say_dimensions(arguments, attrs)
    fewest, most = row["operands"]
    if not fewest <= len(of) <= most or not set(row["required"]) <= set(attrs):
        return None
    return name, of, attrs


def _is_single(node):
    """Whether the node's first operand has no dimensions."""
    import torch
    value = node.args[0].meta.get("val") if node.args and isinstance(node.args[0], torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 0


def _say_dimensions(arguments, attrs):
    """The dimensions of a sum over all of them that keeps them: the dispatcher takes keepdim only together with
    dimensions."""
    listed = any(each.name == "dim" and "List[int]" in str(each.type) for each in arguments.schema.arguments)
    if listed and attrs.get("keepdim") and "dim" not in attrs:
        dims = list(range(arguments.node.args[0].meta["val"].dim()))
        attrs.pop("keepdim")
        attrs.update({"dim": dims[0] if len(dims) == 1 else dims, "keepdim": True} if dims else {})


def as_aten(node, arguments):
    """(op, operands, attributes) as the dispatcher has them: tensors, and numbers before them, by order, the rest by name."""
    name = _overload(node)
    of, attrs = [], {}
    left_out = {}  # arguments since the last operand that are left at their defaults
    counted = True  # numbers are operands until an argument is left out or named
    several = ""  # the list of tensors that the operands end with
    for argument in arguments.schema.arguments:
        if not arguments.is_said(argument):
            if not argument.kwarg_only and argument.has_default_value():
                left_out[argument.name] = arguments.get(argument.name, argument.default_value)
            continue
        value = arguments.given[argument.name]
        if value is None and is_tensor(argument) and argument.has_default_value():
            left_out[argument.name] = None
        elif is_tensor(argument) and value is not None and not _is_empty(value):
            if argument.kwarg_only:
                raise CaptureError(f"op {name}: the tensor {argument.name}= cannot be named in a case{at(node)}", Reason.KEYWORD_TENSOR)
            if several:
                raise CaptureError(f"op {name}: the tensors of {several} and {argument.name} stand side by side, and a step does not say "
                                   f"where a list of tensors ends{at(node)}", Reason.LIST_FORM)
            attrs.update({key: attribute(each) for key, each in left_out.items()})
            left_out.clear()
            of += _operands(name, argument, value, node)
            several = argument.name if is_list(argument) else ""
        elif "number" in str(argument.type) and counted and not left_out and not argument.kwarg_only and value is not None:
            of.append(attribute(value))
            several = ""
        else:
            counted = False
            attrs[argument.name] = attribute(value)
    return name, of, attrs


def _overload(node):
    """The op's name. If other overloads take the same arguments as the overload without a name, it is called
    NAME.default, as in PyTorch."""
    schema, packet = node.target._schema, node.target._overloadpacket
    if schema.overload_name:
        return f"{schema.name}.{schema.overload_name}"
    schemas = [getattr(packet, each)._schema for each in packet.overloads()]
    others = [each for each in schemas if each.overload_name and not any(argument.is_out for argument in each.arguments)]
    return schema.name + (".default" if others else "")


def _is_empty(value):
    return isinstance(value, (list, tuple)) and not value


def _operands(name, argument, value, node):
    """The operands of one argument: a tensor, a number in its place, or a list of them."""
    if "List[Optional[Tensor]]" in str(argument.type):
        raise CaptureError(f"op {name}: {argument.name} is a list of tensors that may have gaps, and a step has none{at(node)}", Reason.INDEX_FORM)
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [each if isinstance(each, str) else attribute(each) for each in values]


def attribute(value):
    """A value as a step holds it."""
    import torch
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, (list, tuple)):
        return [attribute(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    kind = Reason.COMPLEX if isinstance(value, complex) else Reason.DATA_DEPENDENT if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) \
        else Reason.VALUE_FORM
    raise CaptureError(f"{value!r} ({type(value).__name__}) cannot be written in a case", kind)


def dtype_name(dtype):
    name = str(dtype).removeprefix("torch.")
    if name not in words.WORDS["dtypes"]:
        raise CaptureError(f"dtype {name}: no case has it", Reason.COMPLEX if dtype.is_complex else Reason.DTYPE)
    return name


def dtype_of(node):
    return node.meta["val"].dtype


def resolved(value, env):
    import torch
    if isinstance(value, torch.fx.Node):
        return env[value]
    if isinstance(value, (list, tuple)):
        return type(value)(resolved(each, env) for each in value)
    return value


def where(node):
    """((file, line, text, function), ...) that a node comes from, outermost first."""
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return tuple((file, int(line), text.strip(), function.strip()) for file, line, function, text in found)


def module_of(node):
    """The path of the innermost nn.Module that a node is in; '' where that is the captured one itself, or none."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    return modules[-1][0].removeprefix("self.").removeprefix("self") if modules else ""


def at(node):
    """', at file:line: text' of the innermost line that a node comes from."""
    lines = where(node)
    return f", at {lines[-1][0]}:{lines[-1][1]}: {lines[-1][2]}" if lines else ""
