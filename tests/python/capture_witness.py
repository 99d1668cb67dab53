"""Whether a program bears out the Reason for which capture() refuses it: facts of the program itself as it runs, not of its capture."""
import contextlib
import warnings

import torch
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode
from ulpscope import capturing
from ulpscope.refusals import Reason

_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
_DTYPES = {each for each in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
                             torch.uint8, torch.bool)}


class _Seen(TorchDispatchMode):
    """Records the dispatcher's calls: op by op, with their tensors."""

    def __init__(self):
        super().__init__()
        self.facts = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        state = torch.random.get_rng_state()
        found = function(*args, **(kwargs or {}))
        if not torch.equal(state, torch.random.get_rng_state()):
            self.facts.add(Reason.RANDOM)
        given = [each for each in tree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        made = [each for each in tree.tree_leaves(found) if isinstance(each, torch.Tensor)]
        self.facts |= _of_tensors([*given, *made])
        if function.namespace not in ("aten", "prim", "prims"):
            self.facts.add(Reason.FOREIGN_OP)
        if function._schema.is_mutable:
            self.facts.add(Reason.MUTATION)
        if set(_TAGS) & set(function.tags) and (function._schema.name != "aten::index" or any(each.dtype == torch.bool for each in given[1:])):
            self.facts.add(Reason.DATA_DEPENDENT)
        return found


def _of_tensors(tensors):
    facts = set()
    for each in tensors:
        if each.layout != torch.strided or each.is_nested or each.is_quantized:
            facts.add(Reason.LAYOUT)
        elif each.numel() == 0:
            facts.add(Reason.EMPTY)
        if each.is_complex():
            facts.add(Reason.COMPLEX)
        elif each.dtype not in _DTYPES:
            facts.add(Reason.DTYPE)
    return facts


def of_torch(program, reason):
    """'' where the program bears the reason out; else what it shows instead."""
    given = program.again()
    seen = _Seen()
    try:
        with seen, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results, _ = program.run(given)
    except Exception as error:
        return f"the reason {reason.name} cannot be seen: {type(error).__name__}: {error}"
    facts = seen.facts | _of_tensors([*given, *results])
    if all(any(_same_memory(each, other) for other in given) for each in results):
        facts.add(Reason.NOTHING_COMPUTED)
    if Reason.UNWRITTEN_MEMORY == reason and _unwritten(program):
        facts.add(reason)
    facts |= _of_graph(program)
    return "" if reason in facts else f"the reason {reason.name} is not true (seen: {', '.join(sorted(each.name for each in facts)) or 'nothing'})"


def _same_memory(one, other):
    return one.shape == other.shape and one.layout == other.layout == torch.strided and one.stride() == other.stride() \
        and one.dtype == other.dtype and one.data_ptr() == other.data_ptr()


def _unwritten(program):
    """Whether results hold what unwritten memory is filled with."""
    with contextlib.ExitStack() as stack:
        before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
        stack.callback(lambda: torch.use_deterministic_algorithms(before[0]))
        stack.callback(setattr, torch.utils.deterministic, "fill_uninitialized_memory", before[1])
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        results, _ = program.run(program.again())
    return any(bool(each.isnan().all()) if each.is_floating_point() or each.is_complex() else
               bool((each == (True if each.dtype == torch.bool else torch.iinfo(each.dtype).max)).all()) for each in results if each.numel())


def _of_graph(program):
    """Facts from the schemas of the ops that the program calls: lists and named tensors, which no step writes."""
    facts = set()
    try:
        exported = capturing._export(program, capturing.wrapper(program), program.tensors, {})
    except Exception:
        return facts
    for module in exported.graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else ():
            if any(isinstance(each, torch.Tensor) and any(isinstance(extent, torch.SymInt) for extent in each.shape)
                   for each in tree.tree_leaves(node.meta.get("val"))):
                facts.add(Reason.DATA_DEPENDENT)  # an extent that nobody knows before the values
            schema = getattr(node.target, "_schema", None)
            if schema is None:
                continue
            named = {each.name: each for each in schema.arguments}
            if any(isinstance(value, torch.fx.Node) and named[key].kwarg_only for key, value in node.kwargs.items() if key in named and key != "out"):
                facts.add(Reason.KEYWORD_TENSOR)
            lists = [value for value in node.args if isinstance(value, (list, tuple)) and any(isinstance(each, torch.fx.Node) for each in value)]
            if len(schema.returns) > 1 and any("List" in str(each.type) for each in schema.returns) or len(lists) > 1:
                facts.add(Reason.LIST_FORM)
            if any("Optional[Tensor]" in str(each.type) and "List" in str(each.type) for each in schema.arguments):
                facts.add(Reason.INDEX_FORM)
            if schema.is_mutable:
                facts.add(Reason.MUTATION)
    return facts
