"""capture(): a function or a module as a case that computes the same.

torch.export takes the program before the dispatcher takes it apart, so a linear layer stays one step and an autocast
region stays a scope. vocabulary.py translates each op into the case language; names.py finds the author's names for
the values. A program that cannot be expressed is an error that names the op and its line, never a different case.
The case is run, and compared in bits with the function itself (faithful.py).
"""

import contextlib
import inspect
import os
import pathlib
import re
import traceback

from ulpscope import case as cases
from ulpscope import adapters, names, places, vocabulary
from ulpscope.refusals import CaptureError, Reason


def capture(f, args=(), kwargs=None, *, name=None, data="auto", backward=False, grad=None, verify=("torch-eager",)):
    """The Case of `f(*args, **kwargs)`.

    `f` is a function or an nn.Module; tensors among its arguments, wherever they are nested, its parameters and
    buffers and the tensors that it closes over become tensors of the case, everything else a constant.

    data      "auto" or "real": the real values, in the case file as long as it holds them, the largest tensors in a
              safetensors file that save() writes next to it; "inline": in the case file, or an error; "synthetic": none of
              them, the harness makes others from a seed, with the same dtype, shape, layout and scale.
    backward  also the gradients of the (one) result with respect to parameters and to arguments that require one.
    grad      with `backward`: the initial gradient of the result, a tensor of the result's shape and dtype. By default, 1
              for a result of one element, else normal numbers from a fixed seed: ones would hide every rounding of a
              product with them.
    verify    torch backends on which the case is run, on the real values, and compared in bits with `f` itself, compiled as
              that backend would; a difference raises Unfaithful. () leaves this out. A backend without a device runs on
              that of the tensors: torch-eager@cuda if they are on a GPU.

    Raises CaptureError for a program that a case cannot express, with the op and the line; Unfaithful, which is one.
    """
    places.find_sdk()
    if grad is not None and not backward:
        raise ValueError("grad: a gradient of the result is taken with backward=True alone")
    found, taken = _captured(f, tuple(args), dict(kwargs or {}), name, backward, grad)
    found.fit(data)
    if not verify:
        return found
    from ulpscope import faithful
    asked = adapters.on([verify] if isinstance(verify, str) else verify, device_of(f, args, kwargs))
    try:
        faithful.read(found)
        faithful.check(found, f, tuple(args), dict(kwargs or {}), asked)
    except CaptureError:
        if not taken:
            raise
        found, _ = _captured(f, tuple(args), dict(kwargs or {}), name, backward, grad, decompose=False)
        found.fit(data)
        faithful.read(found)
        faithful.check(found, f, tuple(args), dict(kwargs or {}), asked)
    return found


def device_of(f, args, kwargs):
    """The device of the tensors that `f` is called with, its parameters among them."""
    from torch.utils import _pytree as tree
    return adapters.device_of([*tree.tree_leaves((tuple(args), dict(kwargs or {}))), *wrapper(f).parameters()])


def _captured(f, args, kwargs, name, backward, grad=None, decompose=True):
    """(the Case, the ops that were taken apart); without `decompose` every op without a word is a step `aten::NAME`."""
    import torch

    from ulpscope import decomposing, faithful
    module = wrapper(f)
    program = _export(f, module, args, kwargs)
    inputs, by_node, notes, values = _inputs(program, module, argument_names(f, args, kwargs), backward)
    apart = decomposing.Decompositions(lambda: faithful.node_values(program, values), backward) if decompose else None
    walk = vocabulary.Walk(notes, backward, {each.name: each.tensor for each in inputs}, apart)
    with torch.no_grad():
        outputs = walk.graph(program.graph_module, by_node)
    results = [value for value, spec in zip(outputs, program.graph_signature.output_specs) if spec.kind.name == "USER_OUTPUT"]
    _check_results(program, outputs, walk.steps, results)
    steps = vocabulary.needed(walk.steps, [each for each in results if isinstance(each, str)])
    renamed = names.rename(steps, [each.name for each in inputs], results)
    observe = list(dict.fromkeys(renamed.get(each, each) for each in results if isinstance(each, str)))
    if not observe or not steps:
        if decompose and apart.taken:  # composites that come to their operand are steps after all
            return _captured(f, args, kwargs, name, backward, grad, decompose=False)
        raise CaptureError(f"{name_of(f)} gives no tensor that it computes", Reason.NOTHING_COMPUTED)
    upstream = None
    if backward:
        observe = _differentiate(steps, observe, inputs)
        upstream = _upstream(program, grad, {each.name for each in inputs} | {step.name for step in cases.every(steps)})
        if upstream is not None:
            steps[-1].attrs["grad"] = upstream.name
    used = {operand for step in cases.every(steps) for operand in (*step.of, step.out)}
    unused = [each.name for each in inputs if each.name not in used]
    observe = [each for each in observe if each.removesuffix(".grad") not in unused]
    inputs = [each for each in inputs if each.name in used] + ([upstream] if upstream is not None else [])
    code = inspect.unwrap(f.forward if isinstance(f, torch.nn.Module) else f)
    case = cases.Case(name=word(name or name_of(f)), about=f"What does {name_of(f)} compute, and in which precision?",
                      inputs=inputs, steps=steps, observe=observe, notes=notes, source=_source_of(code))
    case.results = [renamed.get(each, each) if isinstance(each, str) else None for each in results]
    case.program, case.graph_inputs = program, values
    return case, apart.taken if decompose else []


def _check_results(program, outputs, steps, results):
    """Raises CaptureError for a result that no case can observe: of a dtype or layout that it has not, or memory that nothing wrote."""
    import torch
    returned = next(node for node in program.graph.nodes if node.op == "output").args[0]
    for value, node in zip(outputs, returned):
        if value not in results or not isinstance(value, str):
            continue
        found = node.meta.get("val")
        if isinstance(found, torch.Tensor) and (other := unlike(found)):
            raise CaptureError(f"op {vocabulary.called(node)}: it gives {other[0]}{vocabulary.at(node)}", other[1])
        if isinstance(found, torch.Tensor) and found.numel() == 0:
            raise CaptureError(f"op {vocabulary.called(node)}: it gives a tensor without elements ({list(found.shape)}), and a tensor of a case has "
                               f"some{vocabulary.at(node)}", Reason.EMPTY)
    made = {step.name: step for step in cases.every(steps) if step.name}
    written = {step.out or step.of[0] for step in made.values() if step.out or step.op.partition(".")[0].endswith("_")}
    for value in results:
        step = made.get(value)
        while step is not None and step.op in vocabulary.words.ops("view"):
            step = made.get(step.of[0])
        if step is not None and is_unwritten(step.op) and not {value, step.name} & written:
            raise CaptureError(f"op {step.op}: nothing is written into this memory, and what it holds by chance is no result{step.at()}",
                               Reason.UNWRITTEN_MEMORY)


_UNWRITTEN = re.compile(r"(aten::)?(new_)?empty(_like|_strided|_permuted)?([.]\w+)?")


def is_unwritten(op):
    """Whether the op gives memory that nothing has written: `empty` and its like."""
    return _UNWRITTEN.fullmatch(op) is not None


def unlike(tensor):
    """(what no case has of this tensor, the Reason): its dtype or its layout; None where a case has all."""
    import torch
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
        kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
        return f"a tensor that is not dense ({kind})", Reason.LAYOUT
    name = str(tensor.dtype).removeprefix("torch.")
    if name in vocabulary.words.WORDS["dtypes"]:
        return None
    return f"dtype {name}, which no case has", Reason.COMPLEX if tensor.dtype.is_complex else Reason.DTYPE


def _differentiate(steps, observe, inputs):
    """Adds backward() of the one result; what is observed with the gradients."""
    leaves = [each.name for each in inputs if each.requires_grad]
    if len(observe) != 1:
        raise CaptureError(f"backward: one result is differentiated, not {len(observe)} ({', '.join(observe)})", Reason.SEVERAL_RESULTS)
    if not leaves:
        raise CaptureError("backward: no argument and no parameter requires a gradient", Reason.NO_GRADIENT)
    steps.append(cases.Step("backward", of=(observe[0],)))
    return observe + [leaf + ".grad" for leaf in leaves]


def _upstream(program, grad, taken):
    """The tensor that backward begins with; None where that is the 1 of a result of one element."""
    import torch
    returned = next(node for node in program.graph.nodes if node.op == "output").args[0]
    specs = program.graph_signature.output_specs
    result = next(node.meta["val"] for node, spec in zip(returned, specs)
                  if spec.kind.name == "USER_OUTPUT" and isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor))
    if grad is None and result.numel() == 1:
        return None
    if grad is None:
        grad = torch.randn(result.shape, generator=torch.Generator().manual_seed(0)).to(result.dtype)
    if not isinstance(grad, torch.Tensor) or (grad.shape, grad.dtype) != (result.shape, result.dtype):
        found = f"{grad.dtype}{list(grad.shape)}" if isinstance(grad, torch.Tensor) else repr(grad)
        raise ValueError(f"grad: found {found}, expected a tensor as the result is, {result.dtype}{list(result.shape)}")
    name = next(each for each in ("grad_out", *(f"grad_out_{i}" for i in range(2, 1000))) if each not in taken)
    return cases.Input(name, grad.detach().to(result.device).contiguous())


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
    """Context in which graphs keep the frames of plain functions too; by default, they keep only those of forward()."""
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
        text, reason = _reason(error)
        raise CaptureError(f"torch.export cannot take {name_of(f)}: {text}{_line_of(error)}", reason) from error
    finally:
        logger.setLevel(level)


def _reason(error):
    """(torch.export's message, the Reason)"""
    first = str(error).strip().split("\n")[0]
    kind = type(error).__name__
    if "DataDependent" in kind or "Unbacked" in kind or "data-dependent" in first:
        return f"what it does next depends on the values of a tensor, and a case is a straight line ({first})", Reason.DATA_DEPENDENT
    if kind == "DynamicOutputShapeException":
        op = first.removeprefix("aten.").partition(".")[0]
        return f"op {op}: how large its result is depends on the values of a tensor, and a case is a straight line", Reason.DATA_DEPENDENT
    return f"{kind}: {first}", Reason.EXPORT


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
            label = spec.target.replace("lifted_tensor_", "constant_")
        elif kind != "USER_INPUT":
            raise CaptureError(f"an input of the kind {kind} ({spec.target})", Reason.VALUE_FORM)
        if other := unlike(value):
            raise CaptureError(f"{label} {'is' if other[1] == Reason.LAYOUT else 'has'} {other[0]}", other[1])
        if value.numel() == 0:
            raise CaptureError(f"{label} has no element ({list(value.shape)}), and a tensor of a case has", Reason.EMPTY)
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


def name_of(f):
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
