"""Translates a graph of torch.export into steps of a case, op by op.

An op whose name is a word of the case language (backends/PROTOCOL.md) becomes that word, if its arguments are that
word's operands and attributes. Ops that the language spells differently are in spelled.py, those that compute
nothing in _NOTHING. Every other op of the dispatcher is a step `aten::NAME`, which backends of the torch family run.
So a new word of the language is used as soon as it is in the table, without a change here.
"""

import operator

from ulpscope.binding import Arguments, CaptureError, as_aten, as_word, at, dtype_name, is_list, module_of, resolved, where, words
from ulpscope.case import Step
from ulpscope.refusals import Reason

_NOTHING = ("alias", "lift_fresh_copy", "lift_fresh", "positive", "resolve_conj", "resolve_neg")
_CHECKS = ("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range_for_size", "sym_constrain_range")
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
# Lists of a tensor's parts, by the dimension that is split if no argument gives it.
_PARTS = {**dict.fromkeys(("chunk", "split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "unsafe_chunk", "unsafe_split",
                           "tensor_split", "unbind", "unbind_copy", "vsplit"), 0), "hsplit": 1, "dsplit": 2}


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

    with_dropout = ("scaled_dot_product_attention", )  # ops that draw random numbers for a dropout alone

    def __init__(self, notes, backward=False, known=None, decompositions=None):
        self.steps, self.notes, self.backward, self.decompositions = [], notes, backward, decompositions
        self.known = known or {}  # the tensors of the case by name
        self._open = [self.steps]
        self._count = 0
        self.views_may_fail = False

    def graph(self, graph_module, arguments):
        """Walks a graph whose placeholders have the values `arguments` (by name); returns a name or a constant for each
        result."""
        import torch
        env = {}
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                env[node] = arguments[node.name]
            elif node.op == "get_attr":
                env[node] = _attribute(graph_module, node.target)
                if isinstance(env[node], torch.Tensor):
                    raise CaptureError(f"a tensor that is no input of the graph ({node.target})", Reason.VALUE_FORM)
            elif node.op == "output":
                return list(resolved(node.args[0], env))
            elif node.op == "call_function":
                env[node] = self._said(node, env)
            else:
                raise CaptureError(f"a node {node.op} in the graph{at(node)}", Reason.OWN_FAULT)
        return []

    def _said(self, node, env):
        """_call(); whatever goes wrong in it is an error that names the op and its line."""
        try:
            return self._call(node, env)
        except CaptureError as error:
            if not at(node) or at(node) in str(error):
                raise
            raise CaptureError(f"op {called(node)}: {error}{at(node)}", error.reason) from error
        except Exception as error:
            raise CaptureError(f"op {called(node)}: capture() has no way to say it; this is a fault of ulpscope's own "
                               f"({type(error).__name__}: {error}){at(node)}", Reason.OWN_FAULT) from error

    def _call(self, node, env):
        import torch

        from ulpscope.spelled import SPELLED
        target = node.target
        if target is operator.getitem:
            return self._part(node, env) if node.users else None
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._scope(node, env)
        if not isinstance(target, torch._ops.OpOverload):
            raise CaptureError(f"{getattr(target, '__name__', target)}: what it does with numbers depends on a tensor{at(node)}", Reason.DATA_DEPENDENT)
        name = target._schema.name.removeprefix("aten::")
        if "::" in name:
            raise CaptureError(f"op {name}: no op of PyTorch's own, and no word of the case language{at(node)}", Reason.FOREIGN_OP)
        if name in _CHECKS:
            return None
        if name in ("item", "_local_scalar_dense", "sym_size", "nonzero", "masked_select", "unique", "_unique2"):
            raise CaptureError(f"op {name}: what comes after depends on the values of a tensor, and a case is a straight line{at(node)}", Reason.DATA_DEPENDENT)
        arguments = Arguments(node, env)
        if name in _DROPOUTS and (not arguments.get("train", True) or arguments.get("p") == 0):
            return arguments.first()
        if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            raise CaptureError(f"op {name}: a recurrent network is one op with a loop inside, and the case language has no word for it; "
                               f"written out step by step, in the function, it can be captured{at(node)}", Reason.CONTROL_FLOW)
        if torch.Tag.nondeterministic_seeded in target.tags and not (name in self.with_dropout and arguments.get("dropout_p", 0) == 0):
            raise CaptureError(f"op {name}: random numbers; what a case computes must come out the same each time{at(node)}", Reason.RANDOM)
        if name in _NOTHING:
            return arguments.first()
        if name in _PARTS:
            return _Parts(lambda index: self._part_of(node, name, arguments, index))
        if name == "broadcast_tensors":
            return _Parts(lambda index: self._shown(node, arguments, index))
        if target._schema.is_mutable:
            return self._in_place(node, name, arguments, env)
        spelled = SPELLED.get(name)
        made = spelled(self, node, arguments) if spelled else None
        return made if made is not None else self.step(node, name, arguments, env=env)

    def mark(self):
        """The position at the end of the steps, for since() and back_to()."""
        return len(self._open[-1]), self._count, len(self.notes), self.views_may_fail

    def since(self, mark):
        return self._open[-1][mark[0]:]

    def back_to(self, mark):
        del self._open[-1][mark[0]:], self.notes[mark[2]:]
        self._count, self.views_may_fail = mark[1], mark[3]

    def _part(self, node, env):
        before = len(self._open[-1])
        parts = env[node.args[0]]
        if isinstance(parts, str):
            raise CaptureError(f"op {called(node.args[0])}: a list among its results, of which a step names none{at(node)}", Reason.LIST_FORM)
        found = parts[node.args[1]]
        for step in self._open[-1][before:]:
            step.where, step.position = where(node) or step.where, node.args[1]
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
            raise CaptureError(f"{name}: control flow that a straight line does not have{at(node)}", Reason.CONTROL_FLOW)
        body = env[rest[0]]
        inner = [each.name for each in body.graph.nodes if each.op == "placeholder"]
        self._open[-1].append(scope)
        self._open.append(scope.steps)
        outputs = self.graph(body, dict(zip(inner, (resolved(each, env) for each in rest[1:]))))
        self._open.pop()
        if not scope.steps:
            self._open[-1].remove(scope)
        return tuple(outputs)

    def add(self, node, op, of, attrs=None):
        """Appends a step; the name of its result."""
        self._count += 1
        step = Step(op, tuple(of), f"%{self._count}", dict(attrs or {}), where=where(node), node=node, module=module_of(node))
        self._open[-1].append(step)
        return step.name

    def step(self, node, name, arguments, beside=None, env=None):
        """The word of this name, else the words of its decomposition, else the op of the dispatcher; `beside`:
        attributes that the arguments leave out."""
        word = as_word(name, arguments)
        if word is None and env is not None and self.decompositions is not None and len(self._open) == 1:
            made = self.decompositions.steps(self, node, env)
            if made is not None:
                return made
        op, of, attrs = word or as_aten(node, arguments)
        attrs = {**attrs, **(beside or {})}
        if op == "view" and self.views_may_fail:
            op = "reshape"
        returns = arguments.schema.returns
        if len(returns) > 1 and any(is_list(each) for each in returns):
            raise CaptureError(f"op {name}: a list of tensors among several results, and a step names tensors alone{at(node)}", Reason.LIST_FORM)
        if len(returns) > 1 or (returns and is_list(returns[0])):
            return _Parts(lambda index: self.add(node, op, of, {**attrs, "result": index} if index else attrs))
        return self.add(node, op, of, attrs)

    def _part_of(self, node, name, arguments, index):
        value, rank = arguments.first(), node.args[0].meta["val"].dim()
        dim = arguments.get("dim", min(_PARTS[name], rank - 1))
        if name.startswith("unbind"):
            return self.add(node, "select", [value], {"dim": dim, "index": index})
        lengths = [part.shape[dim] for part in node.meta["val"]]
        attrs = {"dim": dim, "start": sum(lengths[:index]), "length": lengths[index]}
        return self.add(node, "narrow" if "narrow" in words.OPS else "aten::narrow", [value], attrs)

    def _shown(self, node, arguments, index):
        """One of broadcast_tensors: the tensor itself where it has the shape of all."""
        tensor, shape = arguments.first()[index], list(node.meta["val"][index].shape)
        if list(node.args[0][index].meta["val"].shape) == shape:
            return tensor
        return self.add(node, "expand", [tensor], {"shape": shape})

    def _in_place(self, node, name, arguments, env):
        """`x.add_(1)` as a new value, if nothing else reads x's memory; else unchanged."""
        import torch

        from ulpscope.spelled import SPELLED
        if "out" in node.kwargs:
            return self._into(node, name, arguments, env)
        target = node.args[0] if node.args else None
        packet = getattr(torch.ops.aten, name[:-1], None) if name.endswith("_") else None
        same = getattr(packet, node.target._overloadname, None) if packet is not None else None
        if same is None or not isinstance(target, torch.fx.Node):
            if not name.endswith("_"):
                raise CaptureError(f"op {name}: it writes into what exists{at(node)}", Reason.MUTATION)
            op, of, attrs = as_aten(node, arguments)
            return self.add(node, op, of, attrs)
        if is_view(target) or any(is_view(user) for user in target.users):
            op, of, attrs = as_aten(node, arguments)
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
        """`mm(a, b, out=buffer)`; later readers of the buffer read the result."""
        row, buffer = words.OPS.get(name), node.kwargs["out"]
        inner = as_word(name, arguments, leave=("out", )) if row is not None and row["out"] else None
        if inner is None or not hasattr(buffer, "users") or any(is_view(user) for user in buffer.users):
            raise CaptureError(f"op {name}: it writes into what exists{at(node)}", Reason.MUTATION)
        made = self.add(node, *inner)
        self._open[-1][-1].out = env[buffer]
        env[buffer] = made
        return made


def called(node):
    """The name of what a node calls; of a part, that of the op that it is a part of."""
    if node.target is operator.getitem:
        return called(node.args[0])
    schema = getattr(node.target, "_schema", None)
    return schema.name.removeprefix("aten::") if schema is not None else getattr(node.target, "__name__", str(node.target))


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


