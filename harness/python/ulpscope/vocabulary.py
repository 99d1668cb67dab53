"""From a graph of torch.export to steps of a case, op by op.

An op whose name is a word of the case language (backends/PROTOCOL.md) becomes that word, if its arguments are that word's operands
and attributes. What the language writes otherwise stands in spelled.py, what computes nothing in _NOTHING. Every other op of the
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
                wanted.update(each for each in (*step.of, step.out) if isinstance(each, str))
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

    def __init__(self, notes, backward=False, known=None):
        self.steps, self.notes, self.backward = [], notes, backward
        self.known = known or {}  # the tensors of the case by name
        self._open = [self.steps]
        self._count = 0
        self.views_may_fail = False

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
                raise CaptureError(f"a node {node.op} in the graph{at(node)}")
        return []

    def _call(self, node, env):
        import torch

        from ulpscope.spelled import SPELLED
        target = node.target
        if target is operator.getitem:
            return self._part(node, env) if node.users else None
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._scope(node, env)
        if not isinstance(target, torch._ops.OpOverload):
            raise CaptureError(f"{getattr(target, '__name__', target)}: what it does with numbers depends on a tensor{at(node)}")
        name = target._schema.name.removeprefix("aten::")
        if "::" in name:
            raise CaptureError(f"op {name}: no op of PyTorch's own, and no word of the case language{at(node)}")
        if name in _CHECKS:
            return None
        if name in ("item", "_local_scalar_dense", "sym_size", "nonzero", "masked_select", "unique", "_unique2"):
            raise CaptureError(f"op {name}: what comes after depends on the values of a tensor, and a case is a straight line{at(node)}")
        arguments = _Arguments(node, env)
        if name in _DROPOUTS and (not arguments.get("train", True) or arguments.get("p") == 0):
            return arguments.first()
        if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            raise CaptureError(f"op {name}: a recurrent network is one op with a loop inside, and the case language has no word for it; "
                               f"written out step by step, in the function, it can be captured{at(node)}")
        if torch.Tag.nondeterministic_seeded in target.tags and not (name == "scaled_dot_product_attention"
                                                                     and arguments.get("dropout_p", 0) == 0):
            raise CaptureError(f"op {name}: random numbers; what a case computes must come out the same each time{at(node)}")
        if name in _NOTHING:
            return arguments.first()
        if name in _PARTS:
            return _Parts(lambda index: self._part_of(node, name, arguments, index))
        if target._schema.is_mutable:
            return self._in_place(node, name, arguments, env)
        spelled = SPELLED.get(name)
        made = spelled(self, node, arguments) if spelled else None
        return made if made is not None else self.step(node, name, arguments)

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
            attrs = {"dtype": dtype_name(dtype)} if enabled and dtype is not None else {}
            attrs |= {} if enabled else {"enabled": False}
            scope, rest = Step("autocast", attrs=attrs), node.args[4:]
        elif name == "wrap_with_set_grad_enabled":
            scope, rest = Step("enable_grad" if node.args[0] else "no_grad"), node.args[1:]
        else:
            raise CaptureError(f"{name}: control flow that a straight line does not have{at(node)}")
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

    def step(self, node, name, arguments, beside=None):
        """The word of this name, else the op of the dispatcher; `beside`: attributes that the arguments leave out."""
        said = _as_word(name, arguments) or _as_aten(node, arguments)
        op, of, attrs = said
        attrs = {**attrs, **(beside or {})}
        if op == "view" and self.views_may_fail:
            op = "reshape"
        if len(arguments.schema.returns) > 1:
            return _Parts(lambda index: self.add(node, op, of, {**attrs, "result": index} if index else attrs))
        return self.add(node, op, of, attrs)

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

        from ulpscope.spelled import SPELLED
        if "out" in node.kwargs:
            return self._into(node, name, arguments, env)
        target = node.args[0] if node.args else None
        packet = getattr(torch.ops.aten, name[:-1], None) if name.endswith("_") else None
        same = getattr(packet, node.target._overloadname, None) if packet is not None else None
        if same is None or not isinstance(target, torch.fx.Node):
            if not name.endswith("_"):
                raise CaptureError(f"op {name}: it writes into what exists{at(node)}")
            op, of, attrs = _as_aten(node, arguments)
            return self.add(node, op, of, attrs)
        if is_view(target) or any(is_view(user) for user in target.users):
            op, of, attrs = _as_aten(node, arguments)
            return self.add(node, op, of, attrs)
        note = "what the function writes into its arguments is a value of its own here."
        if target.op == "placeholder" and note not in self.notes:
            self.notes.append(note)
        arguments.schema = same._schema
        spelled = SPELLED.get(name[:-1])
        made = spelled(self, node, arguments) if spelled else None
        env[target] = made if made is not None else self.step(node, name[:-1], arguments)
        return env[target]


    def _into(self, node, name, arguments, env):
        """`mm(a, b, out=buffer)`; whoever reads the buffer afterwards reads the result."""
        row, buffer = words.OPS.get(name), node.kwargs["out"]
        inner = _as_word(name, arguments, leave=("out", )) if row is not None and row["out"] else None
        if inner is None or not hasattr(buffer, "users") or any(is_view(user) for user in buffer.users):
            raise CaptureError(f"op {name}: it writes into what exists{at(node)}")
        made = self.add(node, *inner)
        self._open[-1][-1].out = env[buffer]
        env[buffer] = made
        return made


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


def _as_word(name, arguments, leave=()):
    """(op, operands, attributes) where the case language has this word for these arguments."""
    name = _WORDS.get(name, name)
    row = words.OPS.get(name)
    if row is None or row["kind"] in ("effect", "scope") or name.startswith("fsdp"):
        return None
    if ("result" in row["attributes"]) != (len(arguments.schema.returns) > 1):  # max of everything, of two
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
        elif value is None and not _is_tensor(argument):
            continue
        elif key in row["attributes"] and not _is_tensor(argument):
            attrs[key] = value[0] if key == "dim" and isinstance(value, (list, tuple)) and len(value) == 1 else _attribute_value(value)
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
    of, attrs = [], _telling_apart(node, arguments)
    in_order = True  # numbers stand among the operands as long as no argument was left out
    for argument, value in arguments.pairs():
        if _is_tensor(argument):
            if value is None:
                if not argument.has_default_value() or _tensor_follows(schema, argument, arguments):
                    attrs[argument.name] = None
                continue
            if argument.kwarg_only:
                raise CaptureError(f"op {name}: the tensor {argument.name}= cannot be named in a case{at(node)}")
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            if any(not isinstance(each, (str, int, float)) for each in values):
                raise CaptureError(f"op {name}: a list with gaps at {argument.name}{at(node)}")
            of += values
        elif "number" in str(argument.type) and in_order and not argument.kwarg_only and value is not None:
            of.append(value)
        else:
            in_order = False
            attrs[argument.name] = _attribute_value(value)
    return name, of, attrs


def _telling_apart(node, arguments):
    """The plain overload has no name of its own in a step: arguments that another overload takes of another type stand there always."""
    schema = node.target._schema
    if schema.overload_name:
        return {}
    packet = node.target._overloadpacket
    others = [getattr(packet, each)._schema for each in packet.overloads() if each != "default"]
    types = {argument.name: str(argument.type) for other in others if not any(each.name == "out" for each in other.arguments)
             for argument in other.arguments}
    told = {}
    for argument in schema.arguments:
        differs = types.get(argument.name, str(argument.type)) != str(argument.type)
        if differs and argument.has_default_value() and not _is_tensor(argument) and argument.name not in _PLACEMENT:
            told[argument.name] = _attribute_value(arguments.get(argument.name, argument.default_value))
    return told


def _tensor_follows(schema, argument, arguments):
    later = schema.arguments[[each.name for each in schema.arguments].index(argument.name) + 1:]
    return any(_is_tensor(each) and arguments.get(each.name) is not None for each in later)


def _attribute_value(value):
    import torch
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, (list, tuple)):
        return [_attribute_value(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(f"{value!r} ({type(value).__name__}) cannot be written in a case")


def dtype_name(dtype):
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


def is_view(node):
    """Whether the node's result shares memory with an operand, without writing to it."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.target is operator.getitem
    return any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns)


def _where(node):
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return tuple((file, int(line), text.strip(), function.strip()) for file, line, function, text in found)


def at(node):
    where = _where(node)
    return f", at {where[-1][0]}:{where[-1][1]}: {where[-1][2]}" if where else ""


def dtype_of(node):
    return node.meta["val"].dtype
