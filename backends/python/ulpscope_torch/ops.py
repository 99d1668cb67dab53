"""The vocabulary of steps over torch: one row each, in PyTorch's own terms. Imported after the knobs are set.
"""

import contextlib
import functools

import torch
import torch.nn.functional as F

from ulpscope_adapter import Unsupported, words
from ulpscope_adapter.dtypes import dtypes_of
from ulpscope_torch import functions, memory

DTYPES = dtypes_of(torch)
RESULT = "result"  # the attribute by which a step says which of an op's results it names
_device, _asked = "cpu", ""
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def use_device(device, asked=""):
    """Sets the device, as torch names it, of new tensors and of autocast: one for the whole process.

    `asked` is the harness's name of that device, and of a program's autocast with it, if that is another name.
    """
    global _device, _asked
    _device, _asked = device, asked


def dtype_name(dtype):
    """The long name of a torch.dtype."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def _layer_norm(x, weight=None, bias=None, *, normalized_shape, eps=1e-5):
    return F.layer_norm(x, normalized_shape, weight, bias, eps)


def _rms_norm(x, weight=None, *, normalized_shape, eps=None):
    return F.rms_norm(x, normalized_shape, weight, eps)


def _slice(a, dim=0, start=None, end=None, step=1):
    return a[(slice(None), ) * (dim % a.dim()) + (slice(start, end, step), )]


def _batch_norm(x, mean, variance, weight=None, bias=None, *, eps=1e-5):
    return F.batch_norm(x, mean, variance, weight, bias, eps=eps)


def _group_norm(x, weight=None, bias=None, *, num_groups, eps=1e-5):
    return F.group_norm(x, num_groups, weight, bias, eps)


def _instance_norm(x, weight=None, bias=None, *, eps=1e-5):
    return F.instance_norm(x, weight=weight, bias=bias, eps=eps)


def _empty(shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device=_device)


# Ops whose word or attributes are not torch's own; every other op is torch.NAME or torch.nn.functional.NAME.
_FUNCTIONS = {
    "zeros": lambda shape, dtype: torch.zeros(shape, dtype=dtype, device=_device),
    "ones": lambda shape, dtype: torch.ones(shape, dtype=dtype, device=_device),
    "full": lambda shape, dtype, value: torch.full(shape, value, dtype=dtype, device=_device),
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "cast": lambda a, dtype: a.to(dtype),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "reshape": lambda a, shape: a.reshape(shape),
    "view": lambda a, shape: a.view(shape),
    "expand": lambda a, shape: a.expand(shape),
    "cat": lambda *tensors, **keywords: torch.cat(tensors, **keywords),
    "stack": lambda *tensors, **keywords: torch.stack(tensors, **keywords),
    "slice": _slice,
    "gather": lambda a, index, dim: torch.gather(a, dim, index),
    "index_select": lambda a, index, dim: torch.index_select(a, dim, index),
    "index": lambda a, *indices, dim=0: a[(slice(None), ) * (dim % a.dim()) + indices],
    "index_add": lambda a, index, source, dim, alpha=1: torch.index_add(a, dim, index, source, alpha=alpha),
    "scatter_add": lambda a, index, source, dim: torch.scatter_add(a, dim, index, source),
    "split": lambda a, split_size, dim=0: torch.split(a, split_size, dim),
    "topk": lambda a, k, dim=-1, **keywords: torch.topk(a, k, dim, **keywords),
    "linspace": lambda start, end, num, dtype: torch.linspace(start, end, num, dtype=dtype, device=_device),
    "instance_norm": _instance_norm,
    "kl_div": F.kl_div,
    "margin_ranking_loss": F.margin_ranking_loss,
    "arange": lambda end, dtype, start=0, step=1: torch.arange(start, end, step, dtype=dtype, device=_device),
    "einsum": lambda *tensors, equation: torch.einsum(equation, *tensors),
    "norm": lambda a, p=2, **keywords: torch.linalg.vector_norm(a, p, **keywords),
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
    "squeeze": lambda a, dim=None: a.squeeze() if dim is None else a.squeeze(dim),
}

# Steps that run outside a compiled region; execution.py carries them out.
_OUTSIDE = ("empty", "fsdp_linear", *words.ops("effect"))
OUTSIDE_OPS = {name: words.attributes(name) for name in _OUTSIDE}

# op -> the attributes that torch's function takes
OPS = {
    name: words.attributes(name, without=("preferred_element_type", "out_dtype" if name == "matmul" else ""))
    for name in words.ops("value", "view", "product") if name not in _OUTSIDE
}


def _callable(op):
    """The function over the operands that takes the attributes as keywords."""
    function = _FUNCTIONS.get(op) or getattr(torch, op, None) or getattr(F, op, None)
    if function is None:
        raise Unsupported(f"op {op}: torch has no function of this name")
    return function


# Attributes that a case may request and torch does not have.
REASONS = {"preferred_element_type": "torch has no preferred_element_type; out_dtype is the nearest"}


def served(reasons):
    """Capabilities of every stack that runs programs by this package; `reasons`: why its knobs cannot be had."""
    return {
        "ops": {
            **OPS,
            **OUTSIDE_OPS, "aten::*": None,
            "torch.*": None
        },
        "dtypes": list(DTYPES),
        "scopes": ["autocast", "no_grad", "enable_grad"],
        "capabilities": ["autograd", "out", "strides", "aten"],
        "observations": ["grad", "grad_dtype", "grad_metadata_dtype", memory.WORD],
        "reasons": {
            **reasons,
            **REASONS
        }
    }


def _called_as(name):
    """Names the code of a function: the stack traces that compilers keep beside their graphs' nodes then show which step made them."""
    def named(function):
        function.__code__ = function.__code__.replace(co_name=name)
        return function

    return named


def bind(step):
    """A function over the environment (name -> tensor) that does `step`; Unsupported if torch cannot."""
    function, keywords = _function(step)
    operands, out, target = step.of, step.out, step.target

    @_called_as(f"step_{target}")
    def run(env):
        arguments = [_lookup(env, operand) if isinstance(operand, str) else operand for operand in operands]
        if out:
            result = function(*arguments, **keywords, out=env[out])
        else:
            result = function(*arguments, **keywords)
        if target:
            env[target] = result

    return run


def _bind_results(steps):
    """One call for neighbours that name different results of it."""
    first = steps[0]
    function, keywords = _called(first)
    names = [(each.target, each.attrs.get(RESULT, 0)) for each in steps]

    def run(env):
        results = function(*[_lookup(env, operand) if isinstance(operand, str) else operand for operand in first.of], **keywords)
        for name, index in names:
            env[name] = results[index]

    return run


def _one_call(step, other):
    """Whether two steps name results of one call."""
    def rest(each):
        return each.op, each.of, each.out, {key: value for key, value in each.attrs.items() if key != RESULT}

    return rest(step) == rest(other) and not step.out and not step.steps and step.attrs.get(RESULT, 0) != other.attrs.get(RESULT, 0)


def bind_scope(scope, body):
    """A function over the environment that carries out `body` (such functions) inside a scope."""
    enter = _scope(scope)

    def run(env):
        with enter():
            for step in body:
                step(env)

    return run


def bind_all(placed):
    """Functions for Placed steps in order, neighbours in one scope sharing one entry to it."""
    functions, index = [], 0
    while index < len(placed):
        if not placed[index].scopes:
            last = index + 1
            while last < len(placed) and not placed[last].scopes and _one_call(placed[index].step, placed[last].step):
                last += 1
            group = [item.step for item in placed[index:last]]
            functions.append(bind(group[0]) if len(group) == 1 else _bind_results(group))
            index = last
            continue
        number, scope = placed[index].scopes[0]
        inner = []
        while index < len(placed) and placed[index].scopes and placed[index].scopes[0][0] == number:
            inner.append(type(placed[index])(placed[index].step, placed[index].scopes[1:]))
            index += 1
        functions.append(bind_scope(scope, bind_all(inner)))
    return functions


def scopes_of(item):
    """A context manager that enters the scopes around one Placed step."""
    stack = contextlib.ExitStack()
    for _, scope in item.scopes:
        stack.enter_context(_scope(scope)())
    return stack


def _lookup(env, name):
    base, _, suffix = name.partition(".")
    return env[base].grad if suffix == "grad" else env[name]


def _function(step):
    """(function that gives the one result which the step names, keywords)"""
    function, keywords = _called(step)
    if RESULT in step.attrs or _gives_several(step.op):
        return functools.partial(_result, step.attrs.get(RESULT, 0), function), keywords
    return function, keywords


def _gives_several(op):
    return op != "empty" and (op not in OPS or RESULT in OPS[op])


def _called(step):
    """(function that gives every result, keywords)"""
    if step.op == "empty":
        return _empty, {key: _attribute(key, value) for key, value in step.attrs.items()}
    attrs = {key: value for key, value in step.attrs.items() if key != RESULT}
    keywords = {key: _attribute(key, value) for key, value in attrs.items()}
    if step.op in OPS:
        # For requests over the wire, the SDK has checked this already; a compiler in a process of its own has not.
        for key in step.attrs:
            if key not in OPS[step.op]:
                raise Unsupported(f"{step.op} {key}=: {REASONS.get(key, 'torch has no such argument')}")
        if step.out and not words.OPS[step.op]["out"]:
            raise Unsupported(f"torch's {step.op} has no out=")
        if step.op in ("layer_norm", "rms_norm") and "normalized_shape" not in keywords:
            raise Unsupported(f"{step.op} without normalized_shape")
        return _callable(step.op), keywords
    if not step.op.startswith("aten::"):
        if step.out:
            raise Unsupported(f"{step.op}: a step has no out= of it")
        return functions.named(step.op), {key: _aten_attribute(_attribute(key, value)) for key, value in attrs.items()}
    name, _, overload = step.op.removeprefix("aten::").partition(".")
    if name == "from_file":
        raise Unsupported("op aten::from_file: it opens a file, and a case is data")
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or (overload and overload not in packet.overloads()):
        raise Unsupported(f"op {step.op}: torch has no such operator")
    schemas = [getattr(packet, each)._schema for each in ([overload] if overload else packet.overloads())]
    returns = [[str(each.type) for each in schema.returns] for schema in schemas]
    index = step.attrs.get(RESULT, 0)
    if step.name and not any(types[index:index + 1] == ["Tensor"] or types == ["List[Tensor]"] for types in returns):
        raise Unsupported(f"op '{step.op}' gives no tensor to name '{step.name}'")
    function = getattr(packet, overload) if overload else packet
    plain = overload or ("default" if "default" in packet.overloads() else "")
    if plain and _needs_order(getattr(packet, plain)._schema, attrs):
        attrs = {key: _aten_attribute(value) for key, value in attrs.items()}
        function, keywords = _in_order(getattr(packet, plain), step.of, attrs)
    else:
        keywords = {key: _aten_attribute(value) for key, value in attrs.items()}
    return function, keywords


def _is_list(argument):
    return str(argument.type) == "List[Tensor]"


def _needs_order(schema, keywords):
    """Whether Python's own order of arguments is not that of a step: lists of tensors, a named argument before an operand."""
    named = [argument.name in keywords for argument in schema.arguments]
    later = named[named.index(True):] if True in named else []
    gap = any("Tensor" in str(argument.type) for argument in schema.arguments[len(named) - len(later):])
    return gap or any(_is_list(argument) for argument in schema.arguments)


def _in_order(overload, of, attrs):
    """(function over the operands, keywords) that calls an overload as a step does: an argument that an attribute names is left out of
    the order of the operands, and neighbours make the list of tensors that it wants."""
    places, next_operand = [], 0  # of each argument: the operands that it takes, or the value that an attribute gives
    for argument in overload._schema.arguments:
        if argument.kwarg_only or not (next_operand < len(of) or argument.name in attrs):
            break
        if argument.name in attrs:
            places.append((None, attrs.pop(argument.name)))
            continue
        count = 1
        if _is_list(argument):
            count = next((i for i, each in enumerate(of[next_operand:]) if not isinstance(each, str)), len(of) - next_operand)
        places.append((slice(next_operand, next_operand + count), _is_list(argument)))
        next_operand += count
    places += [(slice(i, i + 1), False) for i in range(next_operand, len(of))]

    def call(*operands, **keywords):  # what a compiler traces: nothing but lists
        arguments = []
        for place, value in places:
            arguments.append(value if place is None else list(operands[place]) if value else operands[place][0])
        return overload(*arguments, **keywords)

    return call, attrs


def _result(index, function, /, *operands, **keywords):
    """The result that a step names of an op with several (aten::max.dim: the values, with result: 1 the indices)."""
    result = function(*operands, **keywords)
    return result[index] if isinstance(result, (tuple, list)) else result


def _attribute(key, value):
    if key in ("dtype", "out_dtype"):
        return DTYPES[value]
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    return value


def _aten_attribute(value):
    return DTYPES.get(value, value) if isinstance(value, str) else value


def _scope(scope):
    if scope.op == "no_grad":
        return torch.no_grad
    if scope.op == "enable_grad":
        return torch.enable_grad
    attrs = scope.attrs
    device = attrs.get("device", "auto")
    own = _device.partition(":")[0]
    if device not in ("auto", _asked or own):
        raise Unsupported(f"autocast for device {device}")
    return functools.partial(torch.autocast, own, dtype=DTYPES[attrs.get("dtype", "bfloat16")],
                             enabled=attrs.get("enabled", True), cache_enabled=attrs.get("cache", True))
