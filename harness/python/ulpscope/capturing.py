"""capture(): a function or a module, as the case that computes what it computes.

torch.export takes the program before the dispatcher takes it apart, so that a linear layer stays one step and an autocast region
stays a scope; vocabulary.py says each op in the words of the case language; names.py finds what the author called the values.
What cannot be said is an error that names the op and its line, never a case of something else: and what was said is run, and
compared in bits with the function itself (faithful.py).
"""

import contextlib
import inspect
import os
import pathlib
import re
import traceback

from ulpscope import case as cases
from ulpscope import adapters, names, places, vocabulary
from ulpscope.vocabulary import CaptureError


def capture(f, args=(), kwargs=None, *, name=None, data="auto", backward=False, verify=("torch-eager",)):
    """The Case that `f(*args, **kwargs)` is.

    `f` is a function or an nn.Module; tensors among its arguments, wherever they are nested, its parameters and buffers and the
    tensors that it closes over become tensors of the case, everything else a constant.

    data      "auto" or "real": the real values, in the case file as long as it holds them, the largest tensors in a safetensors file
              that save() writes beside it; "inline": in the case file, or an error; "synthetic": none of them, the harness makes
              others from a seed, with the same dtype, shape, layout and scale.
    backward  also the gradients of the (one) result with respect to parameters and to arguments that require one, for a gradient
              of ones.
    verify    torch backends on which the case is run, on the real values, and compared in bits with `f` itself, compiled as that
              backend would; a difference raises Unfaithful. () leaves this out. A backend without a device is asked on that of the
              tensors: torch-eager@cuda, where they lie on a GPU.

    Raises CaptureError for what a case cannot say, with the op and the line; Unfaithful, which is one.
    """
    places.find_sdk()
    found = _captured(f, tuple(args), dict(kwargs or {}), name, backward)
    found.fit(data)
    if verify:
        from ulpscope import faithful
        asked = adapters.on([verify] if isinstance(verify, str) else verify, device_of(f, args, kwargs))
        faithful.check(found, f, tuple(args), dict(kwargs or {}), asked)
    return found


def device_of(f, args, kwargs):
    """Where the tensors that `f` is called with lie, its parameters among them."""
    from torch.utils import _pytree as tree
    return adapters.device_of([*tree.tree_leaves((tuple(args), dict(kwargs or {}))), *wrapper(f).parameters()])


def _captured(f, args, kwargs, name, backward):
    import torch
    module = wrapper(f)
    program = _export(f, module, args, kwargs)
    inputs, by_node, notes, values = _inputs(program, module, argument_names(f, args, kwargs), backward)
    walk = vocabulary.Walk(notes, backward, {each.name: each.tensor for each in inputs})
    with torch.no_grad():
        outputs = walk.graph(program.graph_module, by_node)
    results = [value for value, spec in zip(outputs, program.graph_signature.output_specs) if spec.kind.name == "USER_OUTPUT"]
    steps = vocabulary.needed(walk.steps, [each for each in results if isinstance(each, str)])
    renamed = names.rename(steps, [each.name for each in inputs], results)
    observe = list(dict.fromkeys(renamed.get(each, each) for each in results if isinstance(each, str)))
    if not observe or not steps:
        raise CaptureError(f"{_name_of(f)} gives no tensor that it computes")
    if backward:
        observe = _differentiate(steps, observe, inputs)
    used = {operand for step in cases.every(steps) for operand in (*step.of, step.out)}
    inputs = [each for each in inputs if each.name in used]
    code = inspect.unwrap(f.forward if isinstance(f, torch.nn.Module) else f)
    case = cases.Case(name=word(name or _name_of(f)), about=f"What does {_name_of(f)} compute, and in which precision?",
                      inputs=inputs, steps=steps, observe=observe, notes=notes, source=_source_of(code))
    case.results = [renamed.get(each, each) if isinstance(each, str) else None for each in results]
    case.program, case.graph_inputs = program, values
    return case


def _differentiate(steps, observe, inputs):
    """Adds backward() of the one result; what is observed with the gradients."""
    leaves = [each.name for each in inputs if each.requires_grad]
    if len(observe) != 1:
        raise CaptureError(f"backward: one result is differentiated, not {len(observe)} ({', '.join(observe)})")
    if not leaves:
        raise CaptureError("backward: no argument and no parameter requires a gradient")
    steps.append(cases.Step("backward", of=(observe[0],)))
    return observe + [leaf + ".grad" for leaf in leaves]


def wrapper(f):
    """A module whose forward is `f`, with the modules that `f` uses as its own, so that their parameters have names."""
    import torch

    class Captured(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return f(*args, **kwargs)

    module = Captured()
    if isinstance(f, torch.nn.Module):
        module._modules["self"] = f
        return module
    if isinstance(getattr(f, "__self__", None), torch.nn.Module):
        module._modules["self"] = f.__self__
    if inspect.isfunction(f):
        near = inspect.getclosurevars(f)
        for key, value in {**near.globals, **near.nonlocals}.items():
            if isinstance(value, torch.nn.Module):
                module._modules[key] = value
            elif isinstance(value, torch.nn.Parameter):
                module.register_parameter(key, value)
    return module


@contextlib.contextmanager
def _whole_stacks():
    """While it is open, graphs keep the frames of plain functions too: left alone, they keep those of forward() only."""
    from torch.fx.proxy import TracerBase
    before = TracerBase.__dict__.get("_filter_traceback_frames")
    if before is None:
        yield
        return
    torch_folder = os.path.dirname(inspect.getfile(inspect.getmodule(TracerBase))).rpartition(os.sep)[0] + os.sep

    def users(self, stack):
        inner = max((i for i, frame in enumerate(stack) if frame.filename == __file__), default=-1)
        kept = [frame for frame in stack[inner + 1:] if not frame.filename.startswith(torch_folder)]
        return traceback.StackSummary.from_list(kept)

    TracerBase._filter_traceback_frames = users
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = before


def _export(f, module, args, kwargs):
    import logging

    import torch
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with _whole_stacks(), open(os.devnull, "w", encoding="utf-8") as nowhere:
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                return torch.export.export(module, args, kwargs, strict=False)
    except Exception as error:
        raise CaptureError(f"torch.export cannot take {_name_of(f)}: {_reason(error)}{_line_of(error)}") from error
    finally:
        logger.setLevel(level)


def _reason(error):
    first = str(error).strip().split("\n")[0]
    kind = type(error).__name__
    if "DataDependent" in kind or "data-dependent" in first:
        return f"what it does next depends on the values of a tensor, and a case is a straight line ({first})"
    return f"{kind}: {first}"


def _line_of(error):
    """', at file:line: text' of the innermost frame that is the user's."""
    import torch
    folder = os.path.dirname(torch.__file__) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    inside = False
    found = None
    for frame in frames:
        if frame.filename == __file__:
            inside = True
        elif inside and not frame.filename.startswith(folder) and "<" not in frame.filename:
            found = frame
    return f", at {found.filename}:{found.lineno}: {found.line}" if found else ""


def _inputs(program, module, argument_names, backward):
    """(Inputs, placeholder name -> input name or constant, notes, what each placeholder holds)."""
    import torch
    inputs, by_node, notes, values, taken = [], {}, [], [], set()
    arguments = iter(argument_names)
    for spec in program.graph_signature.input_specs:
        kind = spec.kind.name
        label, value = next(arguments) if kind == "USER_INPUT" else (spec.target, None)
        if kind == "USER_INPUT" and not isinstance(value, torch.Tensor):
            by_node[spec.arg.name] = value
            values.append(value)
            continue
        if kind == "PARAMETER" or kind == "BUFFER":
            label = label.removeprefix("self.")
            value = _attribute(module, spec.target)
        elif kind == "CONSTANT_TENSOR":
            value = program.constants[spec.target]
            label = label.replace("lifted_tensor_", "constant_")
        elif kind != "USER_INPUT":
            raise CaptureError(f"an input of the kind {kind} ({spec.target})")
        if value.numel() == 0:
            raise CaptureError(f"{label} has no element ({list(value.shape)}), and a tensor of a case has")
        name = names.unique(word(label), taken)
        leaf = backward and value.requires_grad and value.dtype.is_floating_point
        if leaf and not value.is_leaf:
            notes.append(f"{name} is a leaf here; the function's own argument had been computed.")
        inputs.append(cases.Input(name, value.detach(), requires_grad=bool(leaf)))
        by_node[spec.arg.name] = name
        values.append(value.detach())
    return inputs, by_node, notes, values


def _attribute(module, path):
    for part in path.split("."):
        module = module._modules[part] if part in getattr(module, "_modules", {}) else getattr(module, part)
    return module


def argument_names(f, args, kwargs):
    """(name, value) of every leaf of the arguments, in torch.export's order."""
    from torch.utils import _pytree as tree
    try:
        parameters = inspect.signature(f.forward if hasattr(f, "forward") else f).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    plain = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    labels = [each.name for each in plain][:len(args)]
    rest = next((each.name for each in parameters if each.kind == each.VAR_POSITIONAL), "arg")
    labels += [f"{rest}_{i}" for i in range(len(args) - len(labels))]
    leaves = []
    for label, value in [*zip(labels, args), *kwargs.items()]:
        for path, leaf in tree.tree_flatten_with_path(value)[0]:
            leaves.append((label + re.sub(r"\W+", "_", tree.keystr(path)).rstrip("_"), leaf))
    return leaves


def _name_of(f):
    import torch
    if isinstance(f, torch.nn.Module):
        return type(f).__name__
    named = f.__qualname__ if inspect.isfunction(f) or inspect.ismethod(f) else getattr(f, "__name__", "")
    return named or type(f).__name__


def _source_of(code):
    try:
        return f"{pathlib.Path(inspect.getsourcefile(code)).name}, line {inspect.getsourcelines(code)[1]}"
    except (TypeError, OSError):
        return ""


def word(text):
    """Text as a name of the case language."""
    word = re.sub(r"\W+", "_", text.replace("<locals>", ""), flags=re.ASCII).strip("_")[:48] or "value"
    return "_" + word if word[0].isdigit() else word
