"""A real eager run, op by op: every call of the dispatcher below autograd, with its real operands.

A TorchDispatchMode sees each call. Calls of one op with operands of the same dtypes, shapes and layouts and the same
other arguments are one Group. A group keeps a copy of one call: the one whose result is furthest from the same op in
float64. That distance only selects the call to judge; its conformance is judged from exact values.
"""

import contextlib
import hashlib
import linecache
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode

from ulpscope import adapters
from ulpscope.decomposing import is_composite

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Ops that only query, or pass the same memory on.
_ASKS = ("sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "is_same_size", "_has_compatible_shallow_copy_type")


@dataclass
class Call:
    """One call of `func`, called `op`. `args` and `kwargs` hold copies of its tensors, as they were before the op ran; `results` its results,
    a list.

    where    ((file, line, text, function), ...) of the Python that made the call, outermost first
    module   the path of the innermost nn.Module; '' for none
    inside   the custom op whose Python implementation made the call; '' for none
    error    the largest distance from the op in float64, relative to the size of the results; None if float64 is no
             evidence
    rms      the root mean square of that distance, relative to that of the result
    """

    func: object
    op: str
    args: tuple
    kwargs: dict
    results: list
    where: tuple = ()
    module: str = ""
    inside: str = ""
    error: float | None = None
    rms: float | None = None

    def tensors(self):
        """The tensors among the operands, in order."""
        return [each for each in tree.tree_leaves((self.args, self.kwargs)) if isinstance(each, torch.Tensor)]

    def place(self):
        """'module file.py:12', as far as that is known."""
        return place_of(self.module, self.where)


@dataclass
class Group:
    """Calls of one op, alike but for the values of their tensors.

    key     what they have in common: (the op, the custom op that they are inside of, described(operands), described(others))
    kind    "op"; "view": it rearranges memory and computes nothing; "opened": a custom op whose own calls are recorded
    kept    the call that is kept, the one furthest from float64; None if all are too large
    places  {(module, file, line): calls}
    unlike  why no call can be kept, for tensors that hold no values here; '' else
    """

    func: object
    op: str
    key: tuple
    kind: str = "op"
    calls: int = 0
    kept: Call | None = None
    places: Counter = field(default_factory=Counter)
    unlike: str = ""
    too_large: int = 0  # elements of a call that was not kept for its size


def name_of(func):
    """'aten::mm', 'aten::sum.dim_IntList'; the overload `default` is left out."""
    schema = func._schema
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


class Recorder(TorchDispatchMode):
    """`with Recorder(names) as recorder: f(...)`; then `recorder.groups`, in the order of their first calls.

    names          {id of an nn.Module: its path}
    most_elements  calls whose tensors have more elements together are counted and not kept
    trail          after the run, where `digests` is True: [(op, place, digests of the tensors of its operands, of its results)] of each call
    opaque         {an op with functions inside, none of whose ops are recorded: calls}, after the run
    screen         seconds that float64 may take, for all calls together; the calls after that are not compared with it
    """

    def __init__(self, names=None, most_elements=1 << 24, screen=60.0, digests=False):
        super().__init__()
        self.groups, self.names, self.most_elements = {}, names or {}, most_elements
        self.opaque, self.trail = Counter(), [] if digests else None
        self._modules, self._hooks, self._inside, self._left, self._depth = [], [], [], screen, 0

    def __enter__(self):
        from torch.nn.modules import module
        self._depth += 1
        if self._depth == 1:
            self._hooks = [module.register_module_forward_pre_hook(lambda each, _: self._modules.append(each)),
                           module.register_module_forward_hook(lambda *_: self._modules.pop() and None, always_call=True)]
        return super().__enter__()

    def __exit__(self, *error):
        self._depth -= 1
        if self._depth == 0:
            for each in self._hooks:
                each.remove()
        return super().__exit__(*error)

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._control_flow(func, args, kwargs)
        if func._schema.name.rpartition("::")[2] in _ASKS or func.namespace == "profiler":
            return func(*args, **kwargs)
        if is_composite(func):  # a mode sees it only where autograd is off: what it calls is what computes
            with self:
                found = func.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        group = self._group(func, args, kwargs)
        group.calls += 1
        where = _frames()
        module = self._module()
        group.places[(module, *(where[-1][:2] if where else ("", 0)))] += 1
        if group.kind == "view":
            return func(*args, **kwargs)
        large = self._is_large(group, args, kwargs) or bool(group.unlike)
        operands = digests_of((args, kwargs)) if self.trail is not None and not group.unlike else ()
        before = tree.tree_map(copied, (args, kwargs)) if func._schema.is_mutable and not large else None
        result = self._opened(group, args, kwargs) if group.kind == "opened" else func(*args, **kwargs)
        group.unlike = group.unlike or _unlike(result)
        if self.trail is not None and not group.unlike:
            self.trail.append((group.op, place_of(module, where), operands, digests_of(result)))
        if not large and not group.unlike:
            inside = self._inside[-1] if self._inside else ""
            call = Call(func, group.op, *(before or (args, kwargs)), tree.tree_leaves(result), where, module, inside)
            self._keep(group, call, owned=before is not None)
        return result

    def _control_flow(self, func, args, kwargs):
        """The result of a branch or a loop of PyTorch's, with the ops inside recorded; ops inside any other op with
        functions are not."""
        if func.name() == "cond" and not kwargs:
            with self:
                return (args[1] if bool(args[0]) else args[2])(*args[3])
        if func.name() == "while_loop" and not kwargs:
            condition, body, state, beside = args
            with self:
                while bool(condition(*state, *beside)):
                    state = tuple(body(*state, *beside))
            return state
        self.opaque[func.name()] += 1
        return func(*args, **kwargs)

    def _group(self, func, args, kwargs):
        key = (func, self._inside[-1] if self._inside else "", described(args), described(kwargs))
        found = self.groups.get(key)
        if found is None:
            kind = "view" if is_view(func) else "opened" if _implementation(func, "cpu") else "op"
            found = self.groups[key] = Group(func, name_of(func), key, kind, unlike=_unlike((args, kwargs)))
        return found

    def _is_large(self, group, args, kwargs):
        size = sum(each.numel() for each in tree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor))
        if size > self.most_elements:
            group.too_large = size
        return size > self.most_elements

    def _opened(self, group, args, kwargs):
        """The result of a custom op, its Python implementation run with its own calls recorded."""
        device = next((each.device.type for each in tree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)), "cpu")
        self._inside.append(group.op)
        try:
            with self:
                return _implementation(group.func, device)(*args, **kwargs)
        finally:
            self._inside.pop()

    def _keep(self, group, call, *, owned):
        began = time.monotonic()
        if self._left > 0:
            with contextlib.suppress(Exception):  # no kernel for float64, or for tensors of this kind
                call.error, call.rms = beside_float64(call)
        self._left -= time.monotonic() - began
        if group.kept is not None and (call.error or 0.0) <= (group.kept.error or 0.0):
            return
        if not owned:
            call.args, call.kwargs = tree.tree_map(copied, (call.args, call.kwargs))
        call.results = [copied(each) for each in call.results]
        group.kept = call

    def _module(self):
        if not self._modules:
            return ""
        path = self.names.get(id(self._modules[-1]))
        return type(self._modules[-1]).__name__ if path is None else path.removeprefix("self.").removeprefix("self")


def _unlike(values):
    """Why the tensors among `values` cannot be copied; '' where they can."""
    for each in tree.tree_leaves(values):
        if isinstance(each, torch.Tensor) and each.is_meta:
            return "a tensor on the device meta, which holds no values"
        if isinstance(each, torch.Tensor) and type(each) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return f"a tensor of the class {type(each).__name__}"
    return ""


def place_of(module, where):
    """'module file.py:12', as far as that is known."""
    line = f"{os.path.basename(where[-1][0])}:{where[-1][1]}" if where else ""
    return f"{module} {line}".strip()


def digests_of(values):
    """Digests of the dense tensors among `values`, of their dtypes, shapes and bits, however they lie in memory."""
    found = []
    for each in tree.tree_leaves(values):
        if isinstance(each, torch.Tensor) and each.layout == torch.strided and each.numel():
            kind = f"{each.dtype}{list(each.shape)}".encode()
            found.append(hashlib.blake2b(kind + adapters.to_wire(each).data, digest_size=16).digest())
    return tuple(found)


def is_view(func):
    """Whether all results of the op share memory with an operand, and nothing is written."""
    schema = func._schema
    return bool(schema.returns) and not schema.is_mutable and all(each.alias_info is not None for each in schema.returns)


def _implementation(func, device):
    """The Python function of an op that was made by torch.library.custom_op; None for any other."""
    if func._schema.name.startswith("aten::"):
        return None
    from torch._library import custom_ops
    made = getattr(custom_ops, "OPDEFS", {}).get(func._schema.name)
    if made is None or func._schema.is_mutable:
        return None
    functions = getattr(made, "_backend_fns", {})
    return functions.get(device) or functions.get(None)


def described(value):
    """The key that calls of one group share: dtype, shape, strides and device of a tensor, anything else unchanged."""
    if isinstance(value, torch.Tensor):
        strides = tuple(value.stride()) if value.layout == torch.strided else ()
        return ("tensor", value.dtype, tuple(value.shape), strides, str(value.layout), str(value.device))
    if isinstance(value, (list, tuple)):
        return tuple(described(each) for each in value)
    if isinstance(value, dict):
        return tuple((key, described(each)) for key, each in value.items())
    return (type(value).__name__, repr(value))


def copied(value):
    """A tensor's values in memory of its own, in the same layout; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    if value.layout != torch.strided or value._is_zerotensor() or value.is_quantized or value.is_nested:
        return value.clone()
    one = value
    for dim in range(value.dim()):
        if value.stride(dim) == 0 and value.shape[dim] > 1:
            one = one.narrow(dim, 0, 1)
    try:
        made = torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device).copy_(one)
    except RuntimeError:  # elements that share memory, as of unfold()
        return value.clone()
    return made.expand(value.shape)


def beside_float64(call):
    """(largest, root mean square) distance of the call's results from the same op in float64; (None, None) if that is
    no evidence. Raises the op's own exceptions."""
    if _draws(call) or not any(
            isinstance(each, torch.Tensor) and each.dtype.is_floating_point and each.dtype != torch.float64 and each.numel()
            for each in call.results):
        return None, None
    wide = tree.tree_leaves(call.func(*tree.tree_map(_widened, call.args), **tree.tree_map(_widened, call.kwargs)))
    worst = mean = None
    for one, other in zip(call.results, wide):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or other.dtype != torch.float64 \
                or one.shape != other.shape or not one.numel():
            continue
        off, size = (one.double() - other).abs(), other.abs()
        known = off.isfinite() & size.isfinite()
        if not bool(known.any()):
            continue
        off, size = off[known], size[known]
        scale = float(size.square().mean().sqrt()) or 1.0
        found = float((off / (size + scale)).max())
        if worst is None or found > worst:
            worst, mean = found, float(off.square().mean().sqrt()) / scale
    return worst, mean


def _draws(call):
    """Whether the call takes random numbers; one more of the kind would change what comes after it."""
    if torch.Tag.nondeterministic_seeded not in call.func.tags:
        return False
    position = [each.name for each in call.func._schema.arguments].index("dropout_p") if "dropout_p" in str(call.func._schema) else None
    if position is None:
        return True
    given = call.kwargs.get("dropout_p", call.args[position] if position < len(call.args) else 0.0)
    return given != 0


def _widened(value):
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype.is_floating_point else copied(value)
    return value


def _frames():
    """((file, line, text, function), ...) of the caller's Python, outermost first: neither PyTorch's frames nor those of this package."""
    found, frame = [], sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == __file__ and frame.f_code.co_name == "recorded":
            break
        if not file.startswith((_TORCH, _HERE)) and not file.startswith("<"):
            found.append((file, frame.f_lineno, linecache.getline(file, frame.f_lineno).strip(), frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(found))


def recorded(f, args, kwargs, recorder):
    """The result of `f(*args, **kwargs)`, with every op recorded."""
    with recorder:
        return f(*args, **kwargs)

