"""A call of the dispatcher as a case: its operands are the tensors of the case, and its recorded results are judged.

The call is written as a graph of one node, which vocabulary.Walk translates into the case language. So every op that
capture() knows is known here, and PyTorch's decompositions are used if they give the recorded bits.
"""

import dataclasses
import keyword
import operator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as tree

from ulpscope import adapters, capturing, decomposing, names, vocabulary
from ulpscope.binding import words
from ulpscope.case import Case, Input, short_fill, every
from ulpscope.dispatched import ATTENTION, KERNELS
from ulpscope.refusals import CaptureError, Reason


class _Walk(vocabulary.Walk):
    """Knows the dispatcher's ops below autograd, in addition to those of capture()."""

    with_dropout = (*vocabulary.Walk.with_dropout, *ATTENTION)

    def step(self, node, name, arguments, beside=None, env=None):
        made = KERNELS[name](self, node, arguments) if name in KERNELS else None
        return made if made is not None else super().step(node, name, arguments, beside, env)


def case_of(call, name):
    """(the Case of `call`, {observed value: the tensor that the call gave}).

    The second is empty if the call only passes an operand on. Raises CaptureError if no case can express the call;
    Reason.NO_WORD if the op has no exact reference.
    """
    call = _by_numbers(_functional(call))
    if not any(isinstance(each, torch.Tensor) for each in call.results):
        mutates = call.func._schema.is_mutable
        raise CaptureError(f"op {call.op}: " + ("it writes into what exists" if mutates else "it gives no tensor"),
                           Reason.MUTATION if mutates else Reason.DATA_DEPENDENT if call.tensors() else Reason.NOTHING_COMPUTED)
    for each in _tensors([*call.tensors(), *call.results]):
        if other := capturing.unlike(each):
            raise CaptureError(f"op {call.op}: {other[0]}", other[1])
    graph, given = _graph(call)
    known = {each: tensor for each, tensor in zip((node.name for node in given), given.values())}
    walk = _Walk([], False, known, decomposing.Decompositions(lambda: dict(given), False))
    with torch.no_grad():
        made = walk.graph(graph, {each: each for each in known})
    results = {value: tensor for value, tensor in zip(made, _tensors(call.results)) if isinstance(value, str) and value not in known}
    handed = {value: tensor for value, tensor in zip(made, _tensors(call.results)) if value in known}
    for value, tensor in handed.items():
        if adapters.to_wire(known[value]).data != adapters.to_wire(tensor).data:
            raise CaptureError(f"op {call.op}: it hands an operand on, and gives other bits", Reason.UNFAITHFUL)
    steps = vocabulary.needed(walk.steps, list(results))
    _refuse(call, steps)
    for each in (*results.values(), *call.tensors()):
        if each.numel() == 0:
            raise CaptureError(f"op {call.op}: a tensor without elements ({list(each.shape)})", Reason.EMPTY)
    return _case(call, name, steps, known, results)


def _refuse(call, steps):
    """Raises CaptureError if the steps have no exact reference, or read memory that was never written."""
    ops = [step.op for step in every(steps)]
    if any(capturing.is_unwritten(each) for each in ops):
        raise CaptureError(f"op {call.op}: memory that nothing has written yet", Reason.UNWRITTEN_MEMORY)
    if any(each not in words.OPS for each in ops):
        raise CaptureError(f"op {call.op}: the case language has no word for it", Reason.NO_WORD)


def _case(call, name, steps, known, results):
    new = {value: names.unique("result", taken) for taken in [set(known)] for value in results}
    taken = {*known, *new.values()}
    for step in every(steps):
        if step.name and step.name not in new:
            new[step.name] = names.unique(step.op.removeprefix("aten::").partition(".")[0], taken)
    names.replace(steps, new)
    used = {operand for step in every(steps) for operand in (*step.of, step.out)}
    inputs = [Input(each, tensor if _keeps_apart(tensor) else tensor.contiguous()) for each, tensor in known.items() if each in used]
    for each in inputs:
        each.beside = not short_fill(each)
    case = Case(name=name, about=f"One call of {call.op}, with the operands that it had.", inputs=inputs, steps=steps,
                observe=[new[value] for value in results], source=call.place())
    observed = {new[value]: tensor for value, tensor in results.items()}
    demand(case, call.tensors(), observed)
    return case, observed


def demand(case, operands, results):
    """Demands of a case of one step that it sums in float32 or better, in float64 where its tensors are all of it, and rounds once."""
    floating = {value: tensor for value, tensor in results.items() if tensor.dtype.is_floating_point}
    steps = list(every(case.steps))
    # A contract on attention tests every combination of roundings inside, which takes minutes; its class alone takes a
    # second.
    if not floating or len(steps) != 1 or steps[0].op == "scaled_dot_product_attention":
        return
    wide = all(each.dtype == torch.float64 for each in (*operands, *floating.values()) if each.dtype.is_floating_point)
    acc = ["float64", "compensated", "exact"] if wide else "at_least_float32"
    case.contract = {"status": "de_facto", "accept": {value: {"acc": acc, "mid": "none"} for value in floating}}


def _keeps_apart(tensor):
    """Whether no two elements share memory; a case has no others, but those that one number is shown as."""
    reach = 0
    for stride, extent in sorted((stride, extent) for stride, extent in zip(tensor.stride(), tensor.shape) if extent > 1 and stride):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _tensors(values):
    return [each for each in values if isinstance(each, torch.Tensor)]


def _functional(call):
    """A call that writes its result into `out=` as one that gives it."""
    schema = call.func._schema
    out = [each.name for each in schema.arguments if each.is_out]
    if not out:
        return call
    packet = call.func._overloadpacket
    wanted = [(each.name, str(each.type)) for each in schema.arguments if not each.is_out]
    found = [getattr(packet, each) for each in packet.overloads()]
    found = [each for each in found if [(one.name, str(one.type)) for one in each._schema.arguments] == wanted]
    if not found:
        raise CaptureError(f"op {call.op}: it writes into what exists", Reason.MUTATION)
    kwargs = {key: value for key, value in call.kwargs.items() if key not in out}
    changed = dataclasses.replace(call, func=found[0], kwargs=kwargs)
    made = tree.tree_leaves(found[0](*call.args, **kwargs))
    if [each.dtype for each in _tensors(made)] != [each.dtype for each in _tensors(call.results)]:
        raise CaptureError(f"op {call.op}: it writes into a tensor of another dtype", Reason.MUTATION)
    return changed


def _by_numbers(call):
    """A call that picks or writes elements by a mask, rewritten with their indices, which are known here."""
    name = call.func._schema.name
    if name in ("aten::index_put_", "aten::index_put"):
        value, indices, values = call.args[:3]
        mask = indices[0]
        if len(indices) == 1 and mask is not None and mask.dtype == torch.bool and mask.shape == value.shape and values.numel() == 1 \
                and values.dtype == value.dtype and not any(call.args[3:]) and not call.kwargs:
            return dataclasses.replace(call, func=torch.ops.aten.where.self, args=(mask, values.reshape(()), value))
        return call
    if name == "aten::masked_select":
        value, mask = torch.broadcast_tensors(*call.args[:2])
        call = dataclasses.replace(call, func=torch.ops.aten.index.Tensor, args=(value.contiguous(), [mask]), kwargs={})
    elif name != "aten::index":
        return call
    indices = []
    for each in call.args[1]:
        masks = isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8)
        indices += [one.contiguous() for one in each.nonzero().unbind(1)] if masks else [each]
    return dataclasses.replace(call, args=(call.args[0], indices))


def _graph(call):
    """(a graph of one node that calls the op, its placeholders with their tensors)."""
    fake, graph, given, taken = FakeTensorMode(), torch.fx.Graph(), {}, set()
    schema = call.func._schema

    def seen(tensor):
        return fake.from_tensor(tensor.detach())

    def placed(value, label):
        if isinstance(value, torch.Tensor):
            label = "x" if label == "self" else f"{label}_" if keyword.iskeyword(label) else label
            node = graph.placeholder(names.unique(capturing.word(label), taken))
            node.meta["val"] = seen(value)
            given[node] = value
            return node
        if isinstance(value, (list, tuple)):
            return type(value)(placed(each, f"{label}_{number}") for number, each in enumerate(value))
        return value

    positional = [each.name for each in schema.arguments if not each.kwarg_only]
    args = tuple(placed(value, label) for value, label in zip(call.args, positional))
    kwargs = {key: placed(value, key) for key, value in call.kwargs.items()}
    node = graph.call_function(call.func, args, kwargs)
    results = [seen(each) if isinstance(each, torch.Tensor) else each for each in call.results]
    several = len(schema.returns) > 1 or any(str(each.type) == "List[Tensor]" for each in schema.returns)
    _say_where(node, call)
    if not several:
        node.meta["val"] = results[0]
        graph.output((node, ))
        return torch.fx.GraphModule(torch.nn.Module(), graph), given
    node.meta["val"] = tuple(results)
    parts = []
    for number, each in enumerate(results):
        if isinstance(each, torch.Tensor):
            parts.append(graph.call_function(operator.getitem, (node, number)))
            parts[-1].meta["val"] = each
            _say_where(parts[-1], call)
    graph.output(tuple(parts))
    return torch.fx.GraphModule(torch.nn.Module(), graph), given


def _say_where(node, call):
    """Stores the line and the module of a node for capture() to find."""
    node.meta["stack_trace"] = "".join(f'  File "{file}", line {line}, in {function}\n    {text}\n' for file, line, text, function in call.where)
    if call.module:
        node.meta["nn_module_stack"] = {"": (call.module, "")}
