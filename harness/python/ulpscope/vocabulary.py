"""From a graph of torch.export to steps of a case, op by op.

An op whose name is a word of the case language (backends/PROTOCOL.md) becomes that word, if its arguments are that word's operands
and attributes. What the language writes otherwise stands in _SPELLED, what computes nothing in _NOTHING. Every other op of the
dispatcher is a step `aten::NAME`, which backends of the torch family run. So a new word of the language is used as soon as it is
in the table, and nothing has to be said here.
"""

import operator
import re

from ulpscope import places
from ulpscope.case import Step

places.find_sdk()
from ulpscope_adapter import words  # noqa: E402


class CaptureError(ValueError):
    """A case cannot say this; the text names the op, and the file and line it comes from."""


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]+)\n\s*([^\n]*)')
_NOTHING = ("alias", "lift_fresh_copy", "lift_fresh", "positive", "resolve_conj", "resolve_neg", "view_as_real_copy")
_CHECKS = ("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range_for_size", "sym_constrain_range")
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
_PARTS = ("chunk", "split", "split_with_sizes", "unsafe_chunk", "unsafe_split", "tensor_split", "unbind")
# What PyTorch's schema and the case language call by two names: attributes, ops.
_ATTRIBUTES = {"view": {"size": "shape"}, "expand": {"size": "shape"}, "norm": {"ord": "p"}}
_WORDS = {"cross_entropy_loss": "cross_entropy", "nll_loss_nd": "nll_loss", "binary_cross_entropy_with_logits": "bce_with_logits",
          "linalg_vector_norm": "norm"}
_REDUCTIONS = ("none", "mean", "sum")  # by the numbers that the schema has for them
# Arguments that say where or how memory lies; no value depends on them.
_PLACEMENT = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "implicit", "cudnn_enable", "cudnn_enabled")


def every(steps):
    """Every step but scopes, in program order."""
    for step in steps:
        if step.steps:
            yield from every(step.steps)
        else:
            yield step


def needed(steps, results):
    """The steps without those that nothing comes of; steps that write into what exists stay."""
    wanted = set(results)

    def keep(steps):
        kept = []
        for step in reversed(steps):
            if step.op in words.ops("scope"):
                step.steps = keep(step.steps)
                if step.steps:
                    kept.append(step)
            elif step.name in wanted or step.op.partition(".")[0].endswith("_"):
                wanted.update(each for each in step.of if isinstance(each, str))
                kept.append(step)
        return kept[::-1]

    return keep(steps)


class _Parts:
    """The results of an op that gives several; `make(i)` makes the step of one of them."""

    def __init__(self, make):
        self._make, self._made = make, {}

    def __getitem__(self, index):
        if index not in self._made:
            self._made[index] = self._make(index)
        return self._made[index]


class Walk:
    """Steps from a graph. Values are called `%NUMBER` until names.py has named them."""

    def __init__(self, notes):
        self.steps, self.notes = [], notes
        self._open = [self.steps]
        self._count = 0
        self._views_may_fail = False

    def graph(self, graph_module, arguments):
        """Walks a graph whose placeholders stand for `arguments` (by name); what it returns, a name or a constant each."""
        import torch
        env = {}
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                env[node] = arguments[node.name]
            elif node.op == "get_attr":
                env[node] = _attribute(graph_module, node.target)
                if isinstance(env[node], torch.Tensor):
                    raise CaptureError(f"a tensor that is no input of the graph ({node.target})")
            elif node.op == "output":
                return list(_resolved(node.args[0], env))
            elif node.op == "call_function":
                env[node] = self._call(node, env)
            else:
                raise CaptureError(f"a node {node.op} in the graph{_at(node)}")
        return []

    def _call(self, node, env):
        import torch
        target = node.target
        if target is operator.getitem:
            return self._part(node, env)
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._scope(node, env)
        if not isinstance(target, torch._ops.OpOverload):
            raise CaptureError(f"{getattr(target, '__name__', target)}: what it does with numbers depends on a tensor{_at(node)}")
        name = target._schema.name.removeprefix("aten::")
        if "::" in name:
            raise CaptureError(f"op {name}: no op of PyTorch's own, and no word of the case language{_at(node)}")
        if name in _CHECKS:
            return None
        if name in ("item", "_local_scalar_dense", "sym_size", "nonzero", "masked_select", "unique", "_unique2"):
            raise CaptureError(f"op {name}: what comes after depends on the values of a tensor, and a case is a straight line{_at(node)}")
        arguments = _Arguments(node, env)
        if name in _DROPOUTS and (not arguments.get("train", True) or arguments.get("p") == 0):
            return arguments.first()
        if torch.Tag.nondeterministic_seeded in target.tags and not (name == "scaled_dot_product_attention"
                                                                     and arguments.get("dropout_p", 0) == 0):
            raise CaptureError(f"op {name}: random numbers; what a case computes must come out the same each time{_at(node)}")
        if name in _NOTHING:
            return arguments.first()
        if name in _PARTS:
            return _Parts(lambda index: self._part_of(node, name, arguments, index))
        if target._schema.is_mutable:
            return self._in_place(node, name, arguments, env)
        spelled = _SPELLED.get(name)
        made = spelled(self, node, arguments) if spelled else None
        return made if made is not None else self._step(node, name, arguments)

    def _part(self, node, env):
        before = len(self._open[-1])
        found = env[node.args[0]][node.args[1]]
        for step in self._open[-1][before:]:
            step.where, step.position = _where(node) or step.where, node.args[1]
        return found

    def _scope(self, node, env):
        name = node.target.name() if callable(getattr(node.target, "name", None)) else str(node.target)
        if name == "wrap_with_autocast":
            _, dtype, enabled, _ = node.args[:4]  # the cache is off while a graph is taken: no word of the author's
            attrs = {"dtype": _dtype(dtype)} if enabled and dtype is not None else {}
            attrs |= {} if enabled else {"enabled": False}
            scope, rest = Step("autocast", attrs=attrs), node.args[4:]
        elif name == "wrap_with_set_grad_enabled":
            scope, rest = Step("enable_grad" if node.args[0] else "no_grad"), node.args[1:]
        else:
            raise CaptureError(f"{name}: control flow that a straight line does not have{_at(node)}")
        body = env[rest[0]]
        inner = [each.name for each in body.graph.nodes if each.op == "placeholder"]
        self._open[-1].append(scope)
        self._open.append(scope.steps)
        outputs = self.graph(body, dict(zip(inner, (_resolved(each, env) for each in rest[1:]))))
        self._open.pop()
        if not scope.steps:
            self._open[-1].remove(scope)
        return tuple(outputs)

    def add(self, node, op, of, attrs=None):
        """Appends a step; the name of its result."""
        self._count += 1
        step = Step(op, tuple(of), f"%{self._count}", dict(attrs or {}), where=_where(node), node=node)
        self._open[-1].append(step)
        return step.name

    def _step(self, node, name, arguments):
        """The word of this name, else the op of the dispatcher."""
        said = _as_word(name, arguments)
        if said is None:
            said = _as_aten(node, arguments)
            if len(arguments.schema.returns) > 1:
                return _Parts(lambda index: self._one_of(node, said, index))
        op, of, attrs = said
        if op == "view" and self._views_may_fail:
            op = "reshape"
        return self.add(node, op, of, attrs)

    def _one_of(self, node, said, index):
        op, of, attrs = said
        if index == 0:
            return self.add(node, op, of, attrs)
        base = op.removeprefix("aten::")
        if base in ("max.dim", "min.dim") and index == 1:
            return self.add(node, "aten::arg" + base[:3], of, attrs)
        if base in ("sort", "sort.stable") and index == 1:
            return self.add(node, "aten::argsort.stable", of, {"stable": True, **attrs})
        if base.startswith("var_mean.") and index == 1:
            dims = {key: value for key, value in attrs.items() if key in ("dim", "keepdim") and value is not None}
            return self.add(node, "mean", of, dims)
        raise CaptureError(f"op {op}: its result number {index + 1} has no name in a case, only the first has{_at(node)}")

    def _part_of(self, node, name, arguments, index):
        value = arguments.first()
        dim = arguments.get("dim", 0)
        if name == "unbind":
            return self.add(node, "select", [value], {"dim": dim, "index": index})
        lengths = [part.shape[dim] for part in node.meta["val"]]
        attrs = {"dim": dim, "start": sum(lengths[:index]), "length": lengths[index]}
        return self.add(node, "narrow" if "narrow" in words.OPS else "aten::narrow", [value], attrs)

    def _in_place(self, node, name, arguments, env):
        """`x.add_(1)` as a new value, where nobody else looks at x's memory; else as it stands."""
        import torch
        target = node.args[0] if node.args else None
        packet = getattr(torch.ops.aten, name[:-1], None) if name.endswith("_") else None
        same = getattr(packet, node.target._overloadname, None) if packet is not None else None
        if same is None or not isinstance(target, torch.fx.Node):
            if not name.endswith("_"):
                raise CaptureError(f"op {name}: it writes into what exists{_at(node)}")
            op, of, attrs = _as_aten(node, arguments)
            return self.add(node, op, of, attrs)
        if _is_view(target) or any(_is_view(user) for user in target.users):
            op, of, attrs = _as_aten(node, arguments)
            return self.add(node, op, of, attrs)
        arguments.schema = same._schema
        spelled = _SPELLED.get(name[:-1])
        made = spelled(self, node, arguments) if spelled else None
        env[target] = made if made is not None else self._step(node, name[:-1], arguments)
        return env[target]


class _Arguments:
    """The arguments of a node by its schema: (schema argument, value), values resolved."""

    def __init__(self, node, env):
        self.schema = node.target._schema
        self.overload = node.target._overloadname
        self.node = node
        given = {}
        for argument, value in zip((a for a in self.schema.arguments if not a.kwarg_only), node.args):
            given[argument.name] = _resolved(value, env)
        given.update({key: _resolved(value, env) for key, value in node.kwargs.items()})
        self.given = given

    def get(self, name, default=None):
        return self.given.get(name, default)

    def first(self):
        return next(iter(self.given.values()))

    def pairs(self):
        """(argument, value) of what is given and is not its default."""
        for argument in self.schema.arguments:
            if argument.name not in self.given or argument.name in _PLACEMENT:
                continue
            value = self.given[argument.name]
            if argument.has_default_value() and not _is_tensor(argument) and _same(value, argument.default_value):
                continue
            yield argument, value


def _same(value, default):
    return type(value) is type(default) and value == default


def _is_tensor(argument):
    return "Tensor" in str(argument.type)


def _as_word(name, arguments):
    """(op, operands, attributes) where the case language has this word for these arguments."""
    name = _WORDS.get(name, name)
    row = words.OPS.get(name)
    if row is None or row["kind"] in ("effect", "scope") or name.startswith("fsdp"):
        return None
    of, attrs = [], {}
    optional_missing = False
    for argument, value in arguments.pairs():
        key = _ATTRIBUTES.get(name, {}).get(argument.name, argument.name)
        if key == "reduction" and key in row["attributes"]:
            attrs[key] = _REDUCTIONS[value]
        elif key == "unbiased" and "correction" in row["attributes"]:
            attrs["correction"] = int(value)
        elif key == "padding" and isinstance(value, str):
            return None
        elif value is None and not _is_tensor(argument):
            continue
        elif key in row["attributes"] and not _is_tensor(argument):
            attrs[key] = _attribute_value(value)
        elif _is_tensor(argument) or "number" in str(argument.type):
            if value is None:
                optional_missing = True
                continue
            values = value if isinstance(value, (list, tuple)) else [value]
            if optional_missing or any(each is None for each in values):
                return None
            of += values
        else:
            return None
    fewest, most = row["operands"]
    if not fewest <= len(of) <= most:
        return None
    return name, of, attrs


def _as_aten(node, arguments):
    """(op, operands, attributes) as the dispatcher has them: tensors, and numbers beside them, by order, the rest by name."""
    schema = node.target._schema
    name = schema.name + ("." + node.target._overloadname if node.target._overloadname not in ("", "default") else "")
    of, attrs = [], {}
    in_order = True  # numbers stand among the operands as long as no argument was left out
    for argument, value in arguments.pairs():
        if _is_tensor(argument):
            if value is None:
                if not argument.has_default_value() or _tensor_follows(schema, argument, arguments):
                    attrs[argument.name] = None
                continue
            if argument.kwarg_only:
                raise CaptureError(f"op {name}: the tensor {argument.name}= cannot be named in a case{_at(node)}")
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            if any(not isinstance(each, (str, int, float)) for each in values):
                raise CaptureError(f"op {name}: a list with gaps at {argument.name}{_at(node)}")
            of += values
        elif "number" in str(argument.type) and in_order and not argument.kwarg_only and value is not None:
            of.append(value)
        else:
            in_order = False
            attrs[argument.name] = _attribute_value(value)
    return name, of, attrs


def _tensor_follows(schema, argument, arguments):
    later = schema.arguments[[each.name for each in schema.arguments].index(argument.name) + 1:]
    return any(_is_tensor(each) and arguments.get(each.name) is not None for each in later)


def _attribute_value(value):
    import torch
    if isinstance(value, torch.dtype):
        return _dtype(value)
    if isinstance(value, (list, tuple)):
        return [_attribute_value(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(f"{value!r} ({type(value).__name__}) cannot be written in a case")


def _dtype(dtype):
    name = str(dtype).removeprefix("torch.")
    if name not in words.WORDS["dtypes"]:
        raise CaptureError(f"dtype {name}: no case has it")
    return name


def _resolved(value, env):
    import torch
    if isinstance(value, torch.fx.Node):
        return env[value]
    if isinstance(value, (list, tuple)):
        return type(value)(_resolved(each, env) for each in value)
    return value


def _attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _is_view(node):
    """Whether the node's result shares memory with an operand, without writing to it."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.target is operator.getitem
    return any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns)


def _where(node):
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return tuple((file, int(line), text.strip(), function.strip()) for file, line, function, text in found)


def _at(node):
    where = _where(node)
    return f", at {where[-1][0]}:{where[-1][1]}: {where[-1][2]}" if where else ""


def _dtype_of(node):
    return node.meta["val"].dtype


def _cast(walk, node, arguments):
    """`to`, in all its forms: a conversion, or nothing."""
    operand = next(each for each in node.args)
    if _dtype_of(operand) == _dtype_of(node):
        return arguments.first()
    return walk.add(node, "cast", [arguments.first()], {"dtype": _dtype(_dtype_of(node))})


def _contiguous(walk, node, arguments):
    """A copy where there is something to put in order. A copy of the case keeps its operand's layout, so view() may not follow."""
    operand = node.args[0]
    if operand.meta["val"].is_contiguous():
        return arguments.first()
    walk._views_may_fail = True
    return walk.add(node, "clone", [arguments.first()])


def _power(walk, node, arguments):
    """Powers that PyTorch itself computes as products and roots, as those, while the language has no `pow`."""
    exponent = arguments.get("exponent")
    if "pow" in words.OPS or isinstance(exponent, str):
        return None
    base = arguments.first()
    if exponent == 2:
        return walk.add(node, "mul", [base, base])
    if exponent in (0.5, -0.5) and _dtype_of(node.args[0]).is_floating_point:
        return walk.add(node, "sqrt" if exponent == 0.5 else "rsqrt", [base])
    return None


def _square(walk, node, arguments):
    return None if "square" in words.OPS else walk.add(node, "mul", [arguments.first(), arguments.first()])


def _swapped(walk, node, arguments):
    """rsub: other - self."""
    if arguments.get("alpha", 1) != 1 or "rsub" in words.OPS:
        return None
    if not isinstance(arguments.get("other"), str):
        return None  # a number first: the op of the dispatcher says it as it is
    return walk.add(node, "sub", [arguments.get("other"), arguments.first()])


def _made_of_nothing(walk, node, arguments):
    """full and its like, as the language's constants."""
    import torch
    val = node.meta["val"]
    name = node.target._schema.name.removeprefix("aten::")
    if any(extent < 1 for extent in val.shape):
        return None
    attrs = {"shape": [int(extent) for extent in val.shape], "dtype": _dtype(val.dtype)}
    word = {"zeros": "zeros", "zeros_like": "zeros", "new_zeros": "zeros", "ones": "ones", "ones_like": "ones", "new_ones": "ones"}
    if name in word:
        return walk.add(node, word[name], [], attrs)
    value = arguments.get("fill_value", arguments.get("s"))
    if not isinstance(value, (bool, int, float)) or isinstance(value, torch.SymInt):
        return None
    return walk.add(node, "full", [], {**attrs, "value": value})


def _one_dim(walk, node, arguments):
    """transpose's other names."""
    name = node.target._schema.name.removeprefix("aten::")
    rank = node.args[0].meta["val"].dim()
    if name in words.OPS or rank < 2:
        return arguments.first() if rank < 2 and name not in words.OPS else None
    return walk.add(node, "transpose", [arguments.first()], {"dim0": -2, "dim1": -1})


def _flatten(walk, node, arguments):
    """flatten and unflatten and view_as, as reshape: the shape is known."""
    name = node.target._schema.name.removeprefix("aten::")
    if name in words.OPS:
        return None
    return walk.add(node, "reshape", [arguments.first()], {"shape": [int(extent) for extent in node.meta["val"].shape]})


def _slice(walk, node, arguments):
    """A slice of everything is its operand; an end past the last element is the last element."""
    value = node.args[0].meta["val"]
    dim, start = arguments.get("dim", 0), arguments.get("start", 0) or 0
    step = arguments.get("step", 1)
    extent = value.shape[dim]
    start = max(start + extent, 0) if start < 0 else start
    length = node.meta["val"].shape[dim]
    if length == extent and step == 1:
        return arguments.first()
    if step != 1 and "slice" in words.OPS:
        attrs = {"dim": dim, "start": start, "end": min(start + length * step, extent), "step": step}
        return walk.add(node, "slice", [arguments.first()], attrs)
    if step == 1:
        op = "narrow" if "narrow" in words.OPS else "aten::narrow"
        return walk.add(node, op, [arguments.first()], {"dim": dim, "start": start, "length": length})
    return None


def _attention(walk, node, arguments):
    """The word where only a scale is asked for."""
    if any(arguments.get(key) for key in ("attn_mask", "is_causal", "enable_gqa")) or arguments.get("dropout_p", 0):
        return None
    scale = arguments.get("scale")
    of = [arguments.get(key) for key in ("query", "key", "value")]
    return walk.add(node, "scaled_dot_product_attention", of, {} if scale is None else {"scale": scale})


def _counted(walk, node, arguments):
    """arange, with the dtype that came out."""
    if "arange" not in words.OPS or not isinstance(arguments.get("end"), (int, float)):
        return None
    attrs = {key: arguments.get(key) for key in ("start", "end", "step") if arguments.get(key) is not None}
    return walk.add(node, "arange", [], {**attrs, "dtype": _dtype(_dtype_of(node))})


def _one_hot(walk, node, arguments):
    if "one_hot" not in words.OPS:
        return None
    return walk.add(node, "one_hot", [arguments.first()], {"num_classes": int(node.meta["val"].shape[-1])})


def _batch_norm(walk, node, arguments):
    """In eval mode, by the means and variances that it kept."""
    kept = [arguments.get(key) for key in ("running_mean", "running_var", "weight", "bias")]
    if "batch_norm" not in words.OPS or arguments.get("training") or None in kept[:2] or (kept[2] is None and kept[3] is not None):
        return None
    eps = arguments.get("eps")
    of = [arguments.get("input"), *(each for each in kept if each is not None)]
    return walk.add(node, "batch_norm", of, {} if eps is None else {"eps": eps})


def _logic(walk, node, arguments):
    """~, & and | of booleans, as the words for them."""
    word = node.target._schema.name.removeprefix("aten::").removeprefix("__").removesuffix("__").replace("bitwise", "logical")
    word = {"and": "logical_and", "or": "logical_or"}.get(word, word)
    operands = [each for each in arguments.given.values()]
    if word not in words.OPS or any(str(each.meta["val"].dtype) != "torch.bool" for each in node.all_input_nodes):
        return None
    return walk.add(node, word, operands) if all(isinstance(each, str) for each in operands) else None


_SPELLED = {
    "arange": _counted, "one_hot": _one_hot, "batch_norm": _batch_norm, "bitwise_not": _logic, "bitwise_and": _logic,
    "bitwise_or": _logic, "__and__": _logic, "__or__": _logic,
    "to": _cast, "_to_copy": _cast, "type_as": _cast, "contiguous": _contiguous, "pow": _power, "square": _square, "rsub": _swapped,
    "zeros": _made_of_nothing, "ones": _made_of_nothing, "full": _made_of_nothing, "zeros_like": _made_of_nothing,
    "ones_like": _made_of_nothing, "full_like": _made_of_nothing, "new_zeros": _made_of_nothing, "new_ones": _made_of_nothing,
    "new_full": _made_of_nothing, "scalar_tensor": _made_of_nothing, "mT": _one_dim, "numpy_T": _one_dim, "matrix_H": _one_dim,
    "flatten": _flatten, "unflatten": _flatten, "view_as": _flatten, "reshape_as": _flatten, "slice": _slice,
    "scaled_dot_product_attention": _attention,
}
