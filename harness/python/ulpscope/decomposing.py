"""Translates ops outside the case language by PyTorch's own decompositions, if they give the op's bits.

A composite of the dispatcher (CompositeImplicitAutograd) is taken apart as the dispatcher itself does it, with
gradients too. Every other op has a kernel of its own; its decomposition in torch._decomp is used if it gives the
kernel's bits and strides on the values that the program has there. The result has to consist of words alone, or the
op stays a step `aten::NAME`.
"""

import functools
import operator

from ulpscope.binding import words
from ulpscope.refusals import CaptureError

_MOST_STEPS, _MOST_DEPTH = 48, 6  # a program is read by people


class Decompositions:
    """The decompositions of one program; `values()` gives every node's value, as the exported program computes it."""

    def __init__(self, values, backward):
        self._values, self._backward, self._known, self._depth = values, backward, None, 0
        self.taken = []  # the ops that were taken apart

    def steps(self, walk, node, env):
        """The result of the op's decomposition in `walk`, as a name, a number or a list of them; None if the op
        stays."""
        if self._depth > _MOST_DEPTH or not _is_plain(node) or not all(isinstance(env[each], str) for each in _tensor_nodes(node)):
            return None
        composite = is_composite(node.target)
        if not composite and (self._backward or _decomposition(node.target) is None):
            return None
        try:
            graph = _traced(node, composite)
        except Exception:  # a decomposition that has no way for these arguments
            return None
        if graph is None or not self._same(node, graph):
            return None
        return self._walked(walk, node, env, graph)

    def _walked(self, walk, node, env, graph):
        before = walk.mark()
        self._depth += 1
        try:
            placeholders = [each.name for each in graph.graph.nodes if each.op == "placeholder"]
            found = walk.graph(graph, dict(zip(placeholders, (env[each] for each in _tensor_nodes(node)))))
            made = walk.since(before)
            if any(step.op not in words.OPS for step in made) or len(made) > _MOST_STEPS:
                raise _NotWords
        except (CaptureError, _NotWords):
            walk.back_to(before)
            return None
        finally:
            self._depth -= 1
        several = isinstance(node.meta["val"], (list, tuple))
        if not several and made and made[-1].name == found[0]:
            made[-1].node = node
        self.taken.append(node.target)
        return found if several else found[0]

    def _same(self, node, graph):
        """Whether the graph gives the op's bits, in the op's layout, on the program's own values."""
        import torch
        from torch.utils import _pytree as tree

        from ulpscope.faithful import difference, one_thread, own, recorded
        if self._known is None:
            self._known = self._values()
        given = [self._known.get(each) for each in _tensor_nodes(node)]
        if any(not isinstance(each, torch.Tensor) for each in given):
            return False
        with torch.no_grad(), one_thread():
            tensors = own(given)
            alone = tree.tree_leaves(node.target(*_with(node.args, node, tensors), **_with(node.kwargs, node, tensors)))
            made, values = recorded(graph, own(given))
            self._known.update(values)
        other = tree.tree_leaves(made)
        return len(alone) == len(other) and all(isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor) and not difference(one, two)
                                              and one.stride() == two.stride() for one, two in zip(alone, other))


class _NotWords(Exception):
    pass


def _is_plain(node):
    """Whether the op reads tensors and numbers, writes into none and gives tensors alone, which a case has."""
    import torch
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    made = node.meta.get("val")
    made = made if isinstance(made, (list, tuple)) else [made]
    tensors = [*made, *(each.meta.get("val") for each in _tensor_nodes(node))]
    return bool(_tensor_nodes(node)) and all(isinstance(each, torch.Tensor) and each.layout == torch.strided and not each.is_complex()
                                             for each in tensors)


def is_composite(target):
    """Whether the dispatcher takes the op apart into others, with no kernel of its own."""
    import torch
    keys = torch._C.DispatchKey
    return target._can_decompose() and target.has_kernel_for_dispatch_key(keys.CompositeImplicitAutograd) \
        and not any(target.has_kernel_for_dispatch_key(each) for each in (keys.CPU, keys.CUDA, keys.AutogradCPU, keys.AutogradCUDA))


def _decomposition(target):
    from torch._decomp import core_aten_decompositions, decomposition_table
    found = core_aten_decompositions().get(target)
    return found if found is not None else decomposition_table.get(target)


@functools.cache
def _of_prims():
    """PyTorch's primitives as the ops that compute them."""
    import torch
    named = ((name, getattr(torch._prims, name, None)) for name in torch._prims.__all__)
    return {getattr(torch.ops.prims, name).default: each.impl_aten for name, each in named
            if hasattr(each, "impl_aten") and hasattr(torch.ops.prims, name)}


def _tensor_nodes(node):
    return list(dict.fromkeys(node.all_input_nodes))


def _with(arguments, node, given):
    import torch
    return torch.fx.node.map_arg(arguments, dict(zip(_tensor_nodes(node), given)).__getitem__)


def _traced(node, composite):
    """The decomposition as a graph over the op's tensors; None where there is none."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    fakes = [each.meta["val"] for each in _tensor_nodes(node)]
    function = node.target.decompose if composite else _decomposition(node.target)

    def f(*tensors):
        found = function(*_with(node.args, node, tensors), **_with(node.kwargs, node, tensors))
        return list(found) if isinstance(found, (list, tuple)) else [found]

    with torch.no_grad(), fakes[0].fake_mode:
        graph = make_fx(f, tracing_mode="real", decomposition_table=_of_prims())(*fakes)
    for each in graph.graph.nodes:
        if each.op == "call_function" and each.target is not operator.getitem:
            if not isinstance(each.target, torch._ops.OpOverload) or each.target is node.target:
                return None
            each.meta["stack_trace"] = node.meta.get("stack_trace")
    return graph
